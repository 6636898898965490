//! Small JSON files that are replaced atomically: a reader finds all of the old content or all of the new one, also
//! after a crash.

use crate::layout::Layout;
use crate::spawn::blocking;
use agentd_files::own;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The content; none if there is no file.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match own::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the content. It is on disk when this returns.
pub async fn write(
    layout: &Layout,
    path: &Path,
    content: &(impl Serialize + Sync),
) -> io::Result<()> {
    let bytes = serde_json::to_vec(content)?;
    let (layout, path) = (layout.clone(), path.to_owned());
    blocking(move || replace(&layout, &path, &bytes)).await
}

/// Removes the file, if it exists.
pub fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn replace(layout: &Layout, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let Some(dir) = path.parent() else {
        return Err(io::Error::other("the path has no directory"));
    };
    layout.make_below(dir)?;
    let unready = path.with_extension("json.new");
    remove(&unready)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unready)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let replaced = written.and_then(|()| std::fs::rename(&unready, path));
    if let Err(error) = replaced {
        let _gone = remove(&unready);
        return Err(error);
    }
    File::open(dir)?.sync_all()
}
