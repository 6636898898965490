//! The names of agents: their canonical form, and which names are valid.

use crate::error::{Error, Kind, Result};
use agentd_core::id::AgentId;

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// The canonical form of a name: `Coder` and `coder` are the same agent.
pub fn canonical(name: &str) -> String {
    name.trim().to_lowercase()
}

/// The canonical form of a new name; an error if the name is not valid.
pub fn checked(given: &str) -> Result<String> {
    let name = canonical(given);
    let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    let begins_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if name.len() <= LONGEST && begins_well && name.chars().all(is_good) {
        // A name must not look like an id.
        if name.parse::<AgentId>().is_err() {
            return Ok(name);
        }
    }
    let what = format!("`{given}` is not a valid name");
    Err(Error::new(Kind::Invalid, what).because(format_args!(
        "a name has up to {LONGEST} of a–z, 0–9, `-`, `_` and `.`, and begins with a letter or a digit"
    )))
}
