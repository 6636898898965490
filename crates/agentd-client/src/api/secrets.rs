//! Stored secrets. No response contains a value.

use agentd_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// `PUT /v1/secrets/{name}`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetSecret {
    pub value: String,
}

/// Does not print the value.
impl fmt::Debug for SetSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetSecret(…)")
    }
}

/// `GET /v1/secrets`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSecrets {
    /// Sorted by name.
    pub secrets: Vec<StoredSecret>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSecret {
    pub name: String,
    #[serde(with = "super::time")]
    pub set_at: Timestamp,
}
