//! `shell`: runs a command, in the foreground or in the background.

mod declared;
mod result;

pub(super) use declared::ShellWords;

use super::arguments::whole;
use super::blocking::Cancelled;
use super::context::ToolContext;
use super::denied::Actor;
use super::escalate::{Asked, Escalation};
use super::failure::{Failure, said};
use super::tool::{Job, Start, Tool};
use super::traits::Traits;
use super::{paths, scan, tasks};
use agentd_core::id::{CallId, TaskId};
use agentd_core::message::CallOutcome;
use agentd_core::permission::Subject;
use agentd_core::recover::CallFact;
use agentd_core::shell_words::{self, CommandLine};
use agentd_core::turn::Finished;
use agentd_core::window::SeenFiles;
use agentd_files::own;
use agentd_process::task::{self, Found, Order, Task};
use agentd_sandbox::Reach;
use async_trait::async_trait;
use result::{finished, interrupted_with, left_running};
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

const TIMEOUT_MS: u64 = 120_000;
const MAX_TIMEOUT_MS: u64 = 3_600_000;
/// How long a command may take to end after SIGTERM, before it is killed.
const GRACE_MS: u64 = 2_000;
/// Shorter, because an interrupted turn must end within a second.
const INTERRUPT_GRACE: Duration = Duration::from_millis(300);
const INTERRUPT_PATIENCE: Duration = Duration::from_millis(500);
/// A background command that has not started by then is withdrawn.
const BEGIN_PATIENCE: Duration = Duration::from_secs(10);
const BEGIN_PAUSE: Duration = Duration::from_millis(5);

pub(super) struct Shell;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A line, or a list of words: both forms are accepted from every model.
    command: CommandLine,
    #[serde(default, deserialize_with = "whole")]
    timeout_ms: Option<u64>,
    run_in_background: Option<bool>,
    #[serde(alias = "workdir")]
    cwd: Option<String>,
    /// Why the command must leave the sandbox.
    escalate: Option<String>,
    /// What it needs there.
    needs: Option<Vec<String>>,
    /// Shown to the user only.
    #[serde(rename = "description")]
    _description: Option<String>,
}

#[async_trait]
impl Tool for Shell {
    const NAME: &'static str = shell_words::TOOL;
    const TRAITS: Traits = Traits {
        parallel: false,
        idempotent: false,
        approval: true,
    };
    type Arguments = Arguments;

    fn description() -> String {
        declared::description()
    }

    fn parameters() -> Value {
        declared::parameters()
    }

    fn subjects(context: &ToolContext, arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        arguments.check_dir(context)?;
        Ok(vec![Subject::Command(arguments.command.0.clone())])
    }

    fn asked(arguments: &Arguments) -> Asked<'_> {
        Asked::new(&arguments.escalate, &arguments.needs).in_background(arguments.is_background())
    }

    async fn prepare(
        context: &Arc<ToolContext>,
        arguments: Arguments,
        _seen: &SeenFiles,
    ) -> Result<Start, Failure> {
        arguments.check()?;
        arguments.dir(context, &context.escalation(Self::asked(&arguments))?)?;
        if arguments.is_background() {
            let running = tasks::running(context).await?;
            if running.len() >= context.max_tasks {
                return Err(too_many(&running));
            }
        }
        Ok(Start {
            task: Some(TaskId::new(Uuid::now_v7())),
            boot: Some(context.boot),
            ..Start::default()
        })
    }

    async fn run(job: Job<Arguments>, mut cancelled: Cancelled) -> Finished {
        let Some(id) = job.started.task else {
            return Failure::new("The start was not recorded; nothing was run.").into();
        };
        if cancelled.now() {
            return interrupted_with("", "it was not started");
        }
        let order = match job.arguments.order(&job.context, &job.call) {
            Ok(order) => order,
            Err(failure) => return failure.into(),
        };
        let _running = tokio::select! {
            running = scan::before_command(&job.context) => running,
            () = cancelled.wait() => return interrupted_with("", "it was not started"),
        };
        let dir = job.context.task_dir(id);
        let task = match task::start(&job.context.shim, &dir, &order).await {
            Ok(task) => task,
            Err(error) => {
                return Failure::new(format!("Cannot start the command: {error}.")).into();
            }
        };
        match job.arguments.is_background() {
            true => {
                begun(&task, &mut cancelled).await;
                leave(&job, id, &cancelled).await
            }
            false => wait(&job, id, &task, cancelled).await,
        }
    }

    async fn find(job: Job<Arguments>) -> CallFact {
        let Some(id) = job.started.task else {
            return CallFact::Unknown;
        };
        match tasks::find(&job.context, id, job.started.boot).await {
            Ok(Found::NeverStarted) => CallFact::NotStarted,
            Ok(Found::Running(_)) if !job.arguments.is_background() => CallFact::Running,
            Ok(found @ (Found::Running(_) | Found::Ended(_))) => {
                CallFact::Ended(ended(&job, id, found).await)
            }
            Ok(Found::Unknown) | Err(_) => CallFact::Unknown,
        }
    }

    async fn resume(job: Job<Arguments>, cancelled: Cancelled) -> Finished {
        let Some(id) = job.started.task else {
            return said(CallOutcome::Unknown, "The start was not recorded.");
        };
        match tasks::find(&job.context, id, job.started.boot).await {
            Ok(Found::Running(task)) if !job.arguments.is_background() => {
                wait(&job, id, &task, cancelled).await
            }
            Ok(found) => ended(&job, id, found).await,
            Err(failure) => said(CallOutcome::Unknown, failure.text()),
        }
    }
}

