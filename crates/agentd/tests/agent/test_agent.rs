//! A directory for everything, a fake model, and the program with a completely specified
//! environment.

use super::process::{Agent, Ended, until};
use agentd_core::event::Event;
use agentd_core::id::Seq;
use agentd_failpoint::plan::{Plan, Role, Rule};
use agentd_failpoint::{self as failpoint, Passed};
use agentd_process::Identity;
use agentd_store::{AgentQuery, AgentSort, Options, ReadQuery, SqliteStore, Store as _};
use agentd_testkit::harness::{Program, TestDir};
use agentd_testkit::model::{FakeModel, Format, Scenario};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

pub const FORMATS: [Format; 4] = [
    Format::Anthropic,
    Format::OpenaiChat,
    Format::OpenaiResponses,
    Format::Gemini,
];

/// Text that takes longer to stream than any test waits.
pub fn speech() -> String {
    "word after word ".repeat(200).trim_end().to_owned()
}

/// In the environment of every tool, so that its processes can be found.
pub const MARK: &str = "AGENTD_TEST_MARK";

pub struct TestAgent {
    dir: TestDir,
    program: Program,
    pub model: FakeModel,
    pub format: Format,
    holds: AtomicUsize,
}

impl TestAgent {
    pub fn new(format: Format) -> Self {
        Self::with(format, Scenario::default())
    }

    /// The formats, one after the other.
    pub fn round(round: usize) -> Self {
        Self::new(FORMATS[round % FORMATS.len()])
    }

    pub fn with(format: Format, scenario: Scenario) -> Self {
        let dir = TestDir::temporary().unwrap();
        let options = agentd_testkit::model::Options {
            scenario,
            ..Default::default()
        };
        Self {
            program: dir.program(env!("CARGO_BIN_EXE_agentd")),
            dir,
            model: FakeModel::start_with(options).unwrap(),
            format,
            holds: AtomicUsize::new(0),
        }
    }

    /// An agent whose conversation becomes too long for the model with the next prompt.
    pub fn long_conversation(round: usize) -> (Self, Ended) {
        let words = "a summary that takes so many words that there is time enough to do \
                     something else before the last of them has come";
        let scenario = json!([{
            "when": "Summarise the conversation so far",
            "replies": [format!("slowly 20 {words}")],
        }]);
        let scenario = Scenario::parse(&scenario.to_string()).unwrap();
        let harness = Self::with(FORMATS[round % FORMATS.len()], scenario);
        harness.config("[models.\"some-model\"]\nwindow = 9000\n");
        let prompt = format!("remember this: {}", "many words ".repeat(1000));
        let first = harness.run().prompt(&prompt).ended();
        assert_eq!(first.statuses(), ["completed"], "{first:#?}");
        assert_eq!(first.of_kind("summary").len(), 0);
        (harness, first)
    }

    pub fn path(&self) -> &Path {
        self.dir.root()
    }

    /// Where the agent keeps everything.
    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    pub fn session_file(&self) -> PathBuf {
        self.state().join("session-latest.json")
    }

    pub fn work(&self) -> PathBuf {
        self.dir.work()
    }

    pub fn home(&self) -> PathBuf {
        self.dir.home()
    }

    pub fn config(&self, toml: &str) {
        fs::write(self.home().join("config.toml"), toml).unwrap();
    }

    /// An agent file, whose tools are marked as this harness's.
    pub fn agent_file(&self, yaml: &str) -> PathBuf {
        let path = self.path().join("agent.md");
        let mark = self.mark();
        let text = format!("---\nenv:\n  {MARK}: {mark}\n{yaml}\n---\n\nYou are an agent.\n");
        fs::write(&path, text).unwrap();
        path
    }

    fn mark(&self) -> String {
        let name = self.path().file_name().unwrap();
        format!("mark-{}", name.to_str().unwrap())
    }

    /// The processes of tools, in whatever session or group they are.
    pub fn tool_processes(&self) -> Vec<u32> {
        let mark = format!("{MARK}={}", self.mark());
        processes(|pid| contains(&format!("/proc/{pid}/environ"), mark.as_bytes()))
    }

    /// The shims of this harness's tasks.
    pub fn shims(&self) -> Vec<u32> {
        let dir = self.state().join("tasks");
        let dir = dir.to_str().unwrap().as_bytes().to_vec();
        processes(|pid| contains(&format!("/proc/{pid}/cmdline"), &dir))
    }

    pub fn kill_shims(&self) {
        let shims: Vec<Identity> = self.shims().into_iter().filter_map(identity).collect();
        for shim in &shims {
            drop(agentd_process::signal(*shim, Signal::KILL));
        }
        until("the shims' end", || {
            let alive = |shim: &Identity| shim.is_alive().unwrap_or(false);
            (!shims.iter().any(alive)).then_some(())
        });
    }

    /// The directory of the only task, once its shim is held at a failpoint.
    pub fn held_task(&self) -> PathBuf {
        until("the shim to hold still", || {
            Passed::of_rule(self.path(), &self.hold_name()).unwrap()
        });
        let tasks = fs::read_dir(self.state().join("tasks")).unwrap();
        let mut tasks = tasks.map(|task| task.unwrap().path());
        tasks.next().unwrap()
    }

    /// Releases the held processes.
    pub fn release(&self) {
        Passed::release(self.path(), &self.hold_name()).unwrap();
    }

    /// The name of the rule that holds the newest process.
    fn hold_name(&self) -> String {
        format!("hold-{}", self.holds.load(Ordering::Relaxed))
    }

