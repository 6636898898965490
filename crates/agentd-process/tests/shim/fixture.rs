//! The fixture of a test: a directory for its task. It ends every process that was started there.

use agentd_failpoint::Passed;
use agentd_failpoint::plan::{Plan, Role, Rule};
use agentd_process::shim::ARGUMENT;
use agentd_process::task::{self, Exit, Found, Order, ShimProgram, Task};
use agentd_process::{Identity, Signal, signal};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub const PATIENCE: Duration = Duration::from_secs(30);
const MARKER: &str = "AGENTD_TEST_TASK";
const HOLD: &str = "hold";

pub struct Fixture {
    temp: TempDir,
    pub runtime: Runtime,
    /// The shims that are ended with the test, whether it passes or fails.
    shims: RefCell<Vec<Identity>>,
}

pub fn shim_program() -> ShimProgram {
    let args = ["--exact", "shim_child", "--nocapture", "--", ARGUMENT];
    ShimProgram {
        program: PathBuf::from("/proc/self/exe"),
        args: args.map(Into::into).into(),
    }
}

/// A script for `sh` in the directory `cwd`, which is also its mark.
pub fn script(script: &str, cwd: &Path) -> Order {
    let marker = cwd.display().to_string();
    Order {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: [("PATH", "/usr/bin:/bin"), (MARKER, &marker)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        cwd: cwd.to_owned(),
        grace_ms: 30_000,
        output_limit_bytes: 1 << 20,
        foreground: true,
        ..Order::default()
    }
}

impl Fixture {
    pub fn new() -> Self {
        Self {
            temp: tempfile::tempdir().unwrap(),
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap(),
            shims: RefCell::default(),
        }
    }

    /// The task's directory.
    pub fn dir(&self) -> PathBuf {
        self.temp.path().join("task")
    }

    /// The working directory of the task.
    pub fn cwd(&self) -> &Path {
        self.temp.path()
    }

    pub fn script(&self, text: &str) -> Order {
        script(text, self.cwd())
    }

    /// An order whose shim is held at this failpoint.
    pub fn held(&self, point: &str, order: Order) -> Order {
        let plan = Plan {
            rules: vec![Rule::hold(HOLD, Role::Shim, point)],
            ..Plan::default()
        };
        plan.write(self.cwd()).unwrap();
        let lab = Some(self.cwd().to_owned());
        Order { lab, ..order }
    }

    /// Waits until a shim is held.
    pub fn wait_for_hold(&self) {
        wait_until("the point", || {
            Passed::of_rule(self.cwd(), HOLD).unwrap().is_some()
        });
    }

    pub fn release(&self) {
        Passed::release(self.cwd(), HOLD).unwrap();
    }

    pub fn start(&self, order: &Order) -> Task {
        self.start_in(&self.dir(), order)
    }

    pub fn start_in(&self, dir: &Path, order: &Order) -> Task {
        let program = shim_program();
        let start = task::start(&program, dir, order);
        let task = self.runtime.block_on(start).unwrap();
        self.knows(task.shim());
        task
    }

    /// Registers a shim that is ended with the test.
    pub fn knows(&self, shim: Identity) {
        self.shims.borrow_mut().push(shim);
    }

    /// Waits for the end of a task, and returns its state.
    pub fn found(&self, task: &Task) -> Found {
        let ended = async { tokio::time::timeout(PATIENCE, task.ended()).await };
        self.runtime.block_on(ended).expect("an end").unwrap()
    }

    /// Waits for the end of a task, and returns how it ended.
    pub fn exit(&self, task: &Task) -> Exit {
        match self.found(task) {
            Found::Ended(exit) => exit,
            other => panic!("{other:?}"),
        }
    }

    /// Runs a task to its end, and returns how it ended and its output.
    pub fn run(&self, order: &Order) -> (Exit, String) {
        let task = self.start(order);
        let exit = self.exit(&task);
        let output = fs::read(task.output_path()).unwrap();
        (exit, String::from_utf8_lossy(&output).into_owned())
    }

    /// Waits until the task has created this file in its working directory.
    pub fn wait_for(&self, name: &str) {
        wait_until(name, || self.cwd().join(name).exists());
    }

    /// The content of the file `running`; null if there is none yet.
    pub fn running(&self) -> serde_json::Value {
        let text = fs::read(self.dir().join("running")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// The task's processes that are alive.
    pub fn alive(&self) -> Vec<Identity> {
        let mark = format!("{MARKER}={}", self.cwd().display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let Ok(one) = Identity::of(pid) else { continue };
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            let marked = environ
                .split(|byte| *byte == 0)
                .any(|it| it == mark.as_bytes());
            if marked && one.is_alive().unwrap() {
                found.push(one);
            }
        }
        found
    }

    pub fn assert_nobody_is_left(&self) {
        assert_eq!(self.alive(), []);
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        for shim in self.shims.borrow().iter() {
            drop(signal(*shim, Signal::KILL));
        }
        let begin = Instant::now();
        loop {
            let alive = self.alive();
            if alive.is_empty() || begin.elapsed() > PATIENCE {
                // Takes its cgroup away.
                drop(task::find(&self.dir(), None));
                return;
            }
            for one in alive {
                drop(signal(one, Signal::KILL));
            }
        }
    }
}

pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}: never");
        // tidy: polls, another process has no other way to tell
        std::thread::sleep(Duration::from_millis(2));
    }
}
