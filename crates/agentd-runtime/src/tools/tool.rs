//! The trait of a tool: its declaration, and how its calls are prepared, run and recovered.

use super::blocking::{self, Cancelled, Stop};
use super::context::{CallOf, ToolContext, Within};
use super::escalate::{Asked, Escalation};
use super::failure::{Failure, said};
use super::file_history::{Before, Budget};
use super::file_work::{Ended, Fact, FileWork, NotDone, within};
use super::grant::Paths;
use super::replace::Target;
use super::traits::Traits;
use super::{arguments, contents, paths};
use agentd_core::approval::Ruling;
use agentd_core::event::{FileChange, PatchedFile, ToolStarted};
use agentd_core::id::{BootId, CallId, TaskId};
use agentd_core::message::{Block, CallOutcome, ToolCall};
use agentd_core::permission::Subject;
use agentd_core::recover::CallFact;
use agentd_core::state::StartedCall;
use agentd_core::turn::{Consent, Finished, Prepared};
use agentd_core::window::SeenFiles;
use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// How long file work that only reads may take, the start of its process included. Each tool has a shorter limit of its own, which
/// does not count while the kernel makes it wait.
const READ_PATIENCE: Duration = Duration::from_secs(45);

/// What the event of a started call records.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Start {
    pub task: Option<TaskId>,
    pub boot: Option<BootId>,
    pub change: Option<FileChange>,
    pub patched: Vec<PatchedFile>,
    /// What the files are that the call changes.
    pub before: Vec<Before>,
}

impl Start {
    /// A call that replaces the content of one file; `before` is what is kept of it.
    pub fn change(
        context: Within<'_>,
        target: &Target,
        old: Option<String>,
        new: String,
        before: Option<Before>,
    ) -> Self {
        let before = before.map(|before| Budget::default().fit(before));
        let kept_bytes = before.as_ref().map_or(0, Before::counted_bytes);
        Self {
            change: Some(FileChange {
                file: Some(contents::id(&target.path)),
                before: old,
                after: new,
                kept_bytes,
                is_private: !context.shares(&target.path),
            }),
            before: before.into_iter().collect(),
            ..Self::default()
        }
    }

    fn prepared(self, call: &ToolCall, tool: &str) -> Prepared {
        let before = self.before.into_iter();
        let kept = before.flat_map(|before| before.kept(&call.id)).collect();
        let started = ToolStarted {
            call: call.id.clone(),
            tool: tool.to_owned(),
            task: self.task,
            boot: self.boot,
            change: self.change,
            patched: self.patched,
            may_change_files: false,
        };
        Prepared::Run(started, kept)
    }
}

/// A call that was started.
pub(super) struct Job<A> {
    pub context: Arc<ToolContext>,
    pub call: CallId,
    pub started: StartedCall,
    pub arguments: A,
}

/// Changes files in the sandbox. It takes a moment and must not stop halfway, so it is not interrupted. If the process that
/// does it ends before it reports, `look` tells from the files what became of it.
pub(super) async fn change_files<W, L>(
    context: Arc<ToolContext>,
    escalation: Escalation,
    cancelled: &Cancelled,
    change: W,
    look: L,
) -> Finished
where
    W: FileWork<Report = Ended> + Send + 'static,
    L: FileWork<Report = Fact> + Send + 'static,
{
    if cancelled.now() {
        return blocking::interrupted();
    }
    let changed = move || {
        let stop = Stop::default();
        let lost = match within(&context, &escalation, &change, &stop) {
            Ok(ended) => return ended.finish(&context),
            Err(NotDone::Failed(failure)) => return failure.into(),
            Err(NotDone::Lost(lost)) => lost,
        };
        let fact = within(&context, &escalation, &look, &stop);
        let fact = fact.unwrap_or(Fact::Unknown);
        fact.after_loss(&context, &lost)
    };
    match blocking::whole(changed).await {
        Ok(finished) => finished,
        Err(failure) => failure.into(),
    }
}