impl Arguments {
    fn is_background(&self) -> bool {
        self.run_in_background.unwrap_or_default()
    }

    fn check(&self) -> Result<(), Failure> {
        let line = &self.command.0;
        if line.trim().is_empty() || line.contains('\0') {
            let text = "`command` is empty or contains a NUL byte; nothing was run.";
            return Err(Failure::new(text));
        }
        match self.timeout_ms {
            Some(ms) if !(1..=MAX_TIMEOUT_MS).contains(&ms) => Err(Failure::new(format!(
                "`timeout_ms` must be from 1 to {MAX_TIMEOUT_MS}; nothing was run. For a longer command \
                 use `run_in_background`."
            ))),
            _ => Ok(()),
        }
    }

    /// A call that asks for more than its sandbox runs in the working directory: a tool could replace any other directory by
    /// a link while the user reads the question, and a rule for the command says nothing about a directory.
    fn check_dir(&self, context: &ToolContext) -> Result<(), Failure> {
        let Some(cwd) = self.cwd.as_deref().filter(|_| self.needs.is_some()) else {
            return Ok(());
        };
        let dir = paths::locate(&context.cwd, cwd)?;
        if !context.is_confined() || dir == context.cwd || dir == context.places().cwd {
            return Ok(());
        }
        Err(Failure::new(
            "A call with `needs` runs in the working directory; nothing was run. Leave out `cwd`, and begin `command` with \
             `cd DIR && `, which the user can see.",
        ))
    }

    /// `None` means no limit.
    fn time_limit_ms(&self) -> Option<u64> {
        match self.is_background() {
            true => self.timeout_ms,
            false => Some(self.timeout_ms.unwrap_or(TIMEOUT_MS)),
        }
    }

    fn dir(&self, context: &ToolContext, escalation: &Escalation) -> Result<PathBuf, Failure> {
        let dir = match &self.cwd {
            Some(cwd) => paths::locate(&context.cwd, cwd)?,
            None => context.cwd.clone(),
        };
        let is_there = match context.reach(&dir, escalation) {
            // It cannot be checked here: commands have another home and another /tmp than this process.
            Some(Reach::Own | Reach::OwnRead) => true,
            Some(Reach::Hidden) => false,
            Some(Reach::Read | Reach::Write) | None => dir.is_dir(),
        };
        if is_there {
            return Ok(dir);
        }
        let name = paths::shown(&context.cwd, &dir);
        let text = format!("`cwd`: {name} is not a directory; nothing was run.");
        let missing = format!("{}: No such file or directory", dir.display());
        Err(match context.denied(Actor::Command, &missing, escalation) {
            Some(note) => Failure::new(format!("{text}\n{note}")),
            None => Failure::new(text),
        })
    }

