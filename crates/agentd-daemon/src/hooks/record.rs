//! What is written of a hook, and read again.

use super::{Done, session};
use crate::daemon::Daemon;
use crate::desk::Desk;
use crate::problem::{Result, of_store};
use agentd_core::event::{Body, HookEnded, HookOutcome, HookOutput};
use agentd_core::hook::{Answer, Decision, Layer, Verdict, capped};
use agentd_core::id::{FireId, HookId, Seq};
use agentd_core::state::{Firing, Run};
use agentd_process::failpoint;
use agentd_store::ReadQuery;
use std::sync::Arc;

/// Says how one ended, unless that is on record. The last one of those that open a conversation brings with it
/// what they all had to say: there is no moment at which they have spoken and it is not there.
pub async fn end(daemon: &Arc<Daemon>, desk: &Arc<Desk>, hook: HookId, mut done: Done) {
    shorten(daemon, desk, hook, &mut done.answer);
    let mut guard = desk.lock().await;
    let Some((firing, run)) = guard.state.hooks.running(hook) else {
        return;
    };
    let (firing, run) = (firing.clone(), run.clone());
    let (conversation, turn, event) = (firing.conversation, firing.turn, firing.event);
    let fire = run.started.fire;
    if let Some(warning) = &done.answer.warning {
        tracing::warn!(agent = %desk.id, %event, %hook, warning, "a hook went wrong");
    }
    let has_words = done.answer.has_words();
    let decision = done.answer.decision;
    let is_current = guard.state.tree.current() == Some(conversation);
    let opening = match is_current && session::is_opened_by(&firing, &run) {
        true => opening(daemon, desk, &firing, (hook, &done)).await,
        false => Vec::new(),
    };
    let mut lines = Vec::new();
    if has_words {
        let answer = done.answer;
        lines.push((conversation, HookOutput { hook, answer }.into()));
    }
    let ended = HookEnded {
        hook,
        fire,
        outcome: done.outcome,
        exit: done.exit,
        timed_out: done.timed_out,
        decision,
        has_words,
        duration_ms: done.duration_ms,
    };
    lines.push((conversation, ended.into()));
    lines.extend(opening.into_iter().map(|body| (conversation, body)));
    failpoint::hit("before", "hook_ended");
    let written = guard.append_in(turn, lines).await;
    failpoint::hit("after", "hook_ended");
    if let Err(problem) = written {
        tracing::error!(agent = %desk.id, %hook, %problem, "how a hook ended is not written");
    }
    daemon.transcripts.touched(desk.id);
}

/// What is too long for the model is in a file.
fn shorten(daemon: &Daemon, desk: &Desk, hook: HookId, answer: &mut Answer) {
    let Some(context) = &answer.context else {
        return;
    };
    let folder = daemon.layout.agent_folder(desk.id).join("outputs");
    let path = folder.join(format!("hook-{hook}.txt"));
    let Some(short) = capped(context, &path.display().to_string()) else {
        return;
    };
    let made = daemon.layout.make_below(&folder);
    if let Err(error) = made.and_then(|()| std::fs::write(&path, context)) {
        tracing::warn!(path = %path.display(), %error, "the rest of a hook's context is lost");
    }
    answer.context = Some(short);
}

/// What those said that were waited for, in the order in which they were told.
pub async fn answers(
    daemon: &Daemon,
    desk: &Desk,
    fire: FireId,
) -> Result<Vec<(HookOutcome, Answer)>> {
    let firing = desk.lock().await.state.hooks.get(fire).cloned();
    let runs = firing.map(|firing| firing.runs).unwrap_or_default();
    let mut answers = Vec::new();
    for run in runs.iter().filter(|run| !run.started.is_async) {
        answers.push(answer(daemon, desk, run).await?);
    }
    Ok(answers)
}

async fn answer(daemon: &Daemon, desk: &Desk, run: &Run) -> Result<(HookOutcome, Answer)> {
    let Some(ended) = run.ended else {
        return Ok((HookOutcome::Unknown, Answer::default()));
    };
    let words = match ended.words {
        Some(at) => words(daemon, desk, at).await?,
        None => None,
    };
    let mut answer = words.unwrap_or(Answer {
        decision: ended.decision,
        ..Answer::default()
    });
    let may_approve = run.started.layer != Layer::Project || failpoint::mutant("project_approves");
    if !may_approve && answer.decision == Decision::Allow {
        // A project may refuse calls and have the user asked; what the user is asked about is not the project's to allow.
        answer.decision = Decision::None;
    }
    Ok((ended.outcome, answer))
}

/// What all of them have to say to the conversation that begins, the one that ends now with them.
async fn opening(
    daemon: &Daemon,
    desk: &Desk,
    firing: &Firing,
    (hook, done): (HookId, &Done),
) -> Vec<Body> {
    let mut answers = Vec::new();
    for run in firing.runs.iter().filter(|run| !run.started.is_async) {
        if run.started.hook == hook {
            answers.push((done.outcome, done.answer.clone()));
            continue;
        }
        match answer(daemon, desk, run).await {
            Ok(answer) => answers.push(answer),
            Err(problem) => {
                tracing::error!(agent = %desk.id, %problem, "what a hook said is not read");
            }
        }
    }
    session::words(desk.id, Verdict::of(firing.event, answers))
}

/// None where they were purged.
async fn words(daemon: &Daemon, desk: &Desk, at: Seq) -> Result<Option<Answer>> {
    let query = ReadQuery::all(desk.id, Seq(at.0.saturating_sub(1)), 1);
    let page = daemon.store.read(query).await;
    let page = page.map_err(|error| of_store(&error))?;
    Ok(page.events.into_iter().find_map(|event| match event.body {
        Body::HookOutput(output) => Some(output.answer),
        _ => None,
    }))
}

/// The reasons that hooks gave for a no, between two events.
pub async fn reason(daemon: &Daemon, desk: &Desk, from: Seq, to: Seq) -> Option<String> {
    let count = usize::try_from(to.0.saturating_sub(from.0) + 1).unwrap_or(usize::MAX);
    let query = ReadQuery::all(desk.id, Seq(from.0.saturating_sub(1)), count.min(1_000));
    let events = daemon.store.read(query).await.ok()?.events;
    let reasons = events.into_iter().filter_map(|event| match event.body {
        Body::HookOutput(output) if output.answer.decision == Decision::Deny => {
            output.answer.reason
        }
        _ => None,
    });
    let reasons: Vec<String> = reasons.collect();
    (!reasons.is_empty()).then(|| reasons.join("\n"))
}
