//! The list of project files that the user has trusted, by path and content.

use crate::layout::Layout;
use agentd_files::own;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The digest of each file, by its path.
pub type Trusted = BTreeMap<String, String>;

pub fn is_trusted(layout: &Layout, path: &Path, hash: &str) -> bool {
    match read(layout) {
        Ok(trusted) => trusted.get(&*path.to_string_lossy()).map(String::as_str) == Some(hash),
        Err(error) => {
            tracing::warn!(%error, "list of trusted files cannot be read: no file is trusted");
            false
        }
    }
}

pub fn write(layout: &Layout, trusted: &Trusted) -> io::Result<()> {
    let file = layout.trusted();
    let unready = file.with_extension("tmp");
    let mut out = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unready)?;
    out.write_all(&serde_json::to_vec_pretty(trusted)?)?;
    out.sync_all()?;
    std::fs::rename(unready, file)
}

pub fn read(layout: &Layout) -> io::Result<Trusted> {
    match own::read(layout.trusted()) {
        Ok(text) => serde_json::from_slice(&text).map_err(io::Error::from),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Trusted::new()),
        Err(error) => Err(error),
    }
}
