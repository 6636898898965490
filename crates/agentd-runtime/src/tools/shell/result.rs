//! The result of a command, as text for the model.

use super::super::blocking;
use super::super::denied::Actor;
use super::super::ended_tasks;
use super::super::escalate::Escalation;
use super::super::failure::said;
use super::super::output::{self, Rest, number};
use super::super::tasks::{self, span};
use super::super::tool::{Job, Tool as _};
use super::{Arguments, Shell};
use agentd_core::event::TaskStarted;
use agentd_core::id::TaskId;
use agentd_core::message::CallOutcome;
use agentd_core::private_home;
use agentd_core::turn::Finished;
use agentd_process::task::{Exit, Found};
use agentd_sandbox::Refused;

/// The result of a command in the foreground.
pub(super) async fn finished(job: &Job<Arguments>, id: TaskId, found: Found) -> Finished {
    let exit = match found {
        Found::Ended(exit) => exit,
        Found::NeverStarted => {
            return said(CallOutcome::Error, "The command did not start.");
        }
        Found::Running(_) | Found::Unknown => {
            let output = output_so_far(job, id).await;
            let note = "Outcome unknown: the process that records how the command ends was killed. Check what \
                        the command did before you repeat it.";
            return said(CallOutcome::Unknown, with_note(&output, note));
        }
    };
    let output = output_so_far(job, id).await;
    let mut text = output;
    if exit.dropped_bytes > 0 {
        let dropped = number(exit.dropped_bytes);
        let note = format!(
            "{dropped} more bytes were discarded, because only so much output is kept; write long output to a \
             file instead"
        );
        text = with_note(&text, &note);
    }
    if let Some(note) = note(&exit, job.arguments.time_limit_ms()) {
        text = with_note(&text, &note);
    }
    let outcome = tasks::outcome(&exit);
    let escalation = job.context.escalation(Shell::asked(&job.arguments));
    let escalation = escalation.unwrap_or(Escalation::None);
    if outcome == CallOutcome::Error
        && exit.error.is_none()
        && let Some(note) = job.context.denied(Actor::Command, &text, &escalation)
    {
        text = with_note(&text, &note);
    }
    if let Some(note) = ended_tasks::note(&job.context.state, &text) {
        text = with_note(&text, &note);
    }
    for note in refused(&exit.refused) {
        text = with_note(&text, &note);
    }
    if let Some(note) = private_home::note(&exit.in_own_home) {
        text = with_note(&text, &note);
    }
    said(outcome, text)
}

/// What the command may not do to a repository, and did.
fn refused(refused: &Refused) -> Vec<String> {
    let mut notes = Vec::new();
    if !refused.settings.is_empty() {
        notes.push(format!(
            "[sandbox] Not stored in the repository's configuration: {}. Commands can add a remote, the upstream of a \
             branch, user.name and user.email, and change nothing that is there. If the task needs more, call shell again \
             with `escalate` (the reason) and `needs` [\"git-config\"].",
            refused.settings.join(", ")
        ));
    }
    if !refused.moved.is_empty() {
        notes.push(format!(
            "[sandbox] Moved away, because git would run programs because of it: {}",
            refused.moved.join(", ")
        ));
    }
    if !refused.stays.is_empty() {
        notes.push(format!(
            "[sandbox] Git would run programs because of {}, and it cannot be moved away. No command starts until the \
             user has removed it.",
            refused.stays.join(", ")
        ));
    }
    notes
}

/// How the command ended, unless it succeeded.
fn note(exit: &Exit, limit_ms: Option<u64>) -> Option<String> {
    if let Some(error) = &exit.error {
        return Some(format!("could not be started: {error}"));
    }
    let how = match (exit.code, exit.signal) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit code {code}")),
        (None, Some(signal)) => Some(format!("signal {signal}")),
        (None, None) => Some("it was not started".to_owned()),
    };
    if exit.timed_out {
        let after = limit_ms.map(|ms| format!(" after {}", span(ms)));
        let after = after.unwrap_or_default();
        let text = "the command and all its processes were ended. Set a longer `timeout_ms`, or \
                    `run_in_background`";
        return Some(format!("timed out{after}: {text}"));
    }
    if exit.stopped {
        let how = how.map(|how| format!(" ({how})")).unwrap_or_default();
        return Some(format!(
            "interrupted: the command and all its processes were ended{how}"
        ));
    }
    how
}

pub(super) fn interrupted_with(output: &str, note: &str) -> Finished {
    let text = with_note(output, &format!("interrupted: {note}"));
    said(CallOutcome::Interrupted, text)
}

/// The result of a background command that keeps running.
pub(super) fn left_running(job: &Job<Arguments>, id: TaskId) -> Finished {
    let text = format!(
        "Started task {id} in the background. task_output shows its output, task_stop ends it; \
         a message reports when it ends."
    );
    let mut finished = said(CallOutcome::Ok, text);
    finished.background = Some(TaskStarted {
        task: id,
        call: job.call.clone(),
        tool: Shell::NAME.to_owned(),
        boot: job.started.boot.unwrap_or(job.context.boot),
    });
    finished
}

/// What the command has written, capped at the limit.
pub(super) async fn output_so_far(job: &Job<Arguments>, id: TaskId) -> String {
    let path = tasks::output_of(&job.context, id);
    let limit = job.context.output_bytes;
    let read = blocking::whole(move || output::of_file(&path, limit, &Rest::In(&path))).await;
    // No file means no output.
    read.ok().and_then(Result::ok).unwrap_or_default()
}

fn with_note(output: &str, note: &str) -> String {
    match output.trim_end() {
        "" => note.to_owned(),
        output => format!("{output}\n{note}"),
    }
}
