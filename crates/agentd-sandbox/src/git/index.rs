//! The submodules that a repository's index lists: git looks into each of them when it looks at the repository.

use std::path::PathBuf;

/// An index may be larger; then its submodules are not known.
pub const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// How many submodules are looked at.
const MOST_LINKS: usize = 1000;

const STAT: usize = 40;
const MODE: usize = 24;
const GITLINK: u32 = 0o160_000;
const EXTENDED: u16 = 0x4000;

/// The paths of the submodules, relative to the work tree. None if it is not an index.
pub fn submodules(index: &[u8]) -> Option<Vec<PathBuf>> {
    // The length of an object's name is not in the index: repositories with SHA-256 have longer ones.
    read(index, 20).or_else(|| read(index, 32))
}

fn read(index: &[u8], id: usize) -> Option<Vec<PathBuf>> {
    let number = |at: usize| Some(u32::from_be_bytes(*index.get(at..)?.first_chunk()?));
    let version = number(4)?;
    if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    let mut name = Vec::new();
    let mut links = Vec::new();
    for _ in 0..number(8)? {
        let mode = number(at + MODE)?;
        let flags = u16::from_be_bytes(*index.get(at + STAT + id..)?.first_chunk()?);
        let extended = usize::from(flags & EXTENDED != 0) * 2;
        let start = at + STAT + id + 2 + extended;
        let rest = if version == 4 {
            let (dropped, length) = varint(index.get(start..)?)?;
            name.truncate(name.len().checked_sub(dropped)?);
            start + length
        } else {
            name.clear();
            start
        };
        let length = index.get(rest..)?.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(index.get(rest..rest + length)?);
        let end = rest + length;
        at = match version {
            4 => end + 1,
            // One to eight zero bytes, so that the length of an entry is a multiple of eight.
            _ => at + ((end - at) / 8 + 1) * 8,
        };
        // Types other than these mean that the names of objects have another length.
        match mode & 0o170_000 {
            0o040_000 | 0o100_000 | 0o120_000 => {}
            GITLINK if links.len() < MOST_LINKS => links.push(path(&name)?),
            GITLINK => {}
            _ => return None,
        }
    }
    Some(links)
}

/// A path that stays in the work tree.
fn path(name: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(name));
    let mut parts = path.components();
    parts
        .all(|part| matches!(part, std::path::Component::Normal(_)))
        .then_some(path)
}

/// A number as git packs offsets, and the bytes that it takes.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value: usize = 0;
    for (at, byte) in bytes.iter().take(8).enumerate() {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::submodules;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    fn git(dir: &Path, args: &[&str]) {
        let done = Command::new("git")
            .args(args)
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?} {done:?}");
    }

    #[test]
    fn submodules_are_found_in_every_version() {
        for (format, version) in [
            ("sha1", "2"),
            ("sha1", "4"),
            ("sha256", "2"),
            ("sha256", "4"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let dir = dir.path();
            git(dir, &["init", "-q", "--object-format", format]);
            for name in ["a", "b/long-name-of-a-file", "b/long-name-of-another", "z"] {
                std::fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
                std::fs::write(dir.join(name), name).unwrap();
            }
            git(dir, &["add", "-A"]);
            let id = if format == "sha1" {
                "1".repeat(40)
            } else {
                "1".repeat(64)
            };
            for name in ["b/sub", "sub"] {
                let link = format!("160000,{id},{name}");
                git(dir, &["update-index", "--add", "--cacheinfo", &link]);
            }
            // An entry with extended flags.
            git(dir, &["update-index", "--skip-worktree", "a"]);
            git(dir, &["update-index", "--index-version", version]);
            let index = std::fs::read(dir.join(".git/index")).unwrap();
            let expected = ["b/sub", "sub"].map(PathBuf::from);
            assert_eq!(submodules(&index).unwrap(), expected, "{format} {version}");
            for length in [0, 3, 11, 40, index.len() / 2] {
                submodules(&index[..length]);
            }
        }
    }
}
