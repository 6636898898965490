//! A small host for a test: a home, a state directory, a work tree; and jobs that run in it.

use agentd_sandbox::{Caches, Network, Policy};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

pub const ATTACK: &str = env!("CARGO_BIN_EXE_agentd-sandbox-attack");
const SHIM: &str = env!("CARGO_BIN_EXE_agentd-sandbox-shim");

/// Stands for an ordinary user; no account needs to exist.
const ORDINARY: u32 = 54321;

/// Text that a sandboxed program must never read.
pub const SECRET: &str = "canary-6c1f";

pub struct Testbed {
    _dir: TempDir,
    pub root: PathBuf,
    pub user: Option<u32>,
    pub policy: Policy,
    pub env: BTreeMap<String, String>,
}

impl Testbed {
    /// Below `/tmp`, which the sandbox replaces by its own.
    pub fn in_tmp(user: Option<u32>) -> Self {
        Self::new(tempfile::tempdir_in("/tmp").unwrap(), user)
    }

    /// Somewhere else.
    pub fn elsewhere(user: Option<u32>) -> Self {
        Self::new(tempfile::tempdir_in("/var/tmp").unwrap(), user)
    }

    fn new(dir: TempDir, user: Option<u32>) -> Self {
        let root = fs::canonicalize(dir.path()).unwrap();
        for name in [
            "home/.ssh",
            "home/.config/git",
            "home/.cargo/bin",
            "home/.cache/tool",
            "home/private",
            "state/kept",
            "state/upper/.cache/tool",
            "state/upper/.npm",
            "state/work",
            "state/socket",
            "own",
            "tmp",
            "tree",
            "other",
        ] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in [
            "home/.ssh/id",
            "home/.config/git/credentials",
            "home/private/file",
            "state/secret",
            "other/file",
        ] {
            fs::write(root.join(name), SECRET).unwrap();
        }
        fs::write(root.join("home/.gitconfig"), "[user]\nname=A\nemail=a@b\n").unwrap();
        fs::write(root.join("home/.cargo/bin/tool"), "a tool").unwrap();
        fs::write(root.join("home/.cache/tool/users"), "of the user").unwrap();
        fs::write(root.join("state/kept/output"), "kept output").unwrap();
        fs::write(root.join("tree/file"), "in the tree").unwrap();
        let policy = Policy {
            writable: vec![root.join("tree")],
            git_dirs: Vec::new(),
            readable: vec![Path::new(ATTACK).to_owned()],
            home: root.join("home"),
            closed: vec![root.join("state")],
            own_home: root.join("own"),
            tmp: root.join("tmp"),
            caches: vec![Caches {
                lower: root.join("home"),
                names: vec![".cache/tool".into(), ".npm".into()],
                upper: root.join("state/upper"),
                work: root.join("state/work"),
            }],
            kept: vec![root.join("state/kept/output")],
            socket_dir: Some(root.join("state/socket")),
            passed: Vec::new(),
            network: Network::On,
            foreground: true,
            ..Policy::default()
        };
        let mut env = BTreeMap::new();
        env.insert(
            "PATH".to_owned(),
            "/usr/local/bin:/usr/bin:/bin:/usr/sbin".to_owned(),
        );
        env.insert("HOME".to_owned(), policy.home.display().to_string());
        let testbed = Self {
            _dir: dir,
            root,
            user,
            policy,
            env,
        };
        testbed.give_away();
        testbed
    }

    /// Gives all files to the user of the testbed.
    pub fn give_away(&self) {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&self.root, mode).unwrap();
        if let Some(user) = self.user {
            give(&self.root, user);
        }
    }

    pub fn path(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    pub fn tree(&self) -> PathBuf {
        self.root.join("tree")
    }

    pub fn shell(&self, script: &str) -> Ran {
        self.run(self.job("/bin/sh", &["-c", script]))
    }

    /// The same outside of any sandbox.
    pub fn plain_shell(&self, script: &str) -> Ran {
        let mut job = self.job("/bin/sh", &["-c", script]);
        job["level"] = json!("plain");
        self.run(job)
    }

    /// The result of an attack: `ok` or `errno N`.
    pub fn attack(&self, args: &[&str]) -> String {
        let ran = self.run(self.job(ATTACK, args));
        ran.output().trim().to_owned()
    }

    pub fn plain_attack(&self, args: &[&str]) -> String {
        let mut job = self.job(ATTACK, args);
        job["level"] = json!("plain");
        self.run(job).output().trim().to_owned()
    }

    pub fn job(&self, program: &str, args: &[&str]) -> Value {
        json!({
            "user": self.user,
            "policy": self.policy,
            "program": program,
            "args": args,
            "env": self.env,
            "cwd": self.tree(),
        })
    }

    pub fn run(&self, job: Value) -> Ran {
        self.begin(job).finish()
    }

    pub fn begin(&self, job: Value) -> Running {
        let mut child = Command::new(SHIM)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(job.to_string().as_bytes()).unwrap();
        drop(stdin);
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        let first = serde_json::from_str(&first).unwrap_or(Value::Null);
        Running {
            child,
            lines,
            first,
        }
    }
}

