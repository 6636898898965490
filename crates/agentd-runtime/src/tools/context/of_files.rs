//! The context for file tools: what they see and write, in a process of their own, and what such a process knows.

use super::super::ToolboxOptions;
use super::super::blocking::broken;
use super::super::denied::Actor;
use super::super::escalate::Escalation;
use super::super::failure::{Failure, no_sandbox};
use super::super::grant::{Paths, Services};
use super::{ToolContext, Within};
use agentd_core::catalog::ToolForms;
use agentd_core::id::BootId;
use agentd_core::needs::Need;
use agentd_core::secrets::Secrets;
use agentd_core::spec::{ApprovalMode, Rule};
use agentd_failpoint as failpoint;
use agentd_process::task::{Confined, Limits, ShimProgram};
use agentd_sandbox::Policy;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What a process of the file tools needs of the context.
#[derive(Serialize, Deserialize)]
pub struct Setup<'a> {
    cwd: Cow<'a, Path>,
    state: Cow<'a, Path>,
    output_bytes: usize,
    file_history_bytes: u64,
    secrets: Vec<String>,
    rules: Cow<'a, [Rule]>,
    approval: ApprovalMode,
    /// The ordinary sandbox of the agent. What the process itself has may be more.
    confined: Option<Cow<'a, Confined>>,
    escalated: Option<Cow<'a, Confined>>,
    /// Why it may be more: the process compares each file that it changes with it.
    escalation: Cow<'a, Escalation>,
}

impl Within<'_> {
    /// The same as [`ToolContext::shares`], for a file of this call.
    pub fn shares(self, path: &Path) -> bool {
        self.context.shares(path, self.escalation)
    }
}

impl ToolContext {
    /// The context in a process of the file tools, and the rights of the calls for which it works.
    pub fn inside(setup: Setup<'_>, boot: BootId) -> (Self, Escalation) {
        let context = Self::new(ToolboxOptions {
            cwd: setup.cwd.into_owned(),
            state: setup.state.into_owned(),
            env: BTreeMap::new(),
            confined: setup.confined.map(Cow::into_owned),
            rules: setup.rules.into_owned(),
            approval: setup.approval,
            escalated: setup.escalated.map(Cow::into_owned),
            services: Services::new(),
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
        });
        (context, setup.escalation.into_owned())
    }

    /// For a process of the file tools.
    pub fn setup<'a>(&'a self, escalation: &'a Escalation) -> Setup<'a> {
        let is_unnamed = *escalation == Escalation::Unnamed;
        let escalated = self.escalated.as_ref().filter(|_| is_unnamed);
        Setup {
            cwd: Cow::Borrowed(&self.cwd),
            state: Cow::Borrowed(&self.state),
            output_bytes: self.output_bytes,
            file_history_bytes: self.file_history_bytes,
            secrets: self.secrets.values(),
            rules: Cow::Borrowed(&self.rules),
            approval: self.approval,
            confined: self.confined.as_ref().map(Cow::Borrowed),
            escalated: escalated.map(Cow::Borrowed),
            escalation: Cow::Borrowed(escalation),
        }
    }

    /// The sandbox of file tools, with what the user has approved in addition; `None` if they may do what their user may do.
    pub fn file_sandbox(
        &self,
        escalation: &Escalation,
    ) -> Result<Option<Cow<'_, Confined>>, Failure> {
        let confined = self.policy(escalation, Paths::MayBeNew)?;
        Ok(confined.filter(|_| !failpoint::injected_bug("files_unconfined")))
    }

    /// What file tools see and write in a view of their own, of what commands do in this sandbox.
    pub fn file_policy(&self, escalation: &Escalation, confined: &Confined) -> Cow<'_, Policy> {
        let policy = || self.files.policy(&confined.policy);
        match escalation {
            Escalation::None => Cow::Borrowed(self.file_policy.get_or_init(policy)),
            Escalation::Needs(_) | Escalation::Unnamed => Cow::Owned(policy()),
        }
    }

    /// The sandbox of file tools, for notes.
    pub(super) fn shown_to_files(&self, escalation: &Escalation) -> Option<Confined> {
        let confined = self.policy(escalation, Paths::MayBeNew).ok()??;
        let mut policy = self.file_policy(escalation, &confined).into_owned();
        // The note names settings of the agent.
        policy.network = confined.policy.network;
        Some(Confined {
            policy,
            ..confined.into_owned()
        })
    }

    /// Looks at files on a thread under the restrictions of commands. For scans, which name files of the host: a private
    /// `/tmp` is nothing to them.
    pub fn on_thread<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        let Some(confined) = self.file_sandbox(&Escalation::None)? else {
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

    /// Whether a file is one that other processes of the user find at this path, which is without links. A file that a call
    /// can change is in one of its trees, or else in the agent's own `/tmp`.
    pub fn shares(&self, path: &Path, escalation: &Escalation) -> bool {
        let confined = self.confined.as_ref();
        let confined = confined.filter(|_| !failpoint::injected_bug("files_unconfined"));
        let Some(confined) = confined else {
            return true;
        };
        let mut trees: Vec<&PathBuf> = confined.policy.writable.iter().collect();
        match escalation {
            Escalation::None => {}
            Escalation::Unnamed => {
                let wider = self.escalated.iter();
                trees.extend(wider.flat_map(|wider| &wider.policy.writable));
            }
            // It has the /tmp of the host.
            Escalation::Needs(_) if escalation.is_everything() => return true,
            Escalation::Needs(needs) => trees.extend(needs.iter().filter_map(|need| match need {
                Need::Write(tree) => Some(tree),
                _ => None,
            })),
        }
        trees.into_iter().any(|tree| {
            let real = fs::canonicalize(tree);
            path.starts_with(real.as_ref().unwrap_or(tree))
        })
    }

    /// The failure, with a note if the sandbox is its reason.
    pub fn with_note(&self, failure: Failure, escalation: &Escalation) -> Failure {
        match self.denied(self.file_actor(), failure.text(), escalation) {
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
}
