//! The submodules that a repository's index lists: git looks into each of them when it looks at the repository.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// An index may be larger; then its submodules are not known.
pub const MOST_BYTES: u64 = 64 * 1024 * 1024;

const STAT: usize = 40;
const MODE: usize = 24;
const TYPE: u32 = 0o170_000;
const GITLINK: u32 = 0o160_000;
const EXTENDED: u16 = 0x4000;
const NAME: u16 = 0x0fff;
const NAME_IS_LONG: usize = 0x0fff;

/// The longest path that the kernel takes.
const MOST_PATH: usize = 4096;

/// The paths of the submodules, relative to the work tree, if `is_there` says that they are: a small index can list more paths
/// than fit into memory.
///
/// The length of an object's name is not in the index: repositories with SHA-256 have longer ones. It is read with both
/// lengths, as far as it can be: with the wrong one, the paths are none that is there.
pub fn submodules(index: &[u8], is_there: impl Fn(&Path) -> bool) -> BTreeSet<PathBuf> {
    let mut links = BTreeSet::new();
    for id in [20, 32] {
        let mut see = |name: &[u8]| {
            if let Some(path) = path(name)
                && !links.contains(&path)
                && is_there(&path)
            {
                links.insert(path);
            }
        };
        // An entry that cannot be read ends it.
        let _end = read(index, id, &mut see);
    }
    links
}

fn read(index: &[u8], id: usize, see: &mut impl FnMut(&[u8])) -> Option<()> {
    let number = |at: usize| Some(u32::from_be_bytes(*index.get(at..)?.first_chunk()?));
    let version = number(4)?;
    if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    let mut name = Vec::new();
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
        // As git does: the length is in the flags, unless it is too long for them.
        let named = usize::from(flags & NAME);
        let length = match named {
            NAME_IS_LONG => index.get(rest..)?.iter().position(|byte| *byte == 0)?,
            named => named.checked_sub(name.len())?,
        };
        name.extend_from_slice(index.get(rest..rest + length)?);
        let end = rest + length;
        at = match version {
            4 => end + 1,
            // One to eight zero bytes, so that the length of an entry is a multiple of eight.
            _ => at + ((end - at) / 8 + 1) * 8,
        };
        if mode & TYPE == GITLINK && name.len() <= MOST_PATH {
            // Git uses what is before a NUL byte.
            see(name.split(|byte| *byte == 0).next().unwrap_or_default());
        }
    }
    Some(())
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

    /// Regression: each path was kept, and the process that looks after the tool had not enough memory for them.
    #[test]
    fn a_small_index_with_long_paths_needs_no_memory() {
        let mut index = b"DIRC\0\0\0\x04".to_vec();
        let count: u32 = 100_000;
        index.extend(count.to_be_bytes());
        for at in 0..count {
            let mut entry = [0; 62];
            entry[24..28].copy_from_slice(&0o160_000_u32.to_be_bytes());
            entry[60..62].copy_from_slice(&0x0fff_u16.to_be_bytes());
            index.extend(entry);
            // The path before, without its last digits, with others.
            index.push(if at == 0 { 0 } else { 8 });
            if at == 0 {
                index.extend([b'a'; 4000]);
            }
            index.extend(format!("{at:08}\0").bytes());
        }
        let asked = std::cell::Cell::new(0);
        let found = submodules(&index, |path| {
            asked.set(asked.get() + 1);
            path.ends_with(format!("{}00000007", "a".repeat(4000)))
        });
        assert_eq!(found.len(), 1);
        assert!(asked.get() >= count);
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
            let found = submodules(&index, |path| path.ends_with("sub"));
            assert!(found.iter().eq(&expected), "{format} {version} {found:?}");
            let found = submodules(&index, |path| path == Path::new("b/sub"));
            assert_eq!(found.len(), 1);
            for length in [0, 3, 11, 40, index.len() / 2] {
                submodules(&index[..length], |_| true);
            }
            if version == "2" {
                // Regression: one path that leads out of the work tree hid all others.
                let mut odd = index;
                let at = odd.windows(5).position(|part| part == b"b/sub").unwrap();
                odd[at..at + 5].copy_from_slice(b"b/../");
                let found = submodules(&odd, |path| path.ends_with("sub"));
                assert!(found.iter().eq([Path::new("sub")]), "{found:?}");
            }
        }
    }
}
