//! The runs: as root and as an ordinary user, with and without namespaces, defended, as a control, and with
//! each layer alone. Each is a separate process, under the user that it is about.

use super::THEMES;
use super::layers::{self, Mode};
use super::testbed::end_all;
use crate::harness::Program;
use crate::lab::testbed::lock;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// The ordinary user, if the siege runs as root.
const USER: u32 = 54_321;

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Also with each layer alone.
    pub long: bool,
    pub only: Option<String>,
    pub json: bool,
}

/// The user of the daemon and its agents, and the kernel's abilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ground {
    Root,
    User,
    /// Without namespaces: nested in a user namespace that allows no more.
    RootWithoutNamespaces,
    UserWithoutNamespaces,
}

impl Ground {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "ordinary user",
            Self::RootWithoutNamespaces => "root, no namespaces",
            Self::UserWithoutNamespaces => "ordinary user, no namespaces",
        }
    }

    pub(super) const fn is_root(self) -> bool {
        matches!(self, Self::Root | Self::RootWithoutNamespaces)
    }

    pub const fn has_namespaces(self) -> bool {
        matches!(self, Self::Root | Self::User)
    }
}

/// The result of an attack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tried {
    pub theme: String,
    pub attack: String,
    /// Evidence from outside that it succeeded.
    pub evidence: Option<String>,
    /// Why it could not be tried.
    pub error: Option<String>,
    /// The end of what the model saw last.
    pub saw: String,
    pub took_ms: u64,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub ground: Ground,
    pub mode: String,
    pub tried: Vec<Tried>,
    pub took_ms: u64,
}

/// The arguments of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    pub root: PathBuf,
    pub ground: Ground,
    pub mode: String,
    pub only: Option<String>,
}

/// Whether a process may trace another one of its user: on many machines Yama prevents it.
pub(super) fn may_trace() -> bool {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    scope.map_or(true, |scope| scope.trim() == "0")
}

pub struct Siege {
    pub runs: Vec<Run>,
    /// What this machine cannot run, one line each.
    pub skipped: Vec<String>,
    pub took_ms: u64,
}

