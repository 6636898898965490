//! What all tools of an agent share: paths, limits, rules, sandbox and secrets.

mod of_files;
mod recorded;

pub(super) use of_files::Setup;

use super::ToolboxOptions;
use super::contents::Contents;
use super::denied::{self, Actor};
use super::ended_tasks::EndedTasks;
use super::escalate::{Asked, Escalation, refused};
use super::failure::Failure;
use super::file_process::{FileOptions, FileProcesses};
use super::grant::{self, Paths, Services};
use super::kept::Kept;
use super::restores::Restores;
use super::scans::Scans;
use super::traits::{READ_FILE, READS, Traits};
use crate::link::Asking;
use agentd_core::approval::{Ruling, Wants, rule};
use agentd_core::id::{BootId, CallId, ConversationId, TaskId, TurnId};
use agentd_core::message::Block;
use agentd_core::needs::{Invalid, Need, Places, covering, parse};
use agentd_core::permission::{Subject, Verdict, verdict};
use agentd_core::secrets::Secrets;
use agentd_core::spec::{ApprovalMode, Decision, Rule};
use agentd_failpoint as failpoint;
use agentd_process::task::{Confined, Limits, ShimProgram};
use agentd_sandbox::{Network, Policy, Reach};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
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
    pub ended_tasks: EndedTasks,
    pub restores: Restores,
    /// The turn whose calls run, and its conversation. The driver sets it before each call.
    turn: Mutex<Option<(Option<ConversationId>, TurnId)>>,
    rules: Vec<Rule>,
    approval: ApprovalMode,
    /// Whether the model has `read_file`.
    has_read_file: bool,
    escalated: Option<Confined>,
    services: Services,
    /// The working directory and the user's home without links, for the paths of `needs`.
    real_cwd: PathBuf,
    real_home: Option<PathBuf>,
    /// The processes of the file tools.
    pub files: FileProcesses,
    /// What they see and write, without an escalation.
    file_policy: OnceLock<Policy>,
}

/// A call, as the rules see it.
pub(super) struct CallOf<'a> {
    pub tool: &'a str,
    pub traits: Traits,
    pub subjects: &'a [Subject],
    pub escalation: &'a Escalation,
    /// Whether a rule of the user can let it leave the sandbox.
    pub may_be_covered: bool,
}

/// The context, with the rights of one call.
#[derive(Clone, Copy)]
pub(super) struct Within<'a> {
    pub context: &'a ToolContext,
    pub escalation: &'a Escalation,
}

impl Deref for Within<'_> {
    type Target = ToolContext;

    fn deref(&self) -> &ToolContext {
        self.context
    }
}

impl ToolContext {
    /// Whether a path lies in the git directory of a tree that has it elsewhere. Such a directory may have any name.
    pub fn is_in_outside_git_dir(&self, path: &Path) -> bool {
        let confined = self.confined.as_ref();
        let mut dirs = confined.into_iter().flat_map(|it| &it.policy.git_dirs);
        dirs.any(|dir| path.starts_with(&dir.common))
    }

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
        let home = options.confined.as_ref().map(|it| &it.policy.home);
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
            real_cwd: fs::canonicalize(&options.cwd).unwrap_or_else(|_| options.cwd.clone()),
            real_home: home.and_then(|home| fs::canonicalize(home).ok()),
            services: options.services,
            cwd: options.cwd,
            env: options.env,
            output_bytes: options.output_bytes,
            kept_bytes: options.kept_bytes,
            kept: Kept::new(options.state.clone(), options.kept_quota),
            ended_tasks: EndedTasks::new(&options.state, options.output_bytes),
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

    pub fn never_asks(&self) -> bool {
        self.approval == ApprovalMode::Never
    }

