//! Which git directory outside a tree belongs to it: of a linked work tree, of a submodule, or a separate one.
//!
//! The tree only suggests a path. The directory there counts if it is reached without a symbolic link, has what a git
//! directory has, and names the tree itself: a tool that writes the tree cannot write that.

use super::config;
use agentd_files::foreign::{self, Links};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat2, statat};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// A git directory outside the tree that it belongs to. The paths are absolute and without links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutsideGitDir {
    pub tree: PathBuf,
    /// The directory with the objects, the references and the configuration.
    pub common: PathBuf,
    /// Of a linked work tree: its own directory, in `worktrees` of `common`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked: Option<PathBuf>,
}

/// The longest path in a pointer, with what is around it.
const POINTER_BYTES: u64 = 4200;
const CONFIG_BYTES: u64 = 1024 * 1024;

impl OutsideGitDir {
    /// The git directory that belongs to this tree, whose path is without links. None if the tree has its git directory
    /// inside or is no repository, and if nothing outside names the tree.
    pub fn of(tree: &Path) -> Option<Self> {
        let pointer = foreign::read_text(&tree.join(".git"), Links::Refuse, POINTER_BYTES).ok()?;
        let suggested = pointer.strip_prefix("gitdir:")?;
        let dir = plain(tree, suggested.trim_matches(['\n', '\r', ' ']))?;
        if dir.starts_with(tree) {
            return None;
        }
        let opened = open(&dir)?;
        let read = |name: &str, limit| {
            foreign::read_text_at(&opened, Path::new(name), Links::Refuse, limit).ok()
        };
        let found = match read("gitdir", POINTER_BYTES) {
            Some(back) => {
                let names_tree = plain(&dir, back.trim_end())? == tree.join(".git");
                let common = read(super::COMMONDIR, POINTER_BYTES)?;
                let common = plain(&dir, common.trim_end())?;
                let is_above = dir.parent() == Some(&common.join("worktrees"));
                (names_tree && is_above).then_some(Self {
                    tree: tree.to_owned(),
                    common,
                    linked: Some(dir),
                })
            }
            None => {
                let entries = config::parse(&read("config", CONFIG_BYTES)?)?;
                let mut named = entries.iter().filter(|entry| entry.is("core", "worktree"));
                let named = named.next_back()?.value.as_deref()?;
                (plain(&dir, named)? == tree).then_some(Self {
                    tree: tree.to_owned(),
                    common: dir,
                    linked: None,
                })
            }
        };
        found.filter(Self::is_there)
    }

    /// Whether the directories are reached without links and have what git directories have.
    pub(crate) fn is_there(&self) -> bool {
        let has = |dir: &OwnedFd, name: &str, wanted: FileType| {
            let stat = statat(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
            stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == wanted)
        };
        let is_git_dir = open(&self.common).is_some_and(|common| {
            has(&common, "HEAD", FileType::RegularFile)
                && has(&common, "objects", FileType::Directory)
                && has(&common, "refs", FileType::Directory)
        });
        let linked = self.linked.as_deref().map(open);
        let has_linked = linked.is_none_or(|linked| {
            linked.is_some_and(|linked| has(&linked, "HEAD", FileType::RegularFile))
        });
        is_git_dir && has_linked
    }
}

/// A directory that is reached without a link.
fn open(dir: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let without_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, dir, flags, Mode::empty(), without_links).ok()
}

