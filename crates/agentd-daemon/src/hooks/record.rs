//! Writes the results of hooks to the journal and reads them.

use super::{Done, session};
use crate::daemon::AgentHandle;
use crate::error::Result;
use crate::spawn::blocking;
use agentd_core::event::{Body, HookEnded, HookOutcome, HookOutput};
use agentd_core::hook::{Answer, Decision, Layer, Verdict, capped};
use agentd_core::id::{HookId, InvocationId, Seq};
use agentd_core::state::{InvocationState, Run};
use agentd_failpoint as failpoint;
use agentd_store::ReadQuery;

/// Records how a hook ended, unless that is recorded already. The commit of a conversation's last SessionStart hook
/// also contains the context and the prompt from all of them: the journal never has their ends without their output.
pub async fn end(handle: &AgentHandle, hook: HookId, mut done: Done) {
    shorten(handle, hook, &mut done.answer).await;
    let mut guard = handle.lock().await;
    let Some((invoked, run)) = guard.state.hooks.running(hook) else {
        return;
    };
    let (invoked, run) = (invoked.clone(), run.clone());
    let (conversation, turn, event) = (invoked.conversation, invoked.turn, invoked.event);
    let invocation = run.started.invocation;
    if let Some(warning) = &done.answer.warning {
        tracing::warn!(agent = %handle.id, %event, %hook, warning, "hook failed");
    }
    let has_words = done.answer.has_words();
    let decision = done.answer.decision;
    let is_current = guard.state.tree.current() == Some(conversation);
    let opening = match is_current && session::is_opened_by(&invoked, &run) {
        true => opening(handle, &invoked, (hook, &done)).await,
        false => Vec::new(),
    };
    let mut lines = Vec::new();
    if has_words {
        let answer = done.answer;
        lines.push((conversation, HookOutput { hook, answer }.into()));
    }
    let ended = HookEnded {
        hook,
        invocation,
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
    if let Err(error) = written {
        tracing::error!(agent = %handle.id, %hook, %error, "hook result not recorded");
    }
    handle.daemon.transcripts.touched(handle.id);
}

/// Moves context that is too long for the model to a file.
async fn shorten(handle: &AgentHandle, hook: HookId, answer: &mut Answer) {
    let Some(context) = answer.context.clone() else {
        return;
    };
    let dir = handle.daemon.layout.agent_dir(handle.id).join("outputs");
    let path = dir.join(format!("hook-{hook}.txt"));
    let Some(short) = capped(&context, &path.display().to_string()) else {
        return;
    };
    let layout = handle.daemon.layout.clone();
    let saved = blocking(move || {
        layout.make_below(&dir)?;
        std::fs::write(path, context)
    });
    if let Err(error) = saved.await {
        tracing::warn!(agent = %handle.id, %hook, %error, "full hook context not saved");
    }
    answer.context = Some(short);
}

/// The answers of an invocation's hooks that are not async, in the order of their start.
pub async fn answers(
    handle: &AgentHandle,
    invocation: InvocationId,
) -> Result<Vec<(HookOutcome, Answer)>> {
    let invoked = handle.lock().await.state.hooks.get(invocation).cloned();
    let runs = invoked.map(|invoked| invoked.runs).unwrap_or_default();
    let mut answers = Vec::new();
    for run in runs.iter().filter(|run| !run.started.is_async) {
        answers.push(answer(handle, run).await?);
    }
    Ok(answers)
}

async fn answer(handle: &AgentHandle, run: &Run) -> Result<(HookOutcome, Answer)> {
    let Some(ended) = run.ended else {
        return Ok((HookOutcome::Unknown, Answer::default()));
    };
    let words = match ended.words {
        Some(at) => words(handle, at).await?,
        None => None,
    };
    let mut answer = words.unwrap_or(Answer {
        decision: ended.decision,
        ..Answer::default()
    });
    let may_approve =
        run.started.layer != Layer::Project || failpoint::injected_bug("project_approves");
    if !may_approve && answer.decision == Decision::Allow {
        // A project's hook may refuse a call or have the user asked. It may not allow a call.
        answer.decision = Decision::None;
    }
    Ok((ended.outcome, answer))
}

/// What all hooks of the invocation add to the new conversation, including the hook that ends now.
async fn opening(
    handle: &AgentHandle,
    invoked: &InvocationState,
    (hook, done): (HookId, &Done),
) -> Vec<Body> {
    let mut answers = Vec::new();
    for run in invoked.runs.iter().filter(|run| !run.started.is_async) {
        if run.started.hook == hook {
            answers.push((done.outcome, done.answer.clone()));
            continue;
        }
        match answer(handle, run).await {
            Ok(answer) => answers.push(answer),
            Err(error) => {
                tracing::error!(agent = %handle.id, %error, "hook output cannot be read");
            }
        }
    }
    session::words(handle.id, Verdict::of(invoked.event, answers))
}

/// None if the output was purged.
async fn words(handle: &AgentHandle, at: Seq) -> Result<Option<Answer>> {
    let query = ReadQuery::all(handle.id, Seq(at.0.saturating_sub(1)), 1);
    let page = handle.daemon.store.read(query).await?;
    Ok(page.events.into_iter().find_map(|event| match event.body {
        Body::HookOutput(output) => Some(output.answer),
        _ => None,
    }))
}

/// The reasons of the hooks that refused, between two events.
pub async fn reason(handle: &AgentHandle, from: Seq, to: Seq) -> Option<String> {
    let count = usize::try_from(to.0.saturating_sub(from.0) + 1).unwrap_or(usize::MAX);
    let query = ReadQuery::all(handle.id, Seq(from.0.saturating_sub(1)), count.min(1_000));
    let events = handle.daemon.store.read(query).await.ok()?.events;
    let reasons = events.into_iter().filter_map(|event| match event.body {
        Body::HookOutput(output) if output.answer.decision == Decision::Deny => {
            output.answer.reason
        }
        _ => None,
    });
    let reasons: Vec<String> = reasons.collect();
    (!reasons.is_empty()).then(|| reasons.join("\n"))
}
