//! Private copies of git's configuration: `git config` and `git remote add` succeed in a sandbox, the user's file stays as it
//! is while the tool runs, and what the tool may set is added to it afterwards.

use super::addresses::{Addresses, Places};
use super::allowed::{may_add, name, render};
use super::config::{self, Entry};
use agentd_files::foreign::{self, Links};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const CONFIG_BYTES: u64 = 1024 * 1024;
const CONFIG: &str = "config";
/// While git changes a configuration, it holds this file.
const LOCK: &str = "config.lock";
/// How many names are tried for the directory of the copies.
const NAMES: u32 = 10_000;

/// The copies of one sandbox, in the agent's own `/tmp`.
#[derive(Debug, Default)]
pub struct ConfigCopies {
    copies: Vec<Copy>,
    /// The name of their directory in `/tmp`.
    name: String,
    /// The directory outside.
    dir: Option<(OwnedFd, OwnedFd)>,
}

#[derive(Debug)]
struct Copy {
    /// The git directory.
    git: OwnedFd,
    path: PathBuf,
    /// As it was when it was copied.
    before: Vec<Entry>,
}

impl ConfigCopies {
    /// Copies the configurations of these git directories to a new directory in `tmp`. A configuration that cannot be
    /// copied is left out, and is read-only.
    pub fn make(dirs: &[PathBuf], tmp: &Path) -> (Self, Vec<(PathBuf, PathBuf)>) {
        let mut copies = Self::default();
        let mut links = Vec::new();
        if dirs.is_empty() || copies.make_dir(tmp).is_err() {
            return (copies, links);
        }
        for dir in dirs {
            if let Some((copy, text)) = read(dir)
                && let Some(link) = copies.put(copy, &text)
            {
                links.push((dir.join(CONFIG), link));
            }
        }
        (copies, links)
    }

    fn make_dir(&mut self, tmp: &Path) -> Result<(), Errno> {
        let outer = open_dir(CWD.as_fd(), tmp)?;
        for n in 0..NAMES {
            self.name = format!(".git-config-{n}");
            match mkdirat(&outer, &self.name, Mode::RWXU) {
                Err(Errno::EXIST) => {}
                made => {
                    made?;
                    let dir = open_dir(outer.as_fd(), Path::new(&self.name))?;
                    self.dir = Some((outer, dir));
                    return Ok(());
                }
            }
        }
        Err(Errno::EXIST)
    }

    /// Where the tool finds its copy: in a directory of its own, because git puts its lock beside it.
    fn put(&mut self, copy: Copy, text: &str) -> Option<PathBuf> {
        let (_, dir) = self.dir.as_ref()?;
        let at = self.copies.len().to_string();
        mkdirat(dir, &at, Mode::RWXU).ok()?;
        // Another command of the agent can put a link in its place: the copy must not be made outside.
        let own = open_dir(dir.as_fd(), Path::new(&at)).ok()?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let new = openat(own, CONFIG, flags, Mode::from_raw_mode(0o644)).ok()?;
        File::from(new).write_all(text.as_bytes()).ok()?;
        self.copies.push(copy);
        Some(Path::new("/tmp").join(&self.name).join(at).join(CONFIG))
    }

    /// Adds what the tool may set to the user's files, and removes the copies. Returns the names of what was not added.
    pub fn merge(&self, places: &Places) -> Vec<String> {
        let Some((tmp, dir)) = &self.dir else {
            return Vec::new();
        };
        let mut refused = Vec::new();
        for (at, copy) in self.copies.iter().enumerate() {
            let file = Path::new(&at.to_string()).join(CONFIG);
            let text = foreign::read_text_at(dir, &file, Links::Refuse, CONFIG_BYTES);
            let after = text.ok().and_then(|text| config::parse(&text));
            match after {
                Some(after) => refused.extend(copy.merge(&after, places)),
                None => refused.push("the whole file".to_owned()),
            }
        }
        remove(tmp, &self.name);
        refused
    }
}

