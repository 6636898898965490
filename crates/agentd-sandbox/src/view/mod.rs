//! The file system that a sandbox sees: planned as data from the policy, then built out of mounts.

pub(crate) mod build;
mod caches;
mod everything;
pub(crate) mod git;
pub(crate) mod home;
pub(crate) mod identity;
mod layers;
mod mounts;
mod named;
mod own;
mod passed;
mod paths;
pub(crate) mod private;
pub(crate) mod reach;
mod system;

pub(crate) use layers::Locks;

use crate::error::Result;
use crate::git::planted::Guarded;
use crate::policy::{Caches, Extent, GitConfig, Policy};
use passed::Passed;
use paths::{refuse, required, resolve, tree_path};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// What is at one path of the view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// A directory or file of the host.
    Bind { from: PathBuf, access: Access },
    /// Never pruned: renaming a mount point is refused, which is the purpose.
    Pin { access: Access },
    /// A parent directory of a mount inside the agent's own directory: created if it is missing, and pinned. Read-only if
    /// a tree of the user's is below it: what a tool wrote beside the tree would be in the agent's own directory, and
    /// the user would never see it.
    Way { access: Access },
    /// The agent's layer over what the user has there, if anything: a directory of one of the view's caches.
    Cache { of: usize, name: PathBuf },
    /// An empty, writable directory in memory.
    Memory,
    /// An empty directory.
    Dir,
    /// A symlink.
    Link { to: PathBuf },
    /// What is there can be neither read nor listed.
    Closed,
    /// A symlink in place of the file that is there: programs find the file that it leads to.
    Over { to: PathBuf },
    /// The content is hidden, except for the paths below it that the view shows.
    Hidden,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A plan: parents come before what is below them, because paths are ordered by their parts.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub at: BTreeMap<PathBuf, What>,
    /// Closed for this user, whether or not a tree shows them.
    closed: Vec<PathBuf>,
    /// What agentd itself keeps for the agent. It may lie in a closed directory.
    own: Vec<PathBuf>,
    /// Git directories that the tool can write to.
    pub git_dirs: Vec<Guarded>,
    /// The writable trees of the user.
    pub user_trees: Vec<PathBuf>,
    /// Tool chains and settings of the user's home that every sandbox shows.
    shown: Vec<PathBuf>,
    /// Trees in a closed directory of credentials, whose other contents stay closed.
    opened: Vec<PathBuf>,
    pub git_config: GitConfig,
    /// The git directories whose `config` the tool may write.
    pub open_configs: Vec<PathBuf>,
    /// Without symlinks in their paths.
    pub caches: Vec<Caches>,
    pub extent: Extent,
}

/// The user of the sandbox: root can open files that others cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    Ordinary,
}

impl User {
    pub fn current() -> Self {
        if rustix::process::geteuid().is_root() {
            Self::Root
        } else {
            Self::Ordinary
        }
    }
}

/// Where nothing of the host is ever bound: they are made new for each sandbox.
const OWN: &[&str] = &["/proc", "/dev"];

impl View {
    pub fn plan(policy: &Policy, user: User) -> Result<Self> {
        if policy.extent == Extent::Everything {
            return Self::everything(policy);
        }
        let mut view = Self {
            git_config: policy.git_config,
            open_configs: git::open_configs(policy),
            ..Self::default()
        };
        view.close(policy, user)?;
        system::add(&mut view);
        if policy.tmp.as_os_str().is_empty() {
            view.at.insert("/tmp".into(), What::Memory);
        } else {
            let tmp = view.own_bind(&policy.tmp)?;
            view.at.insert("/tmp".into(), tmp);
        }
        view.add_home(policy)?;
        for path in &policy.readable {
            view.add_tree(policy, path, Access::Read)?;
        }
        for path in &policy.writable {
            view.add_tree(policy, path, Access::Write)?;
        }
        let trees = view.trees(Access::Write);
        let of_user = trees.iter().filter(|tree| !view.is_own_dir(tree));
        view.user_trees = of_user.cloned().collect();
        for tree in view.user_trees.clone() {
            git::protect_with_submodules(&mut view, &tree, &policy.git_dirs);
        }
        for dir in &policy.git_dirs {
            git::open(&mut view, dir);
        }
        for caches in &policy.caches {
            view.add_caches(caches)?;
        }
        view.prune();
        let passed = view.passed(policy);
        view.cover(policy, &passed);
        view.add_own(policy)?;
        view.add_passed(&passed);
        view.hold_parents();
        view.hold_ways();
        view.unlink();
        Ok(view)
    }

