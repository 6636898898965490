//! What one tool process may see, write and reach. Plain data: it travels to the shim as JSON.

use crate::git::outside::OutsideGitDir;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What one tool process may see, write and reach.
///
/// Every path is absolute. A path is resolved once, when the view is planned; none may be reached through a symlink
/// that lies in a directory which the tool itself can write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The work tree and other directories. Empty for a read-only sandbox. Each must exist.
    pub writable: Vec<PathBuf>,
    /// Directories and files besides the system's own. One that does not exist is skipped.
    pub readable: Vec<PathBuf>,
    /// Those of both that were reached without symlinks when they were checked. One that a symlink leads to by now is an
    /// error: a tool of another agent may have made it.
    pub without_links: Vec<PathBuf>,
    /// The git directories outside these trees, as they were decided before a tool could write a tree. A tree has no
    /// other one: nothing in it is evidence.
    pub git_dirs: Vec<OutsideGitDir>,
    /// The user's home: closed except for tool chains, git's user configuration, `readable` and `writable`.
    pub home: PathBuf,
    /// The agent's own directory that a sandboxed process finds at `home`. Tool chains and caches are bound into it.
    /// Empty means an empty home that cannot be written.
    pub own_home: PathBuf,
    /// Never visible, wherever they are: the state directory. `kept`, `tmp`, `own_home`, `socket_dir` and the layers of
    /// caches may lie inside; `readable`, `writable` and `passed` may not. One that does not exist when the process starts is skipped.
    pub closed: Vec<PathBuf>,
    /// The agent's own directory that becomes `/tmp`. Empty means a new tmpfs for each process.
    pub tmp: PathBuf,
    /// Tool caches: layers of the agent's own over the user's.
    pub caches: Vec<Caches>,
    /// Bound read-only: kept outputs, whose paths the model knows. One that does not exist is skipped.
    pub kept: Vec<PathBuf>,
    /// The directory of the agent's own socket, bound read-only at the same path. The directory and not the socket: a
    /// daemon that restarts makes a new socket.
    pub socket_dir: Option<PathBuf>,
    /// Sockets and files of the user's services, bound read-only at the same path, also in a directory of credentials
    /// whose other contents stay hidden. A program can connect to a socket on a read-only mount. One is skipped if it
    /// does not exist, is in `closed`, or is reached through a symlink that the tool can change.
    pub passed: Vec<PathBuf>,
    pub network: Network,
    /// What can be written in the git directories of writable trees.
    pub git_config: GitConfig,
    /// The tree whose `config` [`GitConfig::Open`] opens; not those of its submodules, and of no other tree.
    pub open_config: PathBuf,
    pub extent: Extent,
    /// Where it is recorded what tools planted and what could not be moved away: while a name of the record is there, no
    /// process of this policy starts. In a directory that no tool sees; empty means no record. See
    /// [`planted`](crate::planted()).
    pub planted: PathBuf,
    /// A foreground sandbox ends with its leader. A background sandbox ends with its last process.
    pub foreground: bool,
    /// For root: what others cannot read in directories of the system, closed as well unless it is listed by name. None means
    /// that it is searched for. The process that sends the policy knows it already: see [`private_paths`](crate::private_paths).
    pub private: Option<Vec<PathBuf>>,
    /// The program is agentd's own and runs no other. It may give files any mode, and use `openat2`, whose modes the
    /// filter cannot see.
    pub is_own_program: bool,
}

/// Tool caches that share one layer: writes go to `upper`, and what the user has is visible below them. It is one
/// overlayfs for all of them, because the kernel takes long to make one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caches {
    /// The user's directory in which they lie. It is never changed, and only the caches are shown of it.
    pub lower: PathBuf,
    /// The directories below `lower` where tools look for them, on its file system. An empty name is `lower` itself.
    pub names: Vec<PathBuf>,
    /// What the agent's calls have written, under the same names. Must exist, with a directory for each name.
    pub upper: PathBuf,
    /// For overlayfs: an empty directory on the file system of `upper`. Must exist. Overlayfs leaves directories of
    /// mode 0 in it, whose modes must be changed before an ordinary user can remove them.
    pub work: PathBuf,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// The network of the host.
    #[default]
    On,
    /// A network of its own that has nothing but loopback.
    Off,
    /// The same, with a listener on that loopback. The caller serves it, from its own network: see
    /// [`Started::gate`](crate::Started::gate).
    Gate { port: u16 },
}

impl Network {
    /// A gate on the port that sandboxes use.
    pub const GATE: Self = Self::Gate { port: 3128 };
}

/// A tool that writes git's configuration makes the user's next git command run a program of its choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GitConfig {
    /// A tool has a copy of each `config`. What makes git run programs is read-only, or is watched if it is not there.
    #[default]
    Protected,
    /// `config` of one tree too: see [`Policy::open_config`].
    Open,
    /// Nothing, so nothing is copied, watched or settled: for a view that lasts while the user works in the same
    /// repositories. A tree that is itself a git directory is watched nevertheless.
    Sealed,
}

/// How much of the host a process sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// What the policy lists.
    #[default]
    Listed,
    /// All files, devices and sockets of the host, with the rights of the user; only `closed` stays hidden, and other
    /// processes. The lists of the policy do not count, except `closed`, `kept` and `socket_dir`. The process gains no
    /// privileges: it cannot become another user.
    Everything,
}
