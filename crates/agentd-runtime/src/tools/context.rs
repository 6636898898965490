//! What all tools of an agent share: paths, limits, rules, sandbox and secrets.

use super::ToolboxOptions;
use super::blocking::broken;
use super::contents::Contents;
use super::denied::{self, Actor};
use super::failure::{Failure, no_sandbox};
use super::file_process::{FileOptions, FileProcesses};
use super::kept::Kept;
use super::restores::Restores;
use super::scans::Scans;
use super::traits::{READ_FILE, READS, Traits};
use crate::link::Asking;
use agentd_core::approval::{Ruling, Wants, rule};
use agentd_core::catalog::ToolForms;
use agentd_core::id::{BootId, CallId, ConversationId, TaskId, TurnId};
use agentd_core::message::Block;
use agentd_core::permission::{Subject, Verdict, verdict};
use agentd_core::secrets::Secrets;
use agentd_core::spec::{ApprovalMode, Rule};
use agentd_failpoint as failpoint;
use agentd_process::task::{Confined, Limits, ShimProgram};
use agentd_sandbox::{Network, Policy, Reach};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

pub(super) struct ToolContext {
    pub cwd: PathBuf,
    pub state: PathBuf,
    pub env: BTreeMap<String, String>,
    pub output_bytes: usize,
    pub kept_bytes: u64,
    pub kept: Kept,
    pub file_history_bytes: u64,
    pub max_tasks: usize,
    pub secrets: Secrets,
    pub shim: ShimProgram,
    pub lab: Option<PathBuf>,
    pub task_limits: Limits,
    /// `None` means no sandbox: tools may do what their user may do.
    pub confined: Option<Confined>,
    pub boot: BootId,
    pub asking: Option<Asking>,
    /// To show how a file has changed since the model read it.
    pub contents: Contents,
    pub scans: Scans,
    pub restores: Restores,
    /// The turn whose calls run, and its conversation. The driver sets it before each call.
    turn: Mutex<Option<(Option<ConversationId>, TurnId)>>,
    rules: Vec<Rule>,
    approval: ApprovalMode,
    /// Whether the model has `read_file`.
    has_read_file: bool,
    escalated: Option<Confined>,
    /// The processes of the file tools.
    pub files: FileProcesses,
    /// What they see and write, without an escalation.
    file_policy: OnceLock<Policy>,
}

/// What a process of the file tools needs of the context.
#[derive(Serialize, Deserialize)]
pub(super) struct Setup<'a> {
    cwd: Cow<'a, Path>,
    state: Cow<'a, Path>,
    output_bytes: usize,
    file_history_bytes: u64,
    secrets: Vec<String>,
    rules: Cow<'a, [Rule]>,
    approval: ApprovalMode,
    confined: Option<Cow<'a, Confined>>,
}

/// A call, as the rules see it.
pub(super) struct CallOf<'a> {
    pub tool: &'a str,
    pub traits: Traits,
    pub subjects: &'a [Subject],
    pub leaves_sandbox: bool,
}

/// Whether a call runs with more rights than the sandbox gives. A call that asks for that runs only after the user has
/// approved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Escalation {
    None,
    Approved,
}

impl ToolContext {
    /// Redacts secrets in what a tool returns.
    pub fn redact(&self, blocks: &mut [Block]) {
        for block in blocks {
            if let Block::Text { text } = block {
                *text = self.secrets.redact(text);
            }
        }
    }

    pub fn new(options: ToolboxOptions) -> Self {
        let names = options.tools.as_ref();
        let has_read_file = names.is_none_or(|names| names.iter().any(|name| name == READ_FILE));
        let files = FileProcesses::new(FileOptions {
            shim: options.shim.clone(),
            state: options.state.clone(),
            limits: options.task_limits,
            lab: options.lab.clone(),
            secrets: options.secrets.values(),
        });
        Self {
            files,
            file_policy: OnceLock::new(),
            has_read_file,
            cwd: options.cwd,
            env: options.env,
            output_bytes: options.output_bytes,
            kept_bytes: options.kept_bytes,
            kept: Kept::new(options.state.clone(), options.kept_quota),
            state: options.state,
            file_history_bytes: options.file_history_bytes,
            max_tasks: options.max_tasks,
            secrets: options.secrets,
            shim: options.shim,
            lab: options.lab,
            task_limits: options.task_limits,
            confined: options.confined,
            boot: options.boot,
            asking: options.asking,
            contents: Contents::default(),
            scans: Scans::default(),
            restores: Restores::default(),
            turn: Mutex::default(),
            rules: options.rules,
            approval: options.approval,
            escalated: options.escalated,
        }
    }

