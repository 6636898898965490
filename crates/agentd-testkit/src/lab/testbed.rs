//! The environment of a run: a lab directory, the program with a completely specified environment, a fake
//! model, and the record of what happens.

use super::record::Record;
use super::spec::Spec;
use super::{hook, tool};
use crate::harness::{Poll, Program, TestDir, TimedOut, model_env};
use crate::model::{self, FakeModel, Format, Scenario};
use agentd_client::Client;
use agentd_failpoint::VARIABLE;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time limit of a run. No healthy run takes nearly as long: one that does is stuck.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The same with an injected bug: such a run may be stuck forever, and otherwise ends within seconds.
const PATIENCE_WITH_BUG: Duration = Duration::from_secs(20);
/// The name of the fork, in the scenario that has one.
pub const FORK: &str = "branch";
/// A model whose window fills up soon.
const CONFIG: &str = "[models.\"some-model\"]\nwindow = 9000\n";
const KEY: &str = "sk-of-the-lab";
const POLL: Duration = Duration::from_millis(5);

pub struct Testbed {
    pub spec: Spec,
    pub root: PathBuf,
    pub record: Record,
    pub model: FakeModel,
    pub deadline: Instant,
    /// Children that a thread waits for; the others are reaped.
    pub waited_for: Mutex<HashSet<u32>>,
    pub clients: AtomicU32,
    pub prompts: Mutex<Vec<Prompted>>,
    pub agents: Mutex<Vec<(String, String)>>,
    /// What the scenario declares for the checker.
    pub expects: Mutex<serde_json::Map<String, Value>>,
    /// Pieces of text that readers have seen.
    pub deltas: AtomicU32,
    /// Held while all processes are listed, so that none is killed at random.
    pub peace: Mutex<()>,
    /// All is idle: readers have seen everything.
    pub is_at_rest: AtomicBool,
    /// How often the power was switched: off while it is odd.
    pub power: AtomicU32,
    /// The run is over: the watchers may stop.
    pub is_over: AtomicBool,
    /// Whether tools run in a sandbox: if this kernel has one, and the run is not about tools without.
    has_sandbox: bool,
    pub program: Program,
    /// This program, which the tools run too.
    own: PathBuf,
}

/// A prompt as its sender sees it.
#[derive(Clone, Debug, Default)]
pub struct Prompted {
    pub at: u64,
    pub agent: String,
    pub key: String,
    pub text: String,
    /// The names and contents of the attached files, text as it is and all else in base64.
    pub files: Vec<(String, String)>,
    pub prompt: Option<String>,
    pub status: Option<String>,
    pub exit: Option<i32>,
}

