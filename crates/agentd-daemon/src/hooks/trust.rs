//! Which projects' hooks the user has trusted: by path and by the content they had then.

use crate::layout::Layout;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

type Trusted = BTreeMap<String, String>;

pub fn is_trusted(layout: &Layout, path: &Path, hash: &str) -> bool {
    match read(layout) {
        Ok(trusted) => trusted.get(&*path.to_string_lossy()).map(String::as_str) == Some(hash),
        Err(error) => {
            tracing::warn!(%error, "it cannot be read which hooks are trusted; none are");
            false
        }
    }
}

/// From now on this content of the file is trusted; with none, nothing of it is.
pub fn set(layout: &Layout, path: &Path, hash: Option<&str>) -> io::Result<()> {
    let mut trusted = read(layout)?;
    let path = path.to_string_lossy().into_owned();
    match hash {
        Some(hash) => drop(trusted.insert(path, hash.to_owned())),
        None => drop(trusted.remove(&path)),
    }
    let file = layout.trusted_hooks();
    let unready = file.with_extension("tmp");
    let mut out = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unready)?;
    out.write_all(&serde_json::to_vec_pretty(&trusted)?)?;
    out.sync_all()?;
    std::fs::rename(unready, file)
}

/// Nothing of the file is trusted any more; whether anything was.
pub fn forget(layout: &Layout, path: &Path) -> io::Result<bool> {
    let was_trusted = read(layout)?.contains_key(&*path.to_string_lossy());
    if was_trusted {
        set(layout, path, None)?;
    }
    Ok(was_trusted)
}

fn read(layout: &Layout) -> io::Result<Trusted> {
    match std::fs::read(layout.trusted_hooks()) {
        Ok(text) => serde_json::from_slice(&text).map_err(io::Error::from),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Trusted::new()),
        Err(error) => Err(error),
    }
}
