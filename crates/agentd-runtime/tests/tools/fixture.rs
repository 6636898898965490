//! The fixture of a test: a working directory and tools. It ends every process that was started there.

use agentd_core::id::{BootId, CallId, TaskId};
use agentd_core::message::{Arguments, Block, CallOutcome, ToolCall};
use agentd_core::recover::CallFact;
use agentd_core::spec::ApprovalMode;
use agentd_core::state::StartedCall;
use agentd_core::turn::{Consent, Finished, Prepared};
use agentd_core::window::SeenFiles;
use agentd_failpoint::Passed;
use agentd_failpoint::plan::{Plan, Role, Rule};
use agentd_process::shim::ARGUMENT;
use agentd_process::task::{self, Found, ShimProgram, Task};
use agentd_process::{Identity, Signal, signal};
use agentd_runtime::driver::Tools as _;
use agentd_runtime::tools::{Secrets, Toolbox, ToolboxOptions};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub const PATIENCE: Duration = Duration::from_secs(30);
pub const SECRET: &str = "sk-0123456789abcdef";
const MARKER: &str = "AGENTD_TEST_TOOLS";
const HOLD: &str = "hold";

pub struct Fixture {
    dir: TempDir,
    pub options: ToolboxOptions,
}

/// A call that runs concurrently with the test.
pub struct Running {
    pub cancel: watch::Sender<bool>,
    finished: JoinHandle<Finished>,
}

impl Running {
    pub async fn finished(self) -> Finished {
        let finished = tokio::time::timeout(PATIENCE, self.finished).await;
        finished.expect("an end").unwrap()
    }

    /// Simulates the death of the process that waits for the call.
    pub fn abandon(self) {
        self.finished.abort();
    }

    pub async fn cancelled(self) -> Finished {
        self.cancel.send(true).unwrap();
        self.finished().await
    }
}