/// Reads files in the sandbox. When the call is cancelled, this returns without waiting, and the process that reads is ended.
pub(super) async fn read_in<W>(
    context: Arc<ToolContext>,
    cancelled: Cancelled,
    work: W,
) -> Result<W::Report, Finished>
where
    W: FileWork + Send + 'static,
    W::Report: 'static,
{
    let read = move |stop: &Stop| {
        let stop = stop.within(READ_PATIENCE);
        within(&context, &Escalation::None, &work, &stop)
    };
    let read = blocking::read(cancelled, read).await?;
    read.map_err(|not_done| Failure::from(not_done).into())
}

/// Prepares a call in the sandbox.
pub(super) async fn prepare_in<W>(
    context: &Arc<ToolContext>,
    escalation: Escalation,
    work: W,
) -> Result<Start, Failure>
where
    W: FileWork<Report = Start> + Send + 'static,
{
    let context = Arc::clone(context);
    let prepared = blocking::whole(move || within(&context, &escalation, &work, &Stop::default()));
    Ok(prepared.await??)
}

#[async_trait]
pub(super) trait Tool: Send + Sync + 'static {
    const NAME: &'static str;
    const TRAITS: Traits;
    /// Unknown arguments are refused.
    type Arguments: DeserializeOwned + Send + Sync + 'static;

    /// For the model.
    fn description() -> String;

    /// JSON Schema of the arguments.
    fn parameters() -> Value;

    /// The subjects that the rules are matched against. May look at file metadata, not at contents.
    fn subjects(
        context: &ToolContext,
        arguments: &Self::Arguments,
    ) -> Result<Vec<Subject>, Failure>;

    /// Whether paths of `needs` must exist before the call.
    const PATHS: Paths = Paths::Exist;

    /// The files that a file tool changes, as the call names them.
    fn changes(_arguments: &Self::Arguments) -> Vec<String> {
        Vec::new()
    }

    /// What the call asks for beyond its sandbox.
    fn asked(_arguments: &Self::Arguments) -> Asked<'_> {
        Asked::default()
    }

    /// The files that [`Self::prepare`] reads, for a tool whose calls are checked before the user is asked about them: a
    /// call that cannot be carried out then fails without a question. `None` if the call is checked only once it is
    /// permitted. The model must be allowed to read these files, because the error may quote them.
    fn checked_first(_context: &ToolContext, _arguments: &Self::Arguments) -> Option<Vec<Subject>> {
        None
    }

    /// Checks that a permitted call can be carried out.
    async fn prepare(
        _context: &Arc<ToolContext>,
        _arguments: Self::Arguments,
        _seen: &SeenFiles,
    ) -> Result<Start, Failure> {
        Ok(Start::default())
    }

    async fn run(job: Job<Self::Arguments>, cancelled: Cancelled) -> Finished;

    /// The outcome of a call that an earlier process started. An idempotent call counts as not started: the model is
    /// told so, and may repeat it.
    async fn find(_job: Job<Self::Arguments>) -> CallFact {
        match Self::TRAITS.idempotent {
            true => CallFact::NotStarted,
            false => CallFact::Unknown,
        }
    }

    /// Waits for a call that [`Self::find`] reported as running.
    async fn resume(_job: Job<Self::Arguments>, _cancelled: Cancelled) -> Finished {
        said(CallOutcome::Unknown, "The outcome of this call is unknown.")
    }
}

/// A tool of any type, for use as a trait object.
#[async_trait]
pub(super) trait AnyTool: Send + Sync {
    fn name(&self) -> &'static str;
    fn traits(&self) -> Traits;
    fn declaration(&self) -> agentd_core::event::Tool;
    async fn prepare(
        &self,
        context: &Arc<ToolContext>,
        call: &ToolCall,
        consent: Consent,
        seen: &SeenFiles,
    ) -> Prepared;
    async fn run(&self, work: Work, cancelled: Cancelled) -> Finished;
    async fn find(&self, work: Work) -> CallFact;
    async fn resume(&self, work: Work, cancelled: Cancelled) -> Finished;
}

/// A started call whose arguments are not parsed yet.
pub(super) struct Work {
    pub context: Arc<ToolContext>,
    pub call: ToolCall,
    pub started: StartedCall,
}

pub(super) struct Known<T>(PhantomData<fn() -> T>);

pub(super) fn known<T: Tool>() -> Box<dyn AnyTool> {
    Box::new(Known::<T>(PhantomData))
}

