//! Files of projects that the user trusts.

use serde::{Deserialize, Serialize};

/// `GET /v1/trust`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustQuery {
    /// The project's directory.
    pub dir: String,
}

/// `POST /v1/trust`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// The project's directory.
    pub dir: String,
    /// Only if its files are still what this digest was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// False takes it back.
    pub trusted: bool,
}

/// What a project has for agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectTrust {
    pub dir: String,
    pub files: Vec<TrustedFile>,
    /// Of all files together.
    pub hash: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    pub path: String,
    /// Of its content.
    pub hash: String,
    /// As it is now.
    pub trusted: bool,
}