/// The absolute path that a pointer in `dir` names, without `.` and `..`. Without links in it, that is what git finds.
pub fn plain(dir: &Path, pointer: &str) -> Option<PathBuf> {
    if pointer.is_empty() || pointer.contains('\0') {
        return None;
    }
    let mut path = PathBuf::new();
    for part in dir.join(pointer).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::OutsideGitDir;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use tempfile::TempDir;

    struct Dirs(TempDir);

    impl Dirs {
        fn new() -> Self {
            let dirs = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(dirs.at("tree")).unwrap();
            dirs
        }

        fn at(&self, path: &str) -> PathBuf {
            fs::canonicalize(self.0.path()).unwrap().join(path)
        }

        fn put(&self, path: &str, content: &str) {
            let path = self.at(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        fn git_dir(&self, path: &str) {
            for dir in ["objects", "refs"] {
                fs::create_dir_all(self.at(path).join(dir)).unwrap();
            }
            self.put(&format!("{path}/HEAD"), "ref: refs/heads/main\n");
            self.put(&format!("{path}/config"), "[core]\n\tbare = false\n");
        }

        fn linked(&self, common: &str) {
            self.git_dir(common);
            let own = format!("{common}/worktrees/t");
            self.put(&format!("{own}/HEAD"), "ref: refs/heads/t\n");
            self.put(&format!("{own}/commondir"), "../..\n");
            let back = self.at("tree/.git");
            self.put(&format!("{own}/gitdir"), &format!("{}\n", back.display()));
            let to = self.at(&own);
            self.put("tree/.git", &format!("gitdir: {}\n", to.display()));
        }

        fn found(&self) -> Option<(PathBuf, Option<PathBuf>)> {
            let found = OutsideGitDir::of(&self.at("tree"))?;
            Some((found.common, found.linked))
        }
    }

    #[test]
    fn a_linked_work_tree_has_the_directory_that_names_it() {
        let dirs = Dirs::new();
        dirs.linked("main/.git");
        let own = dirs.at("main/.git/worktrees/t");
        assert_eq!(dirs.found(), Some((dirs.at("main/.git"), Some(own))));
        dirs.put("main/.git/worktrees/t/gitdir", "../../../../tree/.git\n");
        assert!(dirs.found().is_some());
        dirs.put("main/.git/worktrees/t/gitdir", "/elsewhere/.git\n");
        assert_eq!(dirs.found(), None);
    }

    #[test]
    fn a_separate_directory_must_name_its_tree() {
        let dirs = Dirs::new();
        dirs.git_dir("separate");
        dirs.put("tree/.git", "gitdir: ../separate\n");
        assert_eq!(dirs.found(), None);
        dirs.put("separate/config", "[core]\n\tworktree = ../tree\n");
        assert_eq!(dirs.found(), Some((dirs.at("separate"), None)));
        fs::remove_dir(dirs.at("separate/refs")).unwrap();
        assert_eq!(dirs.found(), None);
    }

    /// A tool can write all of these.
    #[test]
    fn nothing_inside_a_tree_opens_what_is_outside() {
        let dirs = Dirs::new();
        for (git, own, common) in [
            ("gitdir: g", "g", "../.."),
            ("gitdir: g", "g", "../../.."),
            ("gitdir: worktrees/g", "worktrees/g", "../.."),
            ("gitdir: ../tree/g", "g", "/"),
        ] {
            dirs.put("tree/.git", git);
            dirs.put(&format!("tree/{own}/HEAD"), "x");
            dirs.put(&format!("tree/{own}/commondir"), common);
            let back = dirs.at("tree/.git");
            dirs.put(&format!("tree/{own}/gitdir"), back.to_str().unwrap());
            assert_eq!(dirs.found(), None, "{git}");
        }
    }

    #[test]
    fn a_link_on_the_way_counts_as_nothing() {
        let dirs = Dirs::new();
        dirs.linked("main/.git");
        symlink(dirs.at("main"), dirs.at("tree/way")).unwrap();
        let through = dirs.at("tree/way/.git/worktrees/t");
        dirs.put("tree/.git", &format!("gitdir: {}", through.display()));
        assert_eq!(dirs.found(), None);
        dirs.linked("main/.git");
        assert!(dirs.found().is_some());
        fs::rename(dirs.at("tree/.git"), dirs.at("tree/git")).unwrap();
        symlink("git", dirs.at("tree/.git")).unwrap();
        assert_eq!(dirs.found(), None);
    }

    #[test]
    fn a_pointer_that_never_ends_is_not_read() {
        let dirs = Dirs::new();
        dirs.linked("main/.git");
        let gitdir = dirs.at("main/.git/worktrees/t/gitdir");
        fs::remove_file(&gitdir).unwrap();
        symlink("/dev/zero", &gitdir).unwrap();
        assert_eq!(dirs.found(), None);
        assert_eq!(OutsideGitDir::of(Path::new("/nowhere")), None);
    }
}
