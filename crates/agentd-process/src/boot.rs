//! Which start of the system this is.

use crate::error::{Error, Result};
use std::path::PathBuf;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Differs after every start of the system. An [`Identity`](crate::Identity) is good under one only.
pub fn boot_id() -> Result<String> {
    match std::fs::read_to_string(BOOT_ID) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) => Err(Error::CannotUse {
            path: PathBuf::from(BOOT_ID),
            source,
        }),
    }
}