impl Copy {
    fn merge(&self, after: &[Entry], places: &Places) -> Vec<String> {
        let is_changed = |entry: &&Entry| !self.before.contains(entry);
        let wanted: Vec<Entry> = after.iter().filter(is_changed).cloned().collect();
        let gone = self.before.iter().filter(|entry| !after.contains(entry));
        let mut refused: Vec<String> = gone.map(name).collect();
        if wanted.is_empty() {
            return refused;
        }
        let added = self.add(&wanted, places).unwrap_or_default();
        let left = wanted.iter().filter(|entry| !added.contains(entry));
        for name in left.map(name) {
            if !refused.contains(&name) {
                refused.push(name);
            }
        }
        refused
    }

    /// Adds what may be added to the file as it is now, and returns it. The user's git may have changed it meanwhile.
    fn add(&self, wanted: &[Entry], places: &Places) -> Option<Vec<Entry>> {
        let lock =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        drop(openat(&self.git, LOCK, lock, Mode::from_raw_mode(0o666)).ok()?);
        let added = self.append(wanted, places);
        let _gone = unlinkat(&self.git, LOCK, rustix::fs::AtFlags::empty());
        added
    }

    /// Adds it at the end of the file itself. The lock only keeps the user's git away, and never becomes the file: another
    /// command of the agent can replace the lock, or give it a second name, and cannot replace the file.
    fn append(&self, wanted: &[Entry], places: &Places) -> Option<Vec<Entry>> {
        let file = foreign::open_at(&self.git, Path::new(CONFIG), Links::Refuse).ok()?;
        let id = |file: &File| file.metadata().map(|it| (it.dev(), it.ino())).ok();
        let read = id(&file)?;
        let text = String::from_utf8(foreign::bounded(file, CONFIG_BYTES).ok()?).ok()?;
        let present = config::parse(&text)?;
        // Remotes first: a branch may name one of them.
        let allowed = |added: &[Entry], is_wanted: fn(&Entry) -> bool| -> Vec<Entry> {
            let entries = [&present, added].concat();
            let addresses = Addresses {
                git: &self.path,
                is_made: false,
                places,
                entries: &entries,
            };
            let wanted = wanted.iter().filter(|entry| is_wanted(entry));
            let wanted = wanted.filter(|entry| may_add(entry, &present));
            wanted
                .filter(|entry| addresses.allow(entry))
                .cloned()
                .collect()
        };
        let mut added = allowed(&[], |entry| entry.section != "branch");
        added.extend(allowed(&added, |entry| entry.section == "branch"));
        if added.is_empty() {
            return Some(added);
        }
        let end = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let more = format!("{end}{}", render(&added));
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.git, CONFIG, flags, Mode::empty()).ok()?);
        if id(&file)? != read {
            return None;
        }
        let written = file
            .write_all(more.as_bytes())
            .and_then(|()| file.sync_all());
        if written.is_err() {
            // Not half an entry.
            let _stays = file.set_len(text.len() as u64);
            return None;
        }
        Some(added)
    }
}

/// A git directory with its configuration, if it is a plain file that can be parsed.
fn read(dir: &Path) -> Option<(Copy, String)> {
    let git = open_dir(CWD.as_fd(), dir).ok()?;
    let text = foreign::read_text_at(&git, Path::new(CONFIG), Links::Refuse, CONFIG_BYTES).ok()?;
    let before = config::parse(&text)?;
    let path = dir.to_owned();
    Some((Copy { git, path, before }, text))
}

fn open_dir(at: rustix::fd::BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let without_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(at, path, flags, Mode::empty(), without_links)
}

/// Removes what is below a name. What a tool made inaccessible stays: it is in the agent's own `/tmp`.
fn remove(dir: &OwnedFd, name: &str) {
    use std::os::fd::AsRawFd as _;
    // Through the descriptor: a parent directory of the path may have become another one.
    let path = format!("/proc/self/fd/{}/{name}", dir.as_raw_fd());
    let _stays = std::fs::remove_dir_all(path);
}
