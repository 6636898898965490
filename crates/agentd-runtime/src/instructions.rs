//! The instruction files of the user and the project (`AGENTS.md`, `CLAUDE.md`, rules), and the place where an agent works.
//! `found` decides which files of a directory are read.
//!
//! The files of a project are text for the model, so they need no trust. But they come with a repository: a link in it
//! must not bring another file of the user into the conversation.

mod found;

use agentd_core::system_prompt::{Git, Instructions, Present, ToldFiles, Workplace};
use agentd_failpoint as failpoint;
use agentd_files::foreign::{self, Links};
use found::{Found, dir_of};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The largest size of a file.
const LARGEST: u64 = 1024 * 1024;
/// How much is read of a file of Git.
const LONGEST_HEAD: u64 = 4096;
/// The longest name of a branch that is shown.
const LONGEST_BRANCH: usize = 255;

/// How many directories below the working directory are looked at.
const MOST_TOUCHED: usize = 64;
/// How many files are remembered for rules that apply to some paths.
const MOST_TOUCHED_FILES: usize = 256;

/// Of these skills, given by the paths of their files, those that may not be used.
type Unusable = dyn Fn(&[String]) -> Vec<String> + Send + Sync;

/// The instruction files of one agent.
pub struct InstructionFiles {
    cwd: PathBuf,
    /// The state directory, which may contain the user's own file.
    state: Option<PathBuf>,
    home: Option<PathBuf>,
    touched: Mutex<Touched>,
    unusable: Box<Unusable>,
}

/// Where the agent has worked.
#[derive(Default)]
struct Touched {
    /// The directories below the working directory.
    dirs: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl fmt::Debug for InstructionFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("InstructionFiles");
        shown.field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

impl InstructionFiles {
    pub fn new(cwd: PathBuf, state: Option<PathBuf>, home: Option<PathBuf>) -> Self {
        let touched = Mutex::default();
        Self {
            cwd,
            state,
            home,
            touched,
            unusable: Box::new(|_| Vec::new()),
        }
    }

    /// The same, with what decides which skills may be used.
    #[must_use]
    pub fn with_skills(
        mut self,
        unusable: impl Fn(&[String]) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.unusable = Box::new(unusable);
        self
    }

    /// The files for a new conversation, from general to specific: the user's own, then those of each directory from the
    /// project's root down to the working directory.
    pub fn read(&self) -> Vec<Instructions> {
        let touched = self.touched().files.clone();
        let mut found = Found::new(&touched, &[]);
        self.add_all(&mut found);
        found.into_files()
    }

    fn touched(&self) -> MutexGuard<'_, Touched> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_all(&self, found: &mut Found<'_>) {
        found.add_own(self.of_user());
        let (root, dirs) = project(&self.cwd);
        for dir in &dirs {
            found.add_dir(self.within(&root, dir), dir);
        }
    }

    /// A call names this path. From now on, the files of its directory count too, and the rules for such paths.
    pub fn touch(&self, path: &Path) {
        let mut touched = self.touched();
        if touched.files.len() < MOST_TOUCHED_FILES {
            touched.files.insert(path.to_owned());
        }
        for dir in path.ancestors().filter(|dir| self.is_below(dir)) {
            if touched.dirs.len() < MOST_TOUCHED {
                touched.dirs.insert(dir.to_owned());
            }
        }
    }

    /// All that applies now, of which the model knows this.
    pub fn present(&self, told: &ToldFiles) -> Present {
        Present {
            instructions: self.files(&told.instructions),
            unusable: (self.unusable)(&told.skills),
        }
    }

    /// All files that apply now: those for a new conversation, and those of the directories below the working directory
    /// that the agent has touched or knows files of.
    fn files(&self, told: &[String]) -> Vec<Instructions> {
        let (mut dirs, files) = {
            let touched = self.touched();
            (touched.dirs.clone(), touched.files.clone())
        };
        let of_told = told.iter().filter_map(|path| dir_of(Path::new(path)));
        dirs.extend(of_told.filter(|dir| self.is_below(dir)).map(Path::to_owned));
        let mut found = Found::new(&files, told);
        self.add_all(&mut found);
        for dir in &dirs {
            found.add_dir(&self.cwd, dir);
        }
        found.into_files()
    }

    fn is_below(&self, dir: &Path) -> bool {
        dir != self.cwd && dir.starts_with(&self.cwd)
    }

