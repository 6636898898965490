//! A home, a working directory and a fake model; commands run in a terminal or without one.

use agentd_testkit::harness::{Poll, Program, Size, Terminal, TestDir, model_env};
use agentd_testkit::model::{FakeModel, Format};
use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

/// The limit is for tests that would otherwise hang, and far longer than any step takes.
pub const POLL: Poll = Poll::new(Duration::from_millis(5), Duration::from_secs(60));

pub const WIDE: Size = Size::new(40, 100);

/// The frames of the spinner.
pub const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

pub struct TestLive {
    program: Program,
    model: FakeModel,
    dir: TestDir,
}

impl TestLive {
    pub fn new() -> Self {
        Self::with_model(FakeModel::start().unwrap())
    }

    pub fn with_model(model: FakeModel) -> Self {
        let dir = TestDir::temporary().unwrap();
        let program = dir
            .program(env!("CARGO_BIN_EXE_agentd"))
            .env("HOME", dir.root())
            .env("TZ", "UTC")
            .env("TERM", "vt100")
            .envs(model_env("key", &model.base_url(Format::Anthropic)));
        Self {
            program,
            model,
            dir,
        }
    }

    /// With an agent `coder`.
    pub fn with_coder() -> Self {
        Self::new().and_coder()
    }

    /// Creates the agent `coder`.
    pub fn and_coder(self) -> Self {
        let args = [
            "create",
            "coder",
            "--provider",
            "anthropic",
            "--model",
            "some-model",
        ];
        self.ok(&args);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.program = self.program.clone().env(name, value);
        self
    }

    pub fn root(&self) -> PathBuf {
        self.dir.root().to_owned()
    }

    /// The state directory.
    pub fn home(&self) -> PathBuf {
        self.dir.home()
    }

    pub fn work(&self) -> PathBuf {
        self.dir.work()
    }

    pub fn model(&self) -> &FakeModel {
        &self.model
    }

    /// Starts a command in a terminal.
    pub fn terminal(&self, size: Size, args: &[&str]) -> Terminal {
        let mut command = self.program.command();
        command.args(args);
        Terminal::start(command, size).unwrap()
    }

    /// Starts `run` with a prompt.
    pub fn run(&self, size: Size, args: &[&str], prompt: &str) -> Terminal {
        let before = ["run", "--provider", "anthropic", "--model", "some-model"];
        self.terminal(size, &[&before, args, &[prompt]].concat())
    }

    /// Runs a command without a terminal.
    pub fn piped(&self, args: &[&str]) -> Output {
        self.program.command().args(args).output().unwrap()
    }

    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.piped(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for TestLive {
    fn drop(&mut self) {
        self.piped(&["daemon", "stop"]);
    }
}

/// Waits for the end of a command that must succeed, and returns its last screen.
pub fn last_screen(terminal: &mut Terminal) -> String {
    let status = terminal.ended(POLL).unwrap();
    let screen = terminal.screen();
    assert!(status.success(), "{status}:\n{screen}");
    no_rubbish(&screen);
    screen
}

/// Nothing of the status line is left.
#[track_caller]
pub fn no_rubbish(screen: &str) {
    for left in [
        "waiting for the model",
        "writing ·",
        "starting",
        "working ·",
    ] {
        assert!(!screen.contains(left), "`{left}` is left:\n{screen}");
    }
    assert!(!screen.contains(SPINNER), "{screen}");
}

/// Waits until a text is on the screen.
pub fn until(terminal: &Terminal, text: &str) -> String {
    terminal
        .until(POLL, text, |screen| screen.contains(text))
        .unwrap()
}
