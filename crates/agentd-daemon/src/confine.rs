//! The sandbox policy of an agent's tools, and of hooks that are not the user's own, from the agent's settings.

mod caches;
pub mod certificates;

use crate::services;
use agentd_client::api::Env;
use agentd_core::environment::{DirUse, dir_use};
use agentd_core::spec::{AgentSpec, Network, Sandbox};
use agentd_failpoint as failpoint;
use agentd_process::task::Confined;
use agentd_sandbox::{OutsideGitDir, Policy, Reach};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The sandbox level of agents whose settings name none. For a container that is itself the sandbox, and for tests.
pub const VARIABLE: &str = "AGENTD_SANDBOX";

/// The directories that the policy is made of.
pub struct AgentDirs<'a> {
    pub cwd: &'a Path,
    /// The agent's directory in the state directory.
    pub dir: &'a Path,
    /// The state directory, which is closed to tools.
    pub state: Option<&'a Path>,
    /// The agent's variables: they name the user's home, the directory of tool chains and the sockets of services.
    pub env: &'a Env,
    /// The value of [`VARIABLE`]: the level if the settings name none.
    pub default_level: Option<String>,
    /// The directory with the socket of the agent's tools. Without it tools cannot reach the daemon.
    pub socket_dir: Option<&'a Path>,
}

impl AgentDirs<'_> {
    /// The user's home.
    pub fn home(&self) -> Option<PathBuf> {
        self.path("HOME")
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        let value = self.env.get(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{VARIABLE} is `{0}`, which is not a sandbox level")]
    NoSuchLevel(String),
    #[error("the directories of the tools cannot be created")]
    OwnDirs(#[source] io::Error),
    #[error(
        "{} leads to {} through a symbolic link, which was not there when the settings were made",
        .given.display(),
        .real.display()
    )]
    Link { given: PathBuf, real: PathBuf },
}

