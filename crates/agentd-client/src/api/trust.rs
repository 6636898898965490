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
    /// Only if the digest of its files is still this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// False withdraws the trust.
    pub trusted: bool,
}

/// The files of a project that agents use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectTrust {
    pub dir: String,
    pub files: Vec<TrustedFile>,
    /// The digest of all files together.
    pub hash: String,
    /// The files of skills that this request trusts and that were not trusted before. A conversation that has begun does
    /// not list them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_skills: Vec<String>,
    /// The entries of `.mcp.json` that cannot be used, each with the reason. The others are used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_servers: Vec<String>,
    /// What `.claude/settings.json` and `.claude/agents` contain that agentd does not use, by file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    pub path: String,
    /// The digest of its content.
    pub hash: String,
    /// Whether its present content is trusted.
    pub trusted: bool,
}