    /// The context in a process of the file tools.
    pub fn inside(setup: Setup<'_>, boot: BootId) -> Self {
        Self::new(ToolboxOptions {
            cwd: setup.cwd.into_owned(),
            state: setup.state.into_owned(),
            env: BTreeMap::new(),
            confined: setup.confined.map(Cow::into_owned),
            rules: setup.rules.into_owned(),
            approval: setup.approval,
            escalated: None,
            tools: Some(Vec::new()),
            forms: ToolForms::default(),
            may_reset: false,
            output_bytes: setup.output_bytes,
            kept_bytes: 0,
            kept_quota: 0,
            file_history_bytes: setup.file_history_bytes,
            max_tasks: 0,
            task_limits: Limits::default(),
            secrets: Secrets::new(setup.secrets),
            shim: ShimProgram::default(),
            lab: None,
            boot,
            subagents: None,
            asking: None,
            instructions: None,
            mcp: Vec::new(),
        })
    }

    pub fn enter_turn(&self, conversation: Option<ConversationId>, turn: TurnId) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = Some((conversation, turn));
    }

    /// The environment of a command that runs for this call.
    pub fn env_of(&self, call: &CallId) -> BTreeMap<String, String> {
        let mut env = self.env.clone();
        let turn = *self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((conversation, turn)) = turn {
            env.extend(conversation.map(|id| ("AGENTD_CONVERSATION".to_owned(), id.to_string())));
            env.insert("AGENTD_TURN".to_owned(), turn.to_string());
        }
        env.insert("AGENTD_CALL_ID".to_owned(), call.to_string());
        env
    }

    /// Whether a call runs, needs approval or is refused. It must be allowed for each of its subjects.
    pub fn rule(&self, call: &CallOf<'_>) -> Ruling {
        let wants = Wants {
            change: call.traits.approval,
            leave_sandbox: call.leaves_sandbox
                && self.is_confined()
                && !failpoint::injected_bug("escalation_unasked"),
        };
        let ruling = |verdict: Option<Verdict>| rule(self.approval, verdict.as_ref(), wants);
        let verdicts = call.subjects.iter();
        let rulings = verdicts.map(|subject| match subject {
            Subject::Command(line) if failpoint::injected_bug("rules_as_text") => {
                let line = Subject::name(line.clone());
                ruling(verdict(&self.rules, call.tool, &line))
            }
            subject => ruling(verdict(&self.rules, call.tool, subject)),
        });
        rulings.max().unwrap_or_else(|| ruling(None))
    }

    /// Whether the model may read these files at any time, without being asked about: what an error says about them is
    /// then nothing that it could not read itself.
    pub fn may_read(&self, files: &[Subject]) -> bool {
        let read = CallOf {
            tool: READ_FILE,
            traits: READS,
            subjects: files,
            leaves_sandbox: false,
        };
        self.has_read_file && self.rule(&read) == Ruling::Run
    }

    /// The sandbox of a command. A command whose escalation the user approved gets the wider one: see
    /// [`ToolboxOptions::escalated`].
    pub fn confined(&self, foreground: bool, escalation: Escalation) -> Option<Box<Confined>> {
        let mut confined = self.policy(escalation)?.clone();
        confined.policy.foreground = foreground;
        Some(Box::new(confined))
    }

    fn policy(&self, escalation: Escalation) -> Option<&Confined> {
        match escalation {
            Escalation::None => self.confined.as_ref(),
            Escalation::Approved => self.escalated.as_ref().or(self.confined.as_ref()),
        }
    }

    /// Whether commands run in a sandbox.
    pub const fn is_confined(&self) -> bool {
        self.confined.is_some()
    }

    pub fn has_no_network(&self) -> bool {
        let confined = self.confined.as_ref();
        confined.is_some_and(|confined| confined.policy.network == Network::Off)
    }

    /// The sandbox of file tools; `None` if they may do what their user may do.
    pub fn file_sandbox(&self, escalation: Escalation) -> Option<&Confined> {
        let confined = self.policy(escalation);
        confined.filter(|_| !failpoint::injected_bug("files_unconfined"))
    }

    /// What file tools see and write in a view of their own; `None` without a sandbox.
    pub fn file_policy(&self, escalation: Escalation) -> Option<Cow<'_, Policy>> {
        let of_commands = &self.file_sandbox(escalation)?.policy;
        Some(match escalation {
            Escalation::None => {
                let policy = || self.files.policy(of_commands);
                Cow::Borrowed(self.file_policy.get_or_init(policy))
            }
            Escalation::Approved => Cow::Owned(self.files.policy(of_commands)),
        })
    }

    /// For a process of the file tools.
    pub fn setup(&self, escalation: Escalation) -> Setup<'_> {
        Setup {
            cwd: Cow::Borrowed(&self.cwd),
            state: Cow::Borrowed(&self.state),
            output_bytes: self.output_bytes,
            file_history_bytes: self.file_history_bytes,
            secrets: self.secrets.values(),
            rules: Cow::Borrowed(&self.rules),
            approval: self.approval,
            confined: self.file_sandbox(escalation).map(Cow::Borrowed),
        }
    }

    /// Looks at files on a thread under the restrictions of commands. For scans, which name files of the host: a private
    /// `/tmp` is nothing to them.
    pub fn on_thread<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        let Some(confined) = self.file_sandbox(Escalation::None) else {
            return work();
        };
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                agentd_sandbox::restrict_thread(&confined.policy).map_err(no_sandbox)?;
                work()
            });
            thread.join().unwrap_or_else(|_| Err(broken()))
        })
    }

    /// Whether a file is one that other processes of the user find at this path, which is without links. A file that tools can
    /// change is in one of their trees, or else in their own `/tmp`.
    pub fn shares(&self, path: &Path) -> bool {
        let Some(confined) = self.file_sandbox(Escalation::None) else {
            return true;
        };
        let wider = self.escalated.iter();
        let trees = wider.chain([confined]).flat_map(|it| &it.policy.writable);
        let mut trees = trees.flat_map(fs::canonicalize);
        trees.any(|tree| path.starts_with(tree))
    }

    /// The failure, with a note if the sandbox is its reason.
    pub fn with_note(&self, failure: Failure) -> Failure {
        match self.denied(self.file_actor(), failure.text()) {
            Some(note) => Failure::new(format!("{}\n{note}", failure.text())),
            None => failure,
        }
    }

    /// How file tools are restricted.
    pub fn file_actor(&self) -> Actor {
        match self.is_confined() && self.files.has_views() {
            true => Actor::FileTool,
            false => Actor::FileThread,
        }
    }

    /// What commands can do at a path; `None` without a sandbox: they can do what their user can do.
    pub fn reach(&self, path: &Path) -> Option<Reach> {
        let policy = &self.confined.as_ref()?.policy;
        let reached = agentd_sandbox::reach(policy, &[path.to_owned()]).ok()?;
        reached.first().copied()
    }

    /// A note for the result of a failed tool, if the sandbox is the reason of the failure.
    pub fn denied(&self, actor: Actor, text: &str) -> Option<String> {
        let confined = self.confined.as_ref()?;
        let of_files = self.file_policy(Escalation::None);
        match (actor, of_files) {
            (Actor::FileTool, Some(policy)) => {
                let confined = Confined {
                    policy: policy.into_owned(),
                    ..confined.clone()
                };
                denied::note(&confined, &self.cwd, actor, text)
            }
            _ => denied::note(confined, &self.cwd, actor, text),
        }
    }

    /// The directory with all files of a task.
    pub fn task_dir(&self, task: TaskId) -> PathBuf {
        self.state.join("tasks").join(task.to_string())
    }
}