/// None means no sandbox: tools may do what their user may do.
pub fn confined(spec: &AgentSpec, dirs: &AgentDirs<'_>) -> Result<Option<Confined>, Error> {
    let level = level(spec, dirs.default_level.as_deref())?;
    if level == Sandbox::FullAccess {
        return Ok(None);
    }
    let is_read_only = level == Sandbox::ReadOnly;
    let home = dirs.home().filter(|home| home.is_dir());
    let path = |path: &String| expanded(path, home.as_deref());
    let mut readable: Vec<PathBuf> = spec.readable.iter().map(path).collect();
    // An agent without a daemon has its journal in its own directory, which is then closed to its tools.
    let closed = dirs.state.unwrap_or(dirs.dir);
    // The directory of the user's tool chains, if it is not the default one.
    let tool_chains = dirs.path("RUSTUP_HOME").into_iter();
    let tool_chains = tool_chains.flat_map(fs::canonicalize);
    readable.extend(tool_chains.filter(|dir| holds_tool_chains(dir, dirs, closed)));
    readable.extend(certificates::readable(dirs, closed));
    let mut writable: Vec<PathBuf> = spec.writable.iter().map(path).collect();
    match is_read_only {
        true => readable.push(dirs.cwd.to_owned()),
        false => writable.push(dirs.cwd.to_owned()),
    }
    let named: Vec<PathBuf> = spec
        .readable
        .iter()
        .chain(&spec.writable)
        .map(path)
        .collect();
    let named: Vec<PathBuf> = named.into_iter().chain([dirs.cwd.to_owned()]).collect();
    let is_checked = !failpoint::injected_bug("links_followed");
    let without_links = match is_checked {
        true => with_real_paths(&named)?,
        false => Vec::new(),
    };
    let tmp = dirs.dir.join("tmp");
    let own_home = dirs.dir.join("home");
    for dir in [&tmp, &own_home] {
        make(dir).map_err(Error::OwnDirs)?;
    }
    let caches = match &home {
        Some(home) if !home.starts_with(closed) => {
            caches::layers(home, dirs.dir).map_err(Error::OwnDirs)?
        }
        _ => Vec::new(),
    };
    let trees = writable.iter().chain(&readable);
    let git_dirs = trees.flat_map(fs::canonicalize);
    let git_dirs = git_dirs
        .filter_map(|tree| OutsideGitDir::of(&tree))
        .collect();
    let policy = Policy {
        git_dirs,
        writable,
        readable,
        home: home.unwrap_or_else(|| closed.to_owned()),
        closed: vec![closed.to_owned(), dirs.dir.to_owned()],
        own_home,
        tmp,
        caches,
        without_links,
        open_config: dirs.cwd.to_owned(),
        planted: dirs.dir.join(PLANTED),
        kept: vec![dirs.dir.join("outputs"), dirs.dir.join("tasks")],
        socket_dir: dirs
            .socket_dir
            .filter(|dir| dir.is_dir())
            .map(Path::to_owned),
        passed: services::find(spec, dirs.env)
            .into_iter()
            .flat_map(|(_, service)| service.paths)
            .collect(),
        network: match &spec.network {
            None | Some(Network::On) => agentd_sandbox::Network::On,
            Some(Network::Off) => agentd_sandbox::Network::Off,
            Some(Network::Hosts(_)) => agentd_sandbox::Network::GATE,
        },
        foreground: true,
        ..Policy::default()
    };
    let hosts = match &spec.network {
        Some(Network::Hosts(hosts)) => hosts.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    Ok(Some(Confined {
        policy,
        is_read_only,
        hosts,
    }))
}

/// In the directory of an agent: what its tools planted in a repository and what could not be moved away.
const PLANTED: &str = "planted";

/// Why no tool of an agent starts, in words; `dir` is the directory of the agent.
pub fn why_no_tool_starts(dir: &Path) -> Option<String> {
    let path = agentd_sandbox::planted(&dir.join(PLANTED))?;
    let path = path.display();
    Some(format!(
        "git would run programs because of {path}, which a tool made and agentd cannot move away; remove it, and tools start again"
    ))
}

/// Directories of the system and of other users. An escalated call gets no additional rights to them.
const OF_SYSTEM: [&str; 21] = [
    "bin",
    "boot",
    "dev",
    "etc",
    "gnu",
    "home",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "lost+found",
    "nix",
    "proc",
    "root",
    "run",
    "sbin",
    "snap",
    "sys",
    "tmp",
    "usr",
    "var",
];

/// The policy of an escalated call that does not say what it needs, and that the user approved before calls did: it may
/// write the user's home and every directory that is not the system's, and has the network. No new call gets it.
pub fn escalated(ordinary: &Confined) -> Confined {
    let mut wide = ordinary.policy.clone();
    let is_open = |path: &PathBuf| !wide.closed.iter().any(|closed| path.starts_with(closed));
    let top = std::fs::read_dir("/").into_iter().flatten().flatten();
    let top = top.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let top = top.filter(|entry| {
        let name = entry.file_name();
        !OF_SYSTEM.iter().any(|known| name == *known)
    });
    let home = Some(wide.home.clone()).filter(|home| home.is_dir() && *home != Path::new("/"));
    let wider: Vec<PathBuf> = top
        .map(|entry| entry.path())
        .chain(home)
        .filter(is_open)
        .collect();
    if ordinary.is_read_only {
        // The working directory is among the readable directories, and becomes writable.
        wide.writable.append(&mut wide.readable);
    }
    wide.writable.extend(wider);
    wide.network = agentd_sandbox::Network::On;
    Confined {
        policy: wide,
        is_read_only: false,
        hosts: Vec::new(),
    }
}

/// The settings name directories without links (`lifecycle/resolve_dirs`). A link that is there now may have been made by a
/// tool of another agent, which may do so at any time: the sandbox looks once more. Returns those that are there.
fn with_real_paths(named: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for given in named {
        let Ok(real) = fs::canonicalize(given) else {
            continue;
        };
        if real != *given {
            let given = given.clone();
            return Err(Error::Link { given, real });
        }
        found.push(real);
    }
    Ok(found)
}

/// `TMPDIR` for tools in a sandbox, of the variables that are set for them: the user's own directory is not visible there.
pub fn tmp(set: &Env) -> (String, String) {
    const NAME: &str = "TMPDIR";
    let wanted = set.get(NAME).cloned();
    (NAME.to_owned(), wanted.unwrap_or_else(|| "/tmp".to_owned()))
}

/// The variables that name a directory which tools cannot use in their sandbox: they find nothing there, or cannot write
/// to it. Without the variable they work with their default. Variables that the settings name are not among them.
pub fn unusable(
    env: &Env,
    is_named: impl Fn(&str) -> bool,
    confined: &Confined,
) -> BTreeSet<String> {
    let dirs = env.iter().filter_map(|(name, value)| {
        let dir_use = dir_use(name).filter(|_| !is_named(name))?;
        // A list of directories is judged by its first one.
        let first = Path::new(value.split(':').next()?);
        let is_whole = first.is_absolute() && !value.contains("..");
        is_whole.then(|| (name, dir_use, first.to_owned()))
    });
    let dirs: Vec<(&String, DirUse, PathBuf)> = dirs.collect();
    let paths: Vec<PathBuf> = dirs.iter().map(|(_, _, path)| path.clone()).collect();
    // A policy that cannot be used is reported when a tool starts.
    let reached = agentd_sandbox::reach(&confined.policy, &paths).unwrap_or_default();
    let unusable = dirs
        .iter()
        .zip(reached)
        .filter(|((_, dir_use, _), reach)| !match dir_use {
            DirUse::Read => matches!(reach, Reach::Read | Reach::Write),
            DirUse::Write => matches!(reach, Reach::Own | Reach::Write),
        });
    unusable.map(|((name, _, _), _)| (*name).clone()).collect()
}

/// Whether a directory may be made readable as a directory of tool chains. One that contains the home or the state
/// directory would expose more than tool chains; one in the working directory is visible already. `dir` is canonical.
fn holds_tool_chains(dir: &Path, dirs: &AgentDirs<'_>, closed: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (cwd, closed) = (real(dirs.cwd), real(closed));
    let home = dirs.home().as_deref().map(real);
    let is_around = home.is_some_and(|home| home.starts_with(dir)) || closed.starts_with(dir);
    let is_inside = dir.starts_with(cwd) || dir.starts_with(closed);
    dir.join("toolchains").is_dir() && !is_around && !is_inside
}

/// The level of an agent: its own, or the default one.
pub fn level(spec: &AgentSpec, default: Option<&str>) -> Result<Sandbox, Error> {
    if let Some(level) = spec.sandbox {
        return Ok(level);
    }
    let Some(name) = default.filter(|name| !name.is_empty()) else {
        return Ok(Sandbox::default());
    };
    serde_json::from_value(name.into()).map_err(|_| Error::NoSuchLevel(name.to_owned()))
}

/// A path of the settings, in which `~` is the home.
pub fn expanded(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix('~'), home) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