/// The run cannot continue, and why.
#[derive(Debug, thiserror::Error)]
pub enum Stuck {
    #[error("{0} took too long")]
    TooLong(String),
    #[error("{0}")]
    Wrong(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<TimedOut> for Stuck {
    fn from(error: TimedOut) -> Self {
        Self::TooLong(error.what)
    }
}

pub type Result<T, E = Stuck> = std::result::Result<T, E>;

impl Testbed {
    /// In this directory, which exists and is empty.
    pub fn new(root: &Path, spec: Spec) -> Result<Self> {
        let dir = TestDir::at(root)?;
        let root = dir.root().to_owned();
        fs::write(dir.home().join("config.toml"), CONFIG)?;
        spec.plan().write(&root)?;
        let scenario = json!([
            {"when": "Summarise the conversation so far",
             "replies": ["slowly 5 a summary of what was said so far"]},
            {"when": "remember this", "replies": ["say I will remember it"]},
        ]);
        let options = model::Options {
            scenario: Scenario::parse(&scenario.to_string()).map_err(Stuck::Wrong)?,
            ..model::Options::default()
        };
        let model = FakeModel::start_with(options)?;
        let has_sandbox = !spec.full_access && agentd_sandbox::support().namespaces.is_ok();
        let program = dir
            .program(Program::beside_this_one()?)
            .env(VARIABLE, &root)
            .envs(model_env(KEY, &model.base_url(Format::Anthropic)));
        let patience = match spec.injected_bugs.is_empty() {
            true => PATIENCE,
            false => PATIENCE_WITH_BUG,
        };
        Ok(Self {
            record: Record::new(root.join("run"))?,
            model,
            deadline: Instant::now() + patience,
            waited_for: Mutex::default(),
            clients: AtomicU32::new(0),
            prompts: Mutex::default(),
            agents: Mutex::default(),
            expects: Mutex::default(),
            deltas: AtomicU32::new(0),
            peace: Mutex::default(),
            is_at_rest: AtomicBool::new(false),
            power: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
            program: match has_sandbox {
                true => program.sandboxed(),
                false => program,
            },
            has_sandbox,
            own: std::env::current_exe()?,
            root,
            spec,
        })
    }

    pub fn home(&self) -> PathBuf {
        self.program.home().to_owned()
    }

    pub fn work(&self) -> PathBuf {
        self.program.work().to_owned()
    }

    /// The program, as a user starts it.
    pub fn command(&self) -> Command {
        self.program.command()
    }

    /// A client of the daemon that leaves no trace in the lab.
    pub fn client(&self) -> Client {
        self.program.client()
    }

    /// A command line for the `shell` tool: it records that it ran, takes this long, and ends.
    pub fn tool(&self, word: &str, millis: u64) -> String {
        format!("exec '{}' tool {word} {millis}", self.own.display())
    }

    /// The user's hooks: one for each of these events, which records that it ran.
    pub fn hooks(&self, events: &[&str]) -> Result<()> {
        let command = format!("exec '{}' hook", self.own.display());
        let handler = json!([{"hooks": [{"type": "command", "command": command}]}]);
        let hooks = events
            .iter()
            .map(|event| ((*event).to_owned(), handler.clone()));
        let hooks: serde_json::Map<String, Value> = hooks.collect();
        let file = json!({ "hooks": hooks });
        Ok(fs::write(self.home().join("hooks.json"), file.to_string())?)
    }

    /// Registers an agent that now exists, by its id and its name.
    pub fn know(&self, id: &str, name: &str) {
        let mut agents = lock(&self.agents);
        if !agents.iter().any(|(known, _)| known == id) {
            agents.push((id.to_owned(), name.to_owned()));
        }
    }

    /// An agent file; `more` are further lines of its settings.
    pub fn agent_file(&self, name: &str, more: &str) -> Result<PathBuf> {
        let effects = self.record.dir().join("effects.jsonl");
        let (root, effects) = (self.root.display(), effects.display());
        let (variable, where_, began) = (VARIABLE, tool::EFFECTS, tool::BEGAN);
        let heard = format!(
            "{}: \"{}\"",
            hook::HEARD,
            self.record.dir().join("heard.jsonl").display()
        );
        let micros = self.record.began_unix();
        // Tools record what they do, and are this program.
        let own = self.own.parent().unwrap_or(&self.root).display();
        let more = match self.has_sandbox {
            true => format!("writable: [\"{root}\"]\nreadable: [\"{own}\"]\n{more}"),
            false => more.to_owned(),
        };
        let text = format!(
            "---\nprovider: anthropic\nmodel: some-model\nenv:\n  {variable}: \"{root}\"\n  \
             {where_}: \"{effects}\"\n  {began}: \"{micros}\"\n  {heard}\n{more}---\n\nYou are {name}.\n"
        );
        let path = self.root.join(format!("{name}.md"));
        fs::write(&path, text)?;
        Ok(path)
    }

    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// An error if no time is left.
    pub fn check_time(&self, what: &str) -> Result<()> {
        match self.left().is_zero() {
            true => Err(Stuck::TooLong(what.to_owned())),
            false => Ok(()),
        }
    }

    pub fn expect(&self, name: &str, value: Value) {
        lock(&self.expects).insert(name.to_owned(), value);
    }

    /// Waits until there is something to return.
    pub fn until<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> Result<T> {
        Ok(Poll::new(POLL, self.left()).until(what, look)?)
    }
}

/// An answer that arrives while the power is off, or after it went off, does not count.
pub struct Heard<'a> {
    testbed: &'a Testbed,
    then: u32,
}

impl<'a> Heard<'a> {
    /// From now on.
    pub fn from(testbed: &'a Testbed) -> Self {
        let then = testbed.power.load(Ordering::SeqCst);
        Self { testbed, then }
    }

    pub fn counts(&self) -> bool {
        self.then.is_multiple_of(2) && self.then == self.testbed.power.load(Ordering::SeqCst)
    }
}

/// The delay between two polls.
pub fn pause() {
    // tidy: polls
    std::thread::sleep(POLL);
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