    fn of_user(&self) -> Option<Instructions> {
        let own = self.state.as_ref().map(|state| state.join("AGENTS.md"));
        let home = self.home.as_ref();
        let other = home.map(|home| home.join(".claude/CLAUDE.md"));
        own.into_iter().chain(other).find_map(|path| {
            let bytes = foreign::read(&path, Links::Follow, LARGEST).map_err(io::Error::from);
            given(path.display().to_string(), bytes)
        })
    }

    /// A link or an import in the working directory must not leave it: the agent's tools can create both there.
    fn within<'a>(&'a self, root: &'a Path, dir: &Path) -> &'a Path {
        match dir.starts_with(&self.cwd) {
            true => &self.cwd,
            false => root,
        }
    }
}

pub fn workplace(cwd: &Path, platform: String, date: String) -> Workplace {
    let (root, _) = project(cwd);
    Workplace {
        cwd: cwd.display().to_string(),
        git: git(&root),
        root: (root != cwd).then(|| root.display().to_string()),
        platform,
        date,
    }
}

/// The root of the project, and the directories from there down to the working directory. The root is the nearest
/// directory that contains `.git`. Without one it is the working directory.
///
/// A directory of another owner ends the search: in a shared directory, every user can create files.
fn project(cwd: &Path) -> (PathBuf, Vec<PathBuf>) {
    let owner = |dir: &Path| dir.metadata().ok().map(|about| about.uid());
    let own = owner(cwd);
    let mut dirs = Vec::new();
    for dir in cwd.ancestors().take_while(|dir| owner(dir) == own) {
        dirs.push(dir.to_owned());
        if dir.join(".git").symlink_metadata().is_ok() {
            dirs.reverse();
            return (dir.to_owned(), dirs);
        }
    }
    (cwd.to_owned(), vec![cwd.to_owned()])
}

/// None if the file does not exist or has no text. A file that cannot be read is reported to the model, which can
/// tell the user.
fn given(path: String, read: io::Result<Vec<u8>>) -> Option<Instructions> {
    let text = match read {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => Err(error.to_string()),
    };
    let is_blank = text.as_ref().is_ok_and(|text| text.trim().is_empty());
    (!is_blank).then_some(Instructions { path, text })
}

/// A file of the project. A link may lead to another Markdown file of the project, and to nothing else: the working
/// directory can be the only part of the project that the agent's tools see.
fn of_project(root: &Path, path: &Path) -> io::Result<Vec<u8>> {
    if failpoint::injected_bug("links_followed") {
        return bounded(File::open(path)?);
    }
    let below = path.strip_prefix(root).map_err(io::Error::other)?;
    let root = rustix::fs::open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let file = foreign::open_at(&root, below, Links::Inside).map_err(|error| match error {
        foreign::Error::Io(error) if Errno::from_io_error(&error) != Some(Errno::XDEV) => error,
        foreign::Error::Io(_) | foreign::Error::Link => {
            let what = "it is a symbolic link that leaves the project or the working directory";
            io::Error::other(what)
        }
        error => error.into(),
    })?;
    let real = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let is_markdown = real
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("md") || end.eq_ignore_ascii_case("mdc"));
    if !is_markdown {
        let what = "it is a symbolic link to a file that is not Markdown";
        return Err(io::Error::other(what));
    }
    bounded(file)
}

/// The content of a regular file, if it is not too large.
fn bounded(file: File) -> io::Result<Vec<u8>> {
    Ok(foreign::bounded(file, LARGEST)?)
}

/// Reads the files of Git. Git itself is not run here: the configuration of a repository can name programs that it
/// starts.
fn git(root: &Path) -> Git {
    let at = root.join(".git");
    let dir = match at.symlink_metadata() {
        Ok(about) if about.is_dir() => at,
        // A work tree or a submodule: the file names the directory.
        Ok(_) => match head(&at)
            .as_deref()
            .and_then(|text| text.strip_prefix("gitdir: "))
        {
            Some(dir) => root.join(dir.trim_end()),
            None => return Git::None,
        },
        Err(_) => return Git::None,
    };
    let Some(head) = head(&dir.join("HEAD")) else {
        return Git::None;
    };
    let head = head.trim_end();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) if !branch.is_empty() && branch.len() <= LONGEST_BRANCH => {
            Git::Branch(branch.to_owned())
        }
        Some(_) => Git::None,
        None if !head.is_empty() && head.chars().all(|c| c.is_ascii_hexdigit()) => Git::Detached,
        None => Git::None,
    }
}

fn head(path: &Path) -> Option<String> {
    foreign::read_text(path, Links::NotLast, LONGEST_HEAD).ok()
}

#[cfg(test)]
mod tests;