impl<T: Tool> Known<T> {
    fn read(call: &ToolCall) -> Result<T::Arguments, Failure> {
        arguments::read(T::NAME, &T::parameters(), &call.arguments)
    }

    fn job(work: Work) -> Result<Job<T::Arguments>, Failure> {
        Ok(Job {
            arguments: Self::read(&work.call)?,
            context: work.context,
            call: work.call.id,
            started: work.started,
        })
    }

    /// What the call asks for, if it can be had: otherwise the call fails before the user is asked.
    fn escalation(
        context: &ToolContext,
        arguments: &T::Arguments,
        consent: Consent,
    ) -> Result<Escalation, Failure> {
        let escalation = context.escalation(T::asked(arguments))?;
        if consent != Consent::Given {
            escalation.check_named()?;
        }
        context.policy(&escalation, T::PATHS)?;
        for given in T::changes(arguments) {
            let path = paths::locate(&context.cwd, &given)?;
            context.check_covered(&escalation, &paths::real(&path))?;
        }
        Ok(escalation)
    }

    async fn start(
        context: &Arc<ToolContext>,
        call: &ToolCall,
        consent: Consent,
        seen: &SeenFiles,
    ) -> Result<May, Failure> {
        let arguments = Self::read(call)?;
        let at = Arc::clone(context);
        let (arguments, ruling, is_checked_first) = blocking::whole(move || {
            let ruling = Self::escalation(&at, &arguments, consent).and_then(|escalation| {
                let subjects = T::subjects(&at, &arguments)?;
                Ok(at.rule(&CallOf {
                    tool: T::NAME,
                    traits: T::TRAITS,
                    subjects: &subjects,
                    escalation: &escalation,
                    may_be_covered: !T::asked(&arguments).in_background,
                }))
            });
            let files = match &ruling {
                Ok(Ruling::Ask(_)) => T::checked_first(&at, &arguments),
                _ => None,
            };
            let is_checked_first = files.is_some_and(|files| at.may_read(&files));
            (arguments, ruling, is_checked_first)
        })
        .await?;
        match (ruling?, consent) {
            (Ruling::Refuse(text), _) => Ok(May::Not(text)),
            (Ruling::Ask(why), Consent::NotAsked) => {
                if is_checked_first {
                    // It is prepared again once it is approved: the files may have changed by then.
                    T::prepare(context, arguments, seen).await?;
                }
                Ok(May::OnceAsked(why))
            }
            (Ruling::Ask(_), Consent::Given | Consent::OfHook) | (Ruling::Run, _) => {
                T::prepare(context, arguments, seen).await.map(May::Run)
            }
        }
    }
}

enum May {
    Run(Start),
    OnceAsked(String),
    Not(String),
}

#[async_trait]
impl<T: Tool> AnyTool for Known<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn traits(&self) -> Traits {
        T::TRAITS
    }

    fn declaration(&self) -> agentd_core::event::Tool {
        agentd_core::event::Tool {
            name: T::NAME.to_owned(),
            description: T::description(),
            parameters: T::parameters(),
        }
    }

    async fn prepare(
        &self,
        context: &Arc<ToolContext>,
        call: &ToolCall,
        consent: Consent,
        seen: &SeenFiles,
    ) -> Prepared {
        match Self::start(context, call, consent, seen).await {
            Ok(May::Run(start)) => start.prepared(call, T::NAME),
            Ok(May::OnceAsked(why)) => Prepared::Ask(why),
            Ok(May::Not(text)) => Prepared::Refuse {
                outcome: CallOutcome::Denied,
                blocks: vec![Block::text(text)],
            },
            Err(failure) => failure.into(),
        }
    }

    async fn run(&self, work: Work, cancelled: Cancelled) -> Finished {
        match Self::job(work) {
            Ok(job) => T::run(job, cancelled).await,
            Err(failure) => failure.into(),
        }
    }

    async fn find(&self, work: Work) -> CallFact {
        match Self::job(work) {
            Ok(job) => T::find(job).await,
            Err(_) => CallFact::Unknown,
        }
    }

    async fn resume(&self, work: Work, cancelled: Cancelled) -> Finished {
        match Self::job(work) {
            Ok(job) => T::resume(job, cancelled).await,
            Err(failure) => said(CallOutcome::Unknown, failure.text()),
        }
    }
}