    /// A symlink with entries of the view below it would redirect them: it becomes a directory.
    fn unlink(&mut self) {
        let links = self.at.iter().filter(|(path, what)| {
            // What is below a path follows it.
            let after = (Bound::Excluded(*path), Bound::Unbounded);
            let next = self.at.range::<PathBuf, _>(after).next();
            matches!(what, What::Link { .. })
                && next.is_some_and(|(next, _)| next.starts_with(path))
        });
        let links: Vec<PathBuf> = links.map(|(path, _)| path.clone()).collect();
        for path in links {
            self.at.insert(path, What::Dir);
        }
    }

    /// The home itself is the agent's own, or empty; what is shown of the user's is bound into it.
    fn add_home(&mut self, policy: &Policy) -> Result<()> {
        let home = &policy.home;
        if home.as_os_str().is_empty() || home == Path::new("/") {
            return Ok(());
        }
        let real = resolve(home)?.unwrap_or_else(|| home.clone());
        self.link(home, &real);
        for path in existing(&real, home::SHOWN) {
            // The name stays where programs look for it, though it may be a link into a directory of dot files.
            if let Ok(from) = fs::canonicalize(&path)
                && !self.is_closed(&from)
            {
                let access = Access::Read;
                self.shown.push(path.clone());
                self.at.insert(path, What::Bind { from, access });
            }
        }
        let trees = policy.writable.iter();
        let trees: Vec<PathBuf> = trees.flat_map(|tree| tree_path(policy, tree)).collect();
        let in_writable = |path: &Path| trees.iter().any(|tree| path.starts_with(tree));
        for name in home::PROFILES.iter().map(|name| real.join(name)) {
            if in_writable(&name) && name.is_file() && !policy.writable.contains(&name) {
                let access = Access::Read;
                self.at.insert(name, What::Pin { access });
            }
        }
        let what = if policy.own_home.as_os_str().is_empty() {
            What::Dir
        } else {
            self.own_bind(&policy.own_home)?
        };
        self.at.insert(real, what);
        Ok(())
    }

    fn add_tree(&mut self, policy: &Policy, path: &Path, access: Access) -> Result<()> {
        let real = match (resolve(path)?, access) {
            (Some(real), _) => real,
            (None, Access::Read) => return Ok(()),
            (None, Access::Write) => return Err(refuse(path, "it does not exist")),
        };
        if real == Path::new("/") {
            let why = "the whole file system is not allowed; name the directories";
            return Err(refuse(path, why));
        }
        if OWN.iter().any(|own| real.starts_with(own)) {
            let why = "a sandbox has its own /proc and /dev";
            return Err(refuse(path, why));
        }
        if self.is_closed(&real) && !self.is_own(&real) {
            return Err(refuse(path, "it is in a closed directory"));
        }
        if real != path && policy.without_links.iter().any(|it| it == path) {
            return Err(refuse(
                path,
                "a symlink leads elsewhere, which was not there before",
            ));
        }
        let changeable = |tree: &PathBuf| tree != path && path.starts_with(tree);
        if real != path && policy.writable.iter().any(changeable) {
            let why = "it is reached through a symlink that the tool can change";
            return Err(refuse(path, why));
        }
        self.link(path, &real);
        let from = real.clone();
        self.at.insert(real, What::Bind { from, access });
        Ok(())
    }

    /// Kept outputs and the agent's own socket, which may lie in a closed directory.
    fn add_own(&mut self, policy: &Policy) -> Result<()> {
        for path in policy.kept.iter().chain(&policy.socket_dir) {
            if let Some(real) = resolve(path)? {
                self.link(path, &real);
                self.own.push(real.clone());
                let from = real.clone();
                let access = Access::Read;
                self.at.insert(real, What::Bind { from, access });
            }
        }
        Ok(())
    }