/// Overlayfs leaves directories without any permissions, which an ordinary user cannot remove.
impl Drop for Testbed {
    fn drop(&mut self) {
        for left in ["work", "work/incompat", "work/incompat/volatile"] {
            let left = self.root.join("state/work").join(left);
            let _ = fs::set_permissions(left, fs::Permissions::from_mode(0o700));
        }
    }
}

fn give(path: &Path, user: u32) {
    let kind = fs::symlink_metadata(path).unwrap();
    if kind.is_symlink() {
        return;
    }
    chown(path, Some(user), Some(user)).unwrap();
    if kind.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), user);
        }
    }
}

/// A running shim.
pub struct Running {
    pub child: Child,
    lines: BufReader<ChildStdout>,
    pub first: Value,
}

impl Running {
    /// The pid of the init on the host.
    pub fn pid(&self) -> i32 {
        let pid = self.first["pid"].as_i64();
        i32::try_from(pid.unwrap_or_else(|| panic!("not started: {}", self.first))).unwrap()
    }

    pub fn finish(mut self) -> Ran {
        let mut last = String::new();
        self.lines.read_line(&mut last).unwrap();
        self.child.wait().unwrap();
        let last = serde_json::from_str(&last).unwrap_or(Value::Null);
        Ran {
            first: self.first,
            last,
        }
    }
}

#[derive(Debug)]
pub struct Ran {
    pub first: Value,
    pub last: Value,
}

impl Ran {
    pub fn output(&self) -> &str {
        let output = self.last["output"].as_str();
        output.unwrap_or_else(|| panic!("it did not run: {self:?}"))
    }

    pub fn code(&self) -> Option<i64> {
        self.last["ended"]["code"].as_i64()
    }

    /// What was refused to it in repositories.
    pub fn refused(&self) -> &Value {
        &self.last["refused"]
    }

    pub fn signal(&self) -> Option<i64> {
        self.last["ended"]["signal"].as_i64()
    }

    #[track_caller]
    pub fn succeeds(&self) -> &Self {
        assert_eq!(self.code(), Some(0), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn fails(&self) -> &Self {
        assert_ne!(self.code(), Some(0), "{self:#?}");
        assert!(self.last["ended"].is_object(), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn has_no_secret(&self) -> &Self {
        assert!(!self.output().contains(SECRET), "{self:#?}");
        self
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The users under which a test runs: the current one, and an ordinary one if the current one is root.
pub fn users() -> Vec<Option<u32>> {
    if is_root() && is_mapped(ORDINARY) {
        return vec![None, Some(ORDINARY)];
    }
    println!("skipped: the second user takes root");
    vec![None]
}

/// Whether this user exists here: in a user namespace, only root may be mapped.
fn is_mapped(user: u32) -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap();
    map.lines().any(|line| {
        let mut numbers = line
            .split_whitespace()
            .filter_map(|number| number.parse::<u64>().ok());
        let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
        let first = first.unwrap_or(0);
        (first..first + count.unwrap_or(0)).contains(&u64::from(user))
    })
}

fn supported() -> &'static Value {
    static SUPPORT: OnceLock<Value> = OnceLock::new();
    SUPPORT.get_or_init(|| {
        let testbed = Testbed::in_tmp(None);
        let job = json!({ "level": "support", "policy": testbed.policy });
        testbed.begin(job).first
    })
}

/// Whether this machine supports what a test needs; otherwise prints that the test is skipped.
pub fn can(what: &str) -> bool {
    let supported = &supported()[what];
    if supported == &json!(true) {
        return true;
    }
    println!("skipped: {what}: {supported}");
    false
}

pub fn landlock() -> u64 {
    supported()["landlock"].as_u64().unwrap_or(0)
}

/// A testbed for each user, or none where there are no namespaces.
pub fn testbeds() -> Vec<Testbed> {
    if !can("namespaces") {
        return Vec::new();
    }
    let mut testbeds = Vec::new();
    for user in users() {
        testbeds.push(Testbed::in_tmp(user));
        testbeds.push(Testbed::elsewhere(user));
    }
    testbeds
}