    pub fn run(&self) -> Run<'_> {
        Run::new(self)
    }

    /// Runs another verb on the agent's directory.
    pub fn verify(&self) -> Ended {
        let mut command = self.program.command();
        command.args(["verify", "--json"]);
        command.env("AGENTD_HOME", self.state());
        Agent::spawn(command).ended()
    }

    /// All events of the journal, of the only agent.
    pub fn events(&self) -> Vec<Event> {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build().unwrap();
        runtime.block_on(async {
            let store = SqliteStore::open(Options::new(self.state())).unwrap();
            let query = AgentQuery {
                mode: None,
                phase: None,
                archived: false,
                name_prefix: None,
                sort: AgentSort::default(),
                limit: 2,
                after: None,
            };
            let agents = store.agents(query).await.unwrap().agents;
            assert_eq!(agents.len(), 1);
            let query = ReadQuery::all(agents[0].id, Seq(0), 100_000);
            let page = store.read(query).await.unwrap();
            assert_eq!(page.next, None);
            page.events
        })
    }

    /// What the shell calls wrote: one line each.
    pub fn effects(&self) -> Vec<String> {
        let text = fs::read_to_string(self.work().join("effects")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for TestAgent {
    fn drop(&mut self) {
        for pid in [self.shims(), self.tool_processes()].concat() {
            if let Some(identity) = identity(pid) {
                drop(agentd_process::signal(identity, Signal::KILL));
            }
        }
    }
}

fn identity(pid: u32) -> Option<Identity> {
    Identity::of(pid).ok()
}

fn processes(is_it: impl Fn(u32) -> bool) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let ours = std::process::id();
    pids.filter(|pid| *pid != ours && is_it(*pid)).collect()
}

pub fn contains(path: &str, part: &[u8]) -> bool {
    let Ok(bytes) = fs::read(path) else {
        return false;
    };
    bytes.windows(part.len()).any(|found| found == part)
}

/// A run of the program that is about to begin.
pub struct Run<'a> {
    harness: &'a TestAgent,
    command: Command,
    prompt: Option<String>,
    base_url: String,
    hold: Option<(Role, String)>,
    is_open: bool,
    is_deaf: bool,
}

impl<'a> Run<'a> {
    fn new(harness: &'a TestAgent) -> Self {
        let (provider, key) = match harness.format {
            Format::Anthropic => ("anthropic", "ANTHROPIC_API_KEY"),
            Format::OpenaiChat => ("openai-chat", "OPENAI_API_KEY"),
            Format::OpenaiResponses => ("openai", "OPENAI_API_KEY"),
            Format::Gemini => ("gemini", "GEMINI_API_KEY"),
        };
        let mut command = harness.program.command();
        command
            .env(key, "sk-of-this-test")
            .args(["agent", "--json", "--provider", provider])
            .args(["--model", "some-model"])
            .arg("--checkpoint-dir")
            .arg(harness.state())
            .arg("--cwd")
            .arg(harness.work());
        Self {
            harness,
            command,
            prompt: None,
            base_url: harness.model.base_url(harness.format),
            hold: None,
            is_open: false,
            is_deaf: false,
        }
    }

    pub fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn base_url(mut self, base_url: &str) -> Self {
        base_url.clone_into(&mut self.base_url);
        self
    }

    pub fn prompt(mut self, text: &str) -> Self {
        self.prompt = Some(text.to_owned());
        self
    }

    /// Continues from the session file.
    pub fn resume(self) -> Self {
        let file = self.harness.session_file();
        self.arg("--resume").arg(file)
    }

    /// Continues from the journal.
    pub fn resume_dir(self) -> Self {
        let dir = self.harness.state();
        self.arg("--resume").arg(dir)
    }

    /// Continues what was in progress, and nothing else.
    pub fn continue_turn(self) -> Self {
        self.arg("--continue-turn")
    }

    /// It is held at this failpoint.
    pub fn hold(mut self, point: &str) -> Self {
        self.hold = Some((Role::Agent, point.to_owned()));
        self
    }

    /// The shims of its tasks are held at this failpoint.
    pub fn hold_shims(mut self, point: &str) -> Self {
        self.hold = Some((Role::Shim, point.to_owned()));
        self
    }

    /// Its output is not read.
    pub fn deaf(mut self) -> Self {
        self.is_deaf = true;
        self
    }

    /// Its stdin stays open for prompts.
    pub fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

    pub fn start(mut self) -> Agent {
        self.command.arg("--base-url").arg(&self.base_url);
        if let Some(prompt) = &self.prompt {
            self.command.arg("--").arg(prompt);
        }
        if self.is_open {
            self.command.stdin(Stdio::piped());
        }
        if let Some((role, point)) = self.hold {
            self.harness.holds.fetch_add(1, Ordering::Relaxed);
            let plan = Plan {
                rules: vec![Rule::hold(self.harness.hold_name(), role, point)],
                ..Plan::default()
            };
            plan.write(self.harness.path()).unwrap();
            self.command.env(failpoint::VARIABLE, self.harness.path());
        }
        let mut agent = Agent::spawn(self.command);
        if self.is_deaf {
            agent.stop_reading();
        }
        agent
    }

    /// Starts it, waits until it is held at its failpoint, and kills it there.
    pub fn kill_at_hold(self) -> Ended {
        assert!(self.hold.is_some(), "it has a place");
        let harness = self.harness;
        let mut agent = self.start();
        until("the place to be killed at", || {
            if !agent.is_running() {
                return Some(false);
            }
            let held = Passed::of_rule(harness.path(), &harness.hold_name()).unwrap();
            held.map(|_| true)
        });
        agent.kill()
    }

    /// Starts it and waits for its end.
    pub fn ended(self) -> Ended {
        self.start().ended()
    }
}
