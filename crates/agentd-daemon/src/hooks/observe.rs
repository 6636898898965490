//! Hooks for events that have already happened: no caller waits for them, and their verdict changes nothing.

use crate::daemon::{AgentGuard, AgentHandle, Daemon};
use crate::hook_sources;
use crate::spawn::{blocking, spawn};
use agentd_core::event::{Asks, Body, Event, Mode, Note, TurnEnded, TurnStatus};
use agentd_core::hook::{HookEvent, HookInput, HookInvocation, Setting, chosen};
use agentd_core::id::{HookId, InvocationId};
use agentd_process::Exit;
use serde_json::{Value, json};
use std::sync::Arc;

use super::run::{self, Job};

/// Invokes hooks for events that were committed, with the notes of the same commit.
pub fn written(guard: &AgentGuard<'_>, events: &[Event]) {
    let mut note = None;
    for event in events {
        if let Body::Note(Note { text, .. }) = &event.body {
            note = Some(text.clone());
        }
        if let Body::TurnEnded(ended) = &event.body {
            if ended.status == TurnStatus::Limited {
                end_hooks_of_turn(guard, event);
            }
            for invocation in of_turn_ended(guard, event, ended, note.as_deref()) {
                guard.handle.tell(invocation);
            }
        }
        let invocations = of_event(guard, event, note.as_deref());
        for invocation in invocations.into_iter().chain(of_end(guard, event)) {
            guard.handle.tell(invocation);
        }
    }
}

/// Ends the hooks that a turn was waiting for when a limit ended the turn. Hooks for the end of the turn and for calls
/// that were cut off continue.
fn end_hooks_of_turn(guard: &AgentGuard<'_>, event: &Event) {
    let is_waited_for = |event| {
        matches!(
            event,
            HookEvent::UserPromptSubmit
                | HookEvent::PreToolUse
                | HookEvent::PermissionRequest
                | HookEvent::PostToolUse
                | HookEvent::Stop
                | HookEvent::SubagentStop
                | HookEvent::PreCompact
                | HookEvent::PostCompact
                | HookEvent::SessionStart
        )
    };
    let open = guard.state.hooks.open();
    let of_turn = open.filter(|invoked| invoked.turn == event.turn && is_waited_for(invoked.event));
    let runs = of_turn.flat_map(|invoked| &invoked.runs);
    for run in runs.filter(|run| run.ended.is_none() && !run.started.is_async) {
        let ending = run::end(guard.handle.daemon.layout.hook_dir(run.started.hook));
        spawn("end of a hook", ending);
    }
}

/// The hooks of a turn that has ended, besides the Stop hooks that a completed turn waited for: one for how it ended,
/// and a notification.
fn of_turn_ended(
    guard: &AgentGuard<'_>,
    event: &Event,
    ended: &TurnEnded,
    note: Option<&str>,
) -> Vec<HookInvocation> {
    if ended.withdrawn {
        return Vec::new();
    }
    // The turn was interrupted by a reset or a stop, which invokes its own hooks.
    if ended.status == TurnStatus::Interrupted && guard.state.ends_turn() {
        return Vec::new();
    }
    let error = why(ended, note);
    let failure = || HookInput::stop_failure(ended.status, &error);
    let first = match ended.status {
        TurnStatus::Completed => None,
        TurnStatus::Interrupted => Some(HookInput::new(HookEvent::Interrupt, json!({}))),
        TurnStatus::Failed | TurnStatus::Limited | TurnStatus::Lost => Some(failure()),
    };
    // A requested compaction answers no prompt, and its requester gets the result: no notification.
    let told = (!ended.compacts).then(|| {
        let name = &guard.state.name;
        let text = match ended.status {
            TurnStatus::Completed => format!("{name} has answered"),
            TurnStatus::Interrupted => format!("{name} was interrupted"),
            TurnStatus::Failed => format!("the turn of {name} failed: {error}"),
            TurnStatus::Limited => format!("the turn of {name} was limited: {error}"),
            TurnStatus::Lost => format!("the turn of {name} was lost: {error}"),
        };
        HookInput::turn_over(ended.status, &text)
    });
    let hook_inputs = first.into_iter().chain(told);
    hook_inputs
        .map(|hook_input| of_this(event, hook_input))
        .collect()
}

/// Why a turn ended without an answer.
fn why(ended: &TurnEnded, note: Option<&str>) -> String {
    let name = |value: Option<Value>| value.and_then(|value| value.as_str().map(str::to_owned));
    let limit = || {
        name(
            ended
                .limit
                .and_then(|limit| serde_json::to_value(limit).ok()),
        )
    };
    let class = || {
        name(
            ended
                .failure
                .and_then(|class| serde_json::to_value(class).ok()),
        )
    };
    match ended.status {
        TurnStatus::Lost => crate::view::LOST.to_owned(),
        TurnStatus::Limited => {
            let limit = limit().unwrap_or_else(|| "a limit".to_owned());
            format!("the turn reached its limit: {limit}")
        }
        _ => {
            let note = note.map(str::to_owned);
            note.or_else(class).unwrap_or_else(|| "failed".to_owned())
        }
    }
}

