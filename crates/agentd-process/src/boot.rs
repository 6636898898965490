//! The identity of the machine and of the current boot.

use crate::error::{Error, Result};
use agentd_files::own;
use std::path::PathBuf;

const MACHINE_IDS: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The id of this installation of the operating system. `None` if it has none, as in many containers.
pub fn machine_id() -> Option<String> {
    let mut ids = MACHINE_IDS.iter().flat_map(own::read_to_string);
    let id = ids.find(|id| !id.trim().is_empty())?;
    Some(id.trim().to_owned())
}

/// The id of the current boot. An [`Identity`](crate::Identity) is valid only within one boot.
pub fn boot_id() -> Result<String> {
    match own::read_to_string(BOOT_ID) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) => Err(Error::CannotUse {
            path: PathBuf::from(BOOT_ID),
            source,
        }),
    }
}
