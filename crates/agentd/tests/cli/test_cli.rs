//! A state directory and a working directory, both empty at first, and the program with a fully specified environment.

use agentd_testkit::harness::{Poll, Program, TestDir};
use serde_json::Value;
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The limit is for tests that would otherwise hang, and far longer than any step takes.
pub const POLL: Poll = Poll::new(Duration::from_millis(10), Duration::from_secs(60));

pub struct TestCli {
    program: Program,
    _dir: TestDir,
}

/// How a command ended, and its output.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Waits until the closure returns a value.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    POLL.until(what, look).unwrap()
}

impl TestCli {
    pub fn new() -> Self {
        let dir = TestDir::temporary().unwrap();
        let program = dir.program(env!("CARGO_BIN_EXE_agentd"));
        Self {
            program: program.env("HOME", dir.root()).env("TZ", "UTC"),
            _dir: dir,
        }
    }

    /// With an agent `coder`.
    pub fn with_coder() -> Self {
        let cli = Self::new();
        cli.ok(&["create", "coder", "--provider", "demo"]);
        cli
    }

    pub fn home(&self) -> PathBuf {
        self.program.home().to_owned()
    }

    pub fn work(&self) -> PathBuf {
        self.program.work().to_owned()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program.command();
        command.args(args);
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// Its output; the command must succeed.
    pub fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:#?}\n{}", self.log());
        ran.out
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(&[args, &["--json"]].concat());
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    pub fn lines(&self, args: &[&str]) -> Vec<Value> {
        let text = self.ok(&[args, &["--json"]].concat());
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    /// Its error output; the command must fail with this code.
    pub fn refused(&self, code: i32, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:#?}\n{}", self.log());
        let label = match code {
            6 => "waiting: ",
            _ => "error: ",
        };
        assert!(ran.err.starts_with(label), "{args:?}: {ran:#?}");
        ran.err
    }

    /// Starts it, and does not wait for it.
    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    pub fn until_phase(&self, name: &str, phase: &str) -> Value {
        until(phase, || {
            let agent = self.json(&["show", name]);
            (agent["phase"] == phase).then_some(agent)
        })
    }

    /// Waits until its turn has started a tool.
    pub fn until_tool(&self, name: &str) {
        until("a tool", || {
            let events = self.lines(&["logs", name]);
            let started = events
                .iter()
                .filter(|event| event["kind"] == "tool_started");
            let ended = events.iter().filter(|event| event["kind"] == "tool_ended");
            (started.count() > ended.count()).then_some(())
        });
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.home().join("daemon.log")).unwrap_or_default()
    }

    pub fn daemon_pid(&self) -> Option<u64> {
        let ran = self.run(&["daemon", "status", "--json"]);
        let daemon: Value = serde_json::from_str(&ran.out).ok()?;
        daemon["pid"].as_u64()
    }
}

/// Waits for the end of a command that was started.
pub fn ended(mut child: Child) -> Ran {
    let code = until("its end", || child.try_wait().unwrap()).code();
    let (mut out, mut err) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    Ran { code, out, err }
}

pub fn signal(pid: impl TryInto<i32>, signal: rustix::process::Signal) {
    let pid = pid.try_into().ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.unwrap(), signal).unwrap();
}

impl Drop for TestCli {
    fn drop(&mut self) {
        let stopped = self.run(&["daemon", "stop"]);
        if !std::thread::panicking() {
            assert_eq!(stopped.code, Some(0), "{stopped:#?}");
        }
    }
}