    /// A tool could rename a parent directory of a read-only or closed path and create another one in its place.
    /// Parent directories in a writable tree are therefore pinned.
    fn hold_parents(&mut self) {
        let mut parents = Vec::new();
        for (path, what) in &self.at {
            let is_held = match what {
                What::Bind { access, .. } | What::Pin { access } => *access == Access::Read,
                What::Closed | What::Hidden | What::Over { .. } => true,
                _ => false,
            };
            let tree = self.writable_around(path).filter(|_| is_held);
            if let Some(tree) = tree {
                let above = path.ancestors().skip(1);
                let above = above.take_while(|above| *above != tree);
                parents.extend(above.map(Path::to_owned));
            }
        }
        for path in parents {
            // A closed path may not be there, but what is above it in the tree can be.
            if path.is_dir() && !self.at.contains_key(&path) {
                let access = Access::Write;
                self.at.insert(path, What::Pin { access });
            }
        }
    }

    /// The innermost writable tree of the host with this path in it.
    fn writable_around(&self, path: &Path) -> Option<&Path> {
        let mut around = path.ancestors().skip(1).filter_map(|above| {
            let (at, what) = self.at.get_key_value(above)?;
            match what {
                What::Bind { from, access } => Some((at, from == at && *access == Access::Write)),
                What::Pin { .. } | What::Dir | What::Link { .. } => None,
                _ => Some((at, false)),
            }
        });
        around
            .next()
            .filter(|(_, writable)| *writable)
            .map(|(at, _)| at.as_path())
    }

    pub fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }

    fn cover(&mut self, policy: &Policy, passed: &[Passed]) {
        let own = policy.kept.iter().chain(&policy.socket_dir);
        let own: Vec<PathBuf> = own
            .chain(&self.opened)
            .chain(passed.iter().map(|it| &it.real))
            .cloned()
            .collect();
        for path in self.closed.clone() {
            // Nothing of the host is there, and what the agent has made there stays its own.
            if self.own_around(&path).is_some() {
                continue;
            }
            let has_own = own.iter().any(|inside| {
                let real = fs::canonicalize(inside);
                real.is_ok_and(|real| real.starts_with(&path))
            });
            let what = if has_own { What::Hidden } else { What::Closed };
            self.at.insert(path, what);
        }
    }

    pub fn is_closed(&self, path: &Path) -> bool {
        self.closed.iter().any(|closed| path.starts_with(closed))
    }

    pub fn closed(&self) -> &[PathBuf] {
        &self.closed
    }

    /// Lets programs use a path of the policy that contains a symlink.
    fn link(&mut self, path: &Path, real: &Path) {
        if path != real {
            let to = real.to_owned();
            self.at.insert(path.to_owned(), What::Link { to });
        }
    }

    /// Paths of the trees with this access.
    pub fn trees(&self, wanted: Access) -> Vec<PathBuf> {
        let trees = self.at.iter().filter(|(_, what)| match what {
            What::Bind { access, .. } => *access == wanted,
            What::Memory | What::Cache { .. } => wanted == Access::Write,
            _ => false,
        });
        trees.map(|(path, _)| path.clone()).collect()
    }

    /// Removes entries that their parent shows in the same way: each mount costs time.
    fn prune(&mut self) {
        let is_same = |(path, what): &(&PathBuf, &What)| {
            let around = path.ancestors().skip(1).find_map(|above| {
                let around = self.at.get_key_value(above)?;
                (!matches!(around.1, What::Link { .. } | What::Dir)).then_some(around)
            });
            // A closed directory is around it, and is covered later.
            if self.is_own(path) && !around.is_some_and(|(at, _)| self.is_own(at)) {
                return false;
            }
            match (around, what) {
                (
                    Some((at, What::Bind { from, access })),
                    What::Bind {
                        from: ours,
                        access: wanted,
                    },
                ) => from == at && ours == *path && access == wanted,
                (Some((at, What::Bind { from, .. })), What::Dir) => from == at,
                _ => false,
            }
        };
        let same = self.at.iter().filter(is_same);
        let same: Vec<PathBuf> = same.map(|(path, _)| path.clone()).collect();
        for path in same {
            self.at.remove(&path);
        }
    }
}

/// The names that exist. Most do not, and checking is cheaper than resolving.
fn existing(dir: &Path, names: &[&str]) -> impl Iterator<Item = PathBuf> {
    let paths = names.iter().map(|name| dir.join(name));
    paths.filter(|path| fs::symlink_metadata(path).is_ok())
}

#[cfg(test)]
mod tests;
