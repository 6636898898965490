//! What one tool process may see, write and reach. Plain data: it travels to the shim as JSON.

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
    /// A foreground sandbox ends with its leader. A background sandbox ends with its last process.
    pub foreground: bool,
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