impl Fixture {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        let cwd = base.join("work");
        fs::create_dir(&cwd).unwrap();
        let args = ["--exact", "shim_child", "--nocapture", "--", ARGUMENT];
        let env = [
            ("PATH", "/usr/bin:/bin"),
            (MARKER, &base.display().to_string()),
        ];
        let boot = agentd_process::boot_id().unwrap();
        let options = ToolboxOptions {
            cwd,
            state: base.join("state"),
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            confined: None,
            rules: Vec::new(),
            approval: ApprovalMode::default(),
            escalated: None,
            services: Default::default(),
            tools: None,
            forms: Default::default(),
            may_reset: false,
            output_bytes: 1000,
            kept_bytes: 64 * 1024 * 1024,
            kept_quota: 1024 * 1024 * 1024,
            file_history_bytes: 256 * 1024 * 1024,
            max_tasks: 2,
            secrets: Secrets::new([SECRET.to_owned()]),
            shim: ShimProgram {
                program: PathBuf::from("/proc/self/exe"),
                args: args.map(Into::into).into(),
            },
            subagents: None,
            asking: None,
            mcp: Vec::new(),
            instructions: None,
            lab: None,
            task_limits: Default::default(),
            boot: boot.parse::<BootId>().unwrap(),
        };
        Self { dir, options }
    }

    /// Holds the shims of its tasks at a failpoint before they begin.
    pub fn hold_shims(&mut self) {
        let plan = Plan {
            rules: vec![Rule::hold(HOLD, Role::Shim, "after-order")],
            ..Plan::default()
        };
        plan.write(self.dir.path()).unwrap();
        self.options.lab = Some(self.dir.path().to_owned());
    }

    pub async fn wait_for_hold(&self) {
        wait_for(&self.dir.path().join("fired").join(HOLD)).await;
    }

    pub fn release(&self) {
        Passed::release(self.dir.path(), HOLD).unwrap();
    }

    pub fn toolbox(&self) -> Toolbox {
        Toolbox::new(self.options.clone()).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.options.cwd.join(name)
    }

    pub async fn prepare(&self, call: &ToolCall) -> Prepared {
        let seen = SeenFiles::default();
        self.toolbox().prepare(call, Consent::NotAsked, &seen).await
    }

    pub async fn started(&self, call: &ToolCall) -> StartedCall {
        match self.prepare(call).await {
            Prepared::Run(started, _) => StartedCall {
                tool: started.tool,
                task: started.task,
                boot: started.boot,
                change: started.change,
                patched: started.patched,
            },
            other => panic!("{other:?}"),
        }
    }

    /// Starts a call.
    pub fn begin(&self, call: ToolCall, started: StartedCall) -> Running {
        let (cancel, cancelled) = watch::channel(false);
        let toolbox = Arc::new(self.toolbox());
        let finished = async move { toolbox.run(call, started, cancelled).await };
        Running {
            cancel,
            finished: tokio::spawn(finished),
        }
    }

    pub fn resume(&self, call: ToolCall, started: StartedCall) -> Running {
        let (cancel, cancelled) = watch::channel(false);
        let toolbox = Arc::new(self.toolbox());
        let finished = async move { toolbox.resume(call, started, cancelled).await };
        Running {
            cancel,
            finished: tokio::spawn(finished),
        }
    }

    /// Runs a call to its end.
    pub async fn run(&self, call: ToolCall) -> Finished {
        match self.prepare(&call).await {
            Prepared::Run(..) => {
                let started = self.started(&call).await;
                self.begin(call, started).finished().await
            }
            Prepared::Refuse { outcome, blocks } => Finished::new(outcome, blocks),
            Prepared::Ask(_) => panic!("asks"),
        }
    }

    pub async fn shell(&self, command: &str) -> (CallOutcome, String) {
        let finished = self.run(shell(command)).await;
        (finished.outcome, words(&finished))
    }

    /// Starts a background command, and returns its task.
    pub async fn background(&self, command: &str) -> TaskId {
        let finished = self.run(background(command)).await;
        assert_eq!(finished.outcome, CallOutcome::Ok, "{finished:?}");
        let started = finished.background.clone().expect("a task");
        assert!(words(&finished).contains(&started.task.to_string()));
        assert_eq!(
            (started.tool.as_str(), started.boot),
            ("shell", self.options.boot)
        );
        started.task
    }

    pub async fn find(&self, call: &ToolCall, started: &StartedCall) -> CallFact {
        self.toolbox().find(call, started).await
    }

    pub fn task_dir(&self, task: TaskId) -> PathBuf {
        self.options.state.join("tasks").join(task.to_string())
    }

    /// The running task.
    pub fn task(&self, task: TaskId) -> Task {
        match task::find(&self.task_dir(task), None).unwrap() {
            Found::Running(task) => task,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the task has created this file.
    pub async fn wait_for(&self, name: &str) {
        wait_for(&self.path(name)).await;
    }

    /// The tools' processes that are alive.
    pub fn alive(&self) -> Vec<Identity> {
        let base = fs::canonicalize(self.dir.path()).unwrap();
        let mark = format!("{MARKER}={}", base.display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let Ok(one) = Identity::of(pid) else { continue };
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            let mut entries = environ.split(|byte| *byte == 0);
            if entries.any(|it| it == mark.as_bytes()) && one.is_alive().unwrap() {
                found.push(one);
            }
        }
        found
    }

    /// Waits, because a killed process exists for a moment longer.
    pub async fn nobody_is_left(&self) {
        let begin = Instant::now();
        while !self.alive().is_empty() {
            assert!(begin.elapsed() < PATIENCE, "{:?}", self.alive());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if self.options.lab.is_some() {
            self.release();
        }
        let tasks = fs::read_dir(self.options.state.join("tasks"));
        for entry in tasks.into_iter().flatten().flatten() {
            if let Ok(Found::Running(task)) = task::withdraw(&entry.path()) {
                drop(task.kill());
            }
        }
        let begin = Instant::now();
        loop {
            let alive = self.alive();
            if alive.is_empty() || begin.elapsed() > PATIENCE {
                return;
            }
            for one in alive {
                drop(signal(one, Signal::KILL));
            }
        }
    }
}

pub async fn wait_for(path: &Path) {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < PATIENCE, "{}: never", path.display());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: CallId::new("call_1"),
        name: tool.into(),
        arguments: Arguments::parse(&arguments.to_string()),
        signature: None,
    }
}

pub fn shell(command: &str) -> ToolCall {
    call("shell", json!({"command": command}))
}

pub fn background(command: &str) -> ToolCall {
    call(
        "shell",
        json!({"command": command, "run_in_background": true}),
    )
}

pub fn words(finished: &Finished) -> String {
    let texts = finished.blocks.iter().map(|block| match block {
        Block::Text { text } => text.as_str(),
        other => panic!("{other:?}"),
    });
    texts.collect()
}