fn of_this(event: &Event, hook_input: HookInput) -> HookInvocation {
    let at = event.seq.0.to_le_bytes();
    let id = InvocationId::of(hook_input.event, &[event.agent.as_bytes(), &at]);
    HookInvocation {
        turn: event.turn,
        ..HookInvocation::new(id, hook_input)
    }
}

fn of_event(guard: &AgentGuard<'_>, event: &Event, note: Option<&str>) -> Option<HookInvocation> {
    let name = &guard.state.name;
    let hook_input = match &event.body {
        Body::ApprovalRequested(asked) => {
            let what = match asked.asks {
                Asks::Approval => "your approval",
                Asks::Input => "your answer",
            };
            let text = format!("{name}: the call {} is waiting for {what}", asked.call);
            HookInput::notification("permission_prompt", &text)
        }
        Body::TurnPaused(_) => {
            let text = note.map_or_else(|| format!("{name} is waiting"), str::to_owned);
            HookInput::notification("waiting", &text)
        }
        Body::AgentFailed(_) => {
            let text = note.map_or_else(|| format!("{name} has failed"), str::to_owned);
            HookInput::notification("agent_failed", &text)
        }
        _ => return None,
    };
    Some(of_this(event, hook_input))
}

/// SessionEnd for a one-shot agent whose turn has ended. After a limit the agent may still continue, and a stop invokes
/// SessionEnd itself.
fn of_end(guard: &AgentGuard<'_>, event: &Event) -> Option<HookInvocation> {
    let Body::TurnEnded(ended) = &event.body else {
        return None;
    };
    let is_over = ended.status != TurnStatus::Limited && !ended.compacts;
    if guard.state.mode != Mode::Oneshot || !is_over || guard.state.ends_turn() {
        return None;
    }
    let parts = [
        event.agent.as_bytes().as_slice(),
        &event.seq.0.to_le_bytes(),
    ];
    let id = InvocationId::of(HookEvent::SessionEnd, &parts);
    let invocation = HookInvocation::new(id, HookInput::session_end("end", None));
    Some(HookInvocation {
        turn: event.turn,
        ..invocation
    })
}

/// Invokes AgentExit hooks: the agent's process has exited.
pub fn exited(handle: &AgentHandle, reason: &str, exit: Option<Exit>) {
    let (code, signal) = match exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let fields = json!({"reason": reason, "exit_code": code, "signal": signal});
    let id = InvocationId::new(crate::clock::new_id());
    handle.tell(HookInvocation::new(
        id,
        HookInput::new(HookEvent::AgentExit, fields),
    ));
}

/// Invokes AgentRestart hooks: the agent's process is started again.
pub fn restarts(handle: &AgentHandle, reason: &str, n: u32) {
    let fields = json!({"reason": reason, "attempt": n});
    let id = InvocationId::new(crate::clock::new_id());
    let hook_input = HookInput::new(HookEvent::AgentRestart, fields);
    handle.tell(HookInvocation::new(id, hook_input));
}

/// Invokes hooks for an event of the daemon itself. Only the user's own hooks run, and their results go to the log,
/// because they belong to no agent's journal. Waits for the hooks with a timeout; they continue after it.
pub async fn of_daemon(daemon: &Arc<Daemon>, event: HookEvent, fields: Value) {
    let hook_input = HookInput::new(event, fields);
    let sources = hook_sources::of_user(daemon).await;
    let cwd = sources.cwd.clone();
    let layers = sources.usable();
    let setting = Setting {
        cwd: cwd.display().to_string(),
        ..Setting::default()
    };
    let own = daemon.envs.own();
    let mut running = Vec::new();
    for chosen in chosen(&layers, &hook_input, &cwd) {
        let hook = HookId::new(crate::clock::new_id());
        let job = Job {
            hook,
            agent: None,
            dir: daemon.layout.hook_dir(hook),
            input: hook_input.input(&setting, None).to_string(),
            hook_input: hook_input.clone(),
            env: run::environment(
                hook_input.event,
                &own,
                &Default::default(),
                &cwd,
                &setting,
                None,
            ),
            secrets: daemon.own_secrets(),
            cwd: cwd.clone(),
            // Only the user's own hooks run for the daemon.
            confined: Ok(None),
            chosen,
        };
        let daemon = Arc::clone(daemon);
        running.push(spawn("daemon hook", async move {
            let job = job.with_dir(&daemon.layout).await;
            let done = run::run(&daemon, &job).await;
            tracing::info!(%event, outcome = ?done.outcome, exit = ?done.exit, "hook completed");
            blocking(move || job.remove_dir()).await;
        }));
    }
    let all = async {
        for one in running {
            drop(one.await);
        }
    };
    let _late = tokio::time::timeout(daemon.settings().session_end_wait, all).await;
}