    /// Whether a call runs, needs approval or is refused. It must be allowed for each of its subjects.
    pub fn rule(&self, call: &CallOf<'_>) -> Ruling {
        let wants = Wants {
            change: call.traits.approval,
            leave_sandbox: !call.escalation.is_none()
                && self.is_confined()
                && !failpoint::injected_bug("escalation_unasked"),
            is_covered: self.is_covered(call),
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

    /// Whether allow rules of the user name all that the call needs beyond its sandbox.
    fn is_covered(&self, call: &CallOf<'_>) -> bool {
        let Escalation::Needs(needs) = call.escalation else {
            return false;
        };
        if !call.may_be_covered {
            return false;
        }
        let rules = covering(&self.rules, needs, self.places());
        let mut subjects = call.subjects.iter();
        subjects.all(|subject| {
            let verdict = verdict(&rules, call.tool, subject);
            verdict.is_some_and(|verdict| verdict.decision == Decision::Allow)
        }) && !call.subjects.is_empty()
    }

    /// What the call asks for. Without a sandbox there is nothing to ask for.
    pub fn escalation(&self, asked: Asked<'_>) -> Result<Escalation, Failure> {
        if !self.is_confined() {
            return Ok(Escalation::None);
        }
        match (asked.reason, asked.needs) {
            (None, None) => Ok(Escalation::None),
            (None, Some(_)) if failpoint::injected_bug("needs_unchecked") => Ok(Escalation::None),
            (None, Some(_)) => Err(refused(&Invalid::NoReason)),
            (Some(_), None) => Ok(Escalation::Unnamed),
            (Some(_), Some(entries)) => {
                let needs = parse(entries, self.places()).map_err(|error| refused(&error))?;
                Ok(Escalation::Needs(needs.into()))
            }
        }
    }

    /// The context of the file work of one call.
    pub const fn under<'a>(&'a self, escalation: &'a Escalation) -> Within<'a> {
        Within {
            context: self,
            escalation,
        }
    }

    /// The directories that the paths of `needs` begin with.
    pub fn places(&self) -> Places<'_> {
        Places {
            cwd: &self.real_cwd,
            home: self.real_home.as_deref(),
        }
    }

    /// Whether the model may read these files at any time, without being asked about: what an error says about them is
    /// then nothing that it could not read itself.
    pub fn may_read(&self, files: &[Subject]) -> bool {
        let read = CallOf {
            tool: READ_FILE,
            traits: READS,
            subjects: files,
            escalation: &Escalation::None,
            may_be_covered: false,
        };
        self.has_read_file && self.rule(&read) == Ruling::Run
    }

    /// The sandbox of a command of agentd's own.
    pub fn ordinary(&self) -> Option<Box<Confined>> {
        self.confined.clone().map(Box::new)
    }

    /// The sandbox of a command, with what the user has approved in addition.
    pub fn confined(
        &self,
        foreground: bool,
        escalation: &Escalation,
    ) -> Result<Option<Box<Confined>>, Failure> {
        let confined = self.policy(escalation, Paths::Exist)?;
        Ok(confined.map(|confined| {
            let mut confined = confined.into_owned();
            confined.policy.foreground = foreground;
            Box::new(confined)
        }))
    }

    /// The sandbox of a call; `None` if tools have none.
    pub fn policy(
        &self,
        escalation: &Escalation,
        paths: Paths,
    ) -> Result<Option<Cow<'_, Confined>>, Failure> {
        let Some(ordinary) = &self.confined else {
            return Ok(None);
        };
        Ok(Some(match escalation {
            Escalation::None => Cow::Borrowed(ordinary),
            Escalation::Unnamed => Cow::Borrowed(self.escalated.as_ref().unwrap_or(ordinary)),
            Escalation::Needs(needs) => {
                Cow::Owned(grant::granted(ordinary, needs, &self.services, paths)?)
            }
        }))
    }

    /// Refuses a change of a file that the approval of the call does not include. The path contains no link.
    pub fn check_covered(&self, escalation: &Escalation, path: &Path) -> Result<(), Failure> {
        let (Some(ordinary), Escalation::Needs(needs)) = (&self.confined, escalation) else {
            return Ok(());
        };
        match grant::covers(ordinary, needs, path) || failpoint::injected_bug("needs_unchecked") {
            true => Ok(()),
            false => Err(Failure::new(format!(
                "`needs` does not include write:{}; nothing was written.",
                path.display()
            ))),
        }
    }

    /// The variables of the services that a call may use.
    pub fn service_variables<'a>(
        &'a self,
        needs: &'a [Need],
    ) -> impl Iterator<Item = (String, String)> + 'a {
        grant::variables(needs, &self.services)
    }

    /// Whether commands run in a sandbox.
    pub const fn is_confined(&self) -> bool {
        self.confined.is_some()
    }

    pub fn has_no_network(&self) -> bool {
        let confined = self.confined.as_ref();
        confined.is_some_and(|confined| confined.policy.network == Network::Off)
    }

    /// What commands can do at a path; `None` without a sandbox: they can do what their user can do.
    pub fn reach(&self, path: &Path, escalation: &Escalation) -> Option<Reach> {
        let confined = self.policy(escalation, Paths::Exist).ok()??;
        let reached = agentd_sandbox::reach(&confined.policy, &[path.to_owned()]).ok()?;
        reached.first().copied()
    }

    /// A note for the result of a failed tool, if the sandbox is the reason of the failure.
    pub fn denied(&self, actor: Actor, text: &str, escalation: &Escalation) -> Option<String> {
        let confined = match actor {
            Actor::Command => self.policy(escalation, Paths::Exist).ok()??,
            Actor::FileTool => Cow::Owned(self.shown_to_files(escalation)?),
            Actor::FileThread => self.policy(escalation, Paths::MayBeNew).ok()??,
        };
        denied::note(&confined, &self.cwd, actor, escalation, text)
    }

    /// The directory with all files of a task.
    pub fn task_dir(&self, task: TaskId) -> PathBuf {
        self.state.join("tasks").join(task.to_string())
    }
}