    fn order(&self, context: &ToolContext, call: &CallId) -> Result<Order, Failure> {
        let escalation = context.escalation(Shell::asked(self))?;
        let mut env = context.env_of(call);
        if let Escalation::Needs(needs) = &escalation {
            env.extend(context.service_variables(needs));
        }
        Ok(Order {
            program: program(),
            args: vec!["-c".to_owned(), self.command.0.clone()],
            env,
            cwd: self.dir(context, &escalation)?,
            time_limit_ms: self.time_limit_ms(),
            grace_ms: GRACE_MS,
            output_limit_bytes: context.kept.allow(context.kept_bytes),
            foreground: !self.is_background(),
            errors_apart: false,
            stdin: None,
            owner: None,
            redact: context.secrets.values(),
            lab: context.lab.clone(),
            limits: context.task_limits,
            confined: context.confined(!self.is_background(), &escalation)?,
        })
    }
}

/// Most models write for bash.
fn program() -> PathBuf {
    let bash = Path::new("/bin/bash");
    match bash.exists() {
        true => bash.to_owned(),
        false => PathBuf::from("/bin/sh"),
    }
}

fn too_many(running: &[TaskId]) -> Failure {
    let ids: Vec<String> = running.iter().map(ToString::to_string).collect();
    Failure::new(format!(
        "{} background tasks are running, which is the limit (`max_tasks`); nothing was run. End one of them \
         with task_stop: {}.",
        ids.len(),
        ids.join(", ")
    ))
}

/// Waits for a command in the foreground.
async fn wait(job: &Job<Arguments>, id: TaskId, task: &Task, mut cancelled: Cancelled) -> Finished {
    let found = tokio::select! {
        biased;
        found = task.ended() => found,
        () = cancelled.wait() => return interrupt(job, id).await,
    };
    match found {
        Ok(found) => finished(job, id, found).await,
        Err(error) => said(
            CallOutcome::Unknown,
            format!("The outcome of the command is unknown: {error}."),
        ),
    }
}

async fn interrupt(job: &Job<Arguments>, id: TaskId) -> Finished {
    let found = match tasks::withdraw(&job.context, id).await {
        Ok(Found::Running(task)) => tasks::end(&task, INTERRUPT_GRACE, INTERRUPT_PATIENCE).await,
        Ok(found) => Some(found),
        Err(failure) => return said(CallOutcome::Unknown, failure.text()),
    };
    match found {
        Some(Found::NeverStarted) => interrupted_with("", "it was not started"),
        Some(found @ Found::Ended(_)) => finished(job, id, found).await,
        Some(Found::Running(_) | Found::Unknown) | None => {
            let output = result::output_so_far(job, id).await;
            let note = "it was killed; how it ended is unknown";
            interrupted_with(&output, note)
        }
    }
}

/// The result of a call whose command was found running in the background, or ended.
async fn ended(job: &Job<Arguments>, id: TaskId, found: Found) -> Finished {
    match (job.arguments.is_background(), found) {
        // If it has ended meanwhile, that is reported as for every other background task.
        (true, Found::Running(_)) => left_running(job, id),
        (true, Found::Ended(exit)) if exit.error.is_none() => left_running(job, id),
        (_, found) => finished(job, id, found).await,
    }
}

/// The result of a background command: it keeps running, unless it never started.
async fn leave(job: &Job<Arguments>, id: TaskId, cancelled: &Cancelled) -> Finished {
    match tasks::withdraw(&job.context, id).await {
        Ok(Found::NeverStarted) if cancelled.now() => interrupted_with("", "it was not started"),
        Ok(found) => ended(job, id, found).await,
        Err(failure) => said(CallOutcome::Unknown, failure.text()),
    }
}

/// Waits until the program runs, or until it is known that it will not run.
async fn begun(task: &Task, cancelled: &mut Cancelled) {
    let runs = async {
        while !has_leader(task.dir()) {
            tokio::time::sleep(BEGIN_PAUSE).await;
        }
    };
    tokio::select! {
        () = runs => {}
        _ = task.ended() => {}
        () = cancelled.wait() => {}
        () = tokio::time::sleep(BEGIN_PATIENCE) => {}
    }
}

fn has_leader(dir: &Path) -> bool {
    let text = own::read(dir.join("running")).unwrap_or_default();
    let running: Value = serde_json::from_slice(&text).unwrap_or_default();
    !running["leader"].is_null() || dir.join("exit").exists()
}
