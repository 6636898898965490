//! What is at a path.

use crate::held_dir::HeldDir;
use agentd_core::event::FileState;
use agentd_core::files::work::HASHED_BYTES;
use rustix::fs::FileType;
use sha2::{Digest as _, Sha256};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Bytes that are read at once.
const CHUNK: usize = 256 * 1024;

/// What is at a path, without its content.
pub enum Seen {
    Absent,
    File(File),
    Symlink(String),
    /// A directory, or something else that has no content.
    Other(&'static str),
    /// A directory above it is something else now.
    Blocked(String),
}

/// The name of a path in its directory.
pub fn name_of(path: &Path) -> io::Result<&OsStr> {
    path.file_name()
        .ok_or_else(|| io::Error::other("the path has no file name"))
}

/// Looks at a name in a directory; no symlink is followed.
pub fn look(held_dir: &HeldDir, name: &OsStr) -> io::Result<Seen> {
    let Some(stat) = held_dir.look(name)? else {
        return Ok(Seen::Absent);
    };
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let file = held_dir.open(name)?;
            match file.metadata()?.is_file() {
                true => Seen::File(file),
                false => Seen::Other("a file that is being replaced"),
            }
        }
        FileType::Symlink => match held_dir.link_target(name)?.into_string() {
            Ok(target) => Seen::Symlink(target),
            Err(_) => Seen::Other("a symlink whose target is not UTF-8"),
        },
        FileType::Directory => Seen::Other("a directory"),
        _ => Seen::Other("neither a file nor a symlink"),
    })
}

/// The hash of what is left of a file; `each` gets every piece of the content.
pub fn hash(
    file: &mut File,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(String, u64)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    let mut size = 0;
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let piece = buffer.get(..read).unwrap_or_default();
        hasher.update(piece);
        size += read as u64;
        each(piece)?;
    }
    let hash = hasher.finalize();
    let hash = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((hash, size))
}

/// The state of a path; `None` if a directory, a very large file or something else is there.
pub fn of(held_dir: &HeldDir, name: &OsStr) -> io::Result<Option<FileState>> {
    Ok(match look(held_dir, name)? {
        Seen::Absent => Some(FileState::Absent),
        Seen::Symlink(target) => Some(FileState::Symlink { target }),
        // It cannot be what is expected: what a restore replaces or writes is smaller.
        Seen::File(file) if file.metadata()?.len() > HASHED_BYTES => None,
        Seen::File(mut file) => {
            let (hash, _) = hash(&mut file, |_| Ok(()))?;
            let mode = mode(&file)?;
            Some(FileState::File { mode, hash })
        }
        Seen::Other(_) | Seen::Blocked(_) => None,
    })
}

/// The permission bits of a file.
pub fn mode(file: &File) -> io::Result<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(file.metadata()?.permissions().mode() & 0o7777)
}