/// All runs, two at a time.
pub fn siege(options: &Options, progress: &(dyn Fn(&Run) + Sync)) -> io::Result<Siege> {
    let begin = Instant::now();
    check(options)?;
    let dir = tempfile::Builder::new().prefix("sg").tempdir_in(base())?;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
    let bin = dir.path().join("bin");
    fs::create_dir(&bin)?;
    let agentd = Program::beside_this_one()?;
    for name in ["agentd", "agentd-lab"] {
        fs::copy(agentd.with_file_name(name), bin.join(name))?;
    }
    let (grounds, skipped) = grounds();
    let mut orders = Vec::new();
    for ground in &grounds {
        orders.push((*ground, Mode::Defended));
        if ground.has_namespaces() {
            orders.push((*ground, Mode::Control));
        }
    }
    if options.long {
        // Root's run has every attack.
        let first = grounds.iter().find(|ground| ground.has_namespaces());
        if let Some(ground) = first {
            let alone = layers::ALL.iter().map(|layer| Mode::Alone(layer.bug));
            orders.extend(alone.map(|mode| (*ground, mode)));
        }
    }
    orders.reverse();
    let orders = Mutex::new(orders);
    let runs = Mutex::new(Vec::new());
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..WIDTH {
            scope.spawn(|| {
                while let Some((ground, mode)) = { lock(&orders).pop() } {
                    match start(dir.path(), &bin, ground, mode, options) {
                        Ok(run) => {
                            progress(&run);
                            lock(&runs).push(run);
                        }
                        Err(error) => {
                            *lock(&failed) = Some(error);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = lock(&failed).take() {
        return Err(error);
    }
    let mut runs = std::mem::take(&mut *lock(&runs));
    runs.sort_by_key(|run| {
        (
            run.ground as u8,
            run.mode != "defended",
            run.mode != "control",
        )
    });
    Ok(Siege {
        runs,
        skipped,
        took_ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}

/// Where a home may be: a sandbox has its own `/tmp`, which would hide a home there for another reason.
fn base() -> PathBuf {
    let mut bases = ["/srv", "/home"].iter().map(PathBuf::from);
    let found = bases.find(|base| {
        let probe = tempfile::Builder::new().prefix("sg").tempdir_in(base);
        probe.is_ok()
    });
    found.unwrap_or_else(std::env::temp_dir)
}

/// Checks that the attack exists, and that this machine has the programs that attacks need.
fn check(options: &Options) -> io::Result<()> {
    let mut names = THEMES.iter().flat_map(|theme| {
        let attacks = theme.attacks.iter().map(|attack| attack.name);
        attacks.chain([theme.name])
    });
    if let Some(only) = &options.only
        && !names.any(|name| name == only)
    {
        return Err(io::Error::other(format!("there is no attack `{only}`")));
    }
    for program in ["bash", "git", "python3", "timeout", "unshare", "setpriv"] {
        if !succeeds(Command::new(program).arg("--version")) {
            return Err(io::Error::other(format!("the siege needs `{program}`")));
        }
    }
    Ok(())
}

/// Most of the time is spent waiting.
const WIDTH: usize = 4;

/// The kinds of runs that this machine supports.
fn grounds() -> (Vec<Ground>, Vec<String>) {
    let is_root = rustix::process::geteuid().is_root();
    let mut grounds = Vec::new();
    let mut skipped = Vec::new();
    let own: &[Ground] = match is_root {
        true => &[Ground::Root, Ground::User],
        false => &[Ground::User],
    };
    if !is_root {
        skipped
            .push("skipped: as root, and another user: the siege does not run as root".to_owned());
    }
    if succeeds(Command::new("unshare").args([
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--fork",
        "true",
    ])) {
        grounds.extend(own);
    } else {
        skipped.push("skipped: with namespaces: this kernel has none".to_owned());
    }
    if own.contains(&Ground::User) && !may_trace() {
        skipped
            .push("skipped: debuggers and memory as an ordinary user: Yama forbids it".to_owned());
    }
    for ground in own {
        let nested = match ground.is_root() {
            true => Ground::RootWithoutNamespaces,
            false => Ground::UserWithoutNamespaces,
        };
        let mut probe = within(nested, Path::new("/bin/true"), is_root);
        match succeeds(&mut probe) {
            true => grounds.push(nested),
            false => skipped.push(format!(
                "skipped: {}: it cannot be set up here",
                nested.name()
            )),
        }
    }
    (grounds, skipped)
}

fn succeeds(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// A program in this environment.
fn within(ground: Ground, program: &Path, is_root: bool) -> Command {
    let mut command = match ground {
        Ground::Root | Ground::User => Command::new(program),
        Ground::RootWithoutNamespaces | Ground::UserWithoutNamespaces => {
            let map = match ground.is_root() {
                true => ["--user", "--map-root-user"].as_slice(),
                false => ["--user", "--map-current-user", "--keep-caps"].as_slice(),
            };
            let script = "for kind in user mnt pid net ipc uts cgroup; do \
                          echo 0 > /proc/sys/user/max_${kind}_namespaces || exit 1; done; \
                          exec setpriv --ambient-caps=-all --inh-caps=-all \"$0\" \"$@\"";
            let mut command = Command::new("unshare");
            command.args(map).args(["sh", "-c", script]).arg(program);
            command
        }
    };
    if is_root && !ground.is_root() {
        command.uid(USER).gid(USER);
    }
    command
}

fn start(dir: &Path, bin: &Path, ground: Ground, mode: Mode, options: &Options) -> io::Result<Run> {
    let begin = Instant::now();
    let is_root = rustix::process::geteuid().is_root();
    let root = dir.join(format!("{}-{}", ground as u8, mode.name()));
    fs::create_dir(&root)?;
    if is_root && !ground.is_root() {
        std::os::unix::fs::chown(&root, Some(USER), Some(USER))?;
    }
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755))?;
    let order = Order {
        root: root.clone(),
        ground,
        mode: mode.name().to_owned(),
        only: options.only.clone(),
    };
    let mut command = within(ground, &bin.join("agentd-lab"), is_root);
    let output = command
        .arg("siege-worker")
        .arg(serde_json::to_string(&order)?)
        .env("HOME", &root)
        .env("TMPDIR", &root)
        .current_dir(&root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    end_all(&root);
    if !output.status.success() {
        let name = format!("{} ({})", ground.name(), mode.name());
        return Err(io::Error::other(format!("{name}: the worker failed")));
    }
    let run = Run {
        ground,
        mode: mode.name().to_owned(),
        tried: serde_json::from_slice(&output.stdout)?,
        took_ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    let _left = fs::remove_dir_all(&root);
    Ok(run)
}
