//! What hooks hear of without anybody waiting for them: it has happened, and nothing they say changes it.

use crate::daemon::Daemon;
use crate::desk::{Desk, Guard};
use crate::spawn::spawn;
use crate::view::kin;
use agentd_core::event::{Body, Event, Kind, Mode, Note, TurnEnded, TurnStatus};
use agentd_core::hook::{Fire, HookEvent, Layer, Occasion, Setting, chosen};
use agentd_core::id::{FireId, HookId};
use agentd_process::Exit;
use serde_json::{Value, json};
use std::sync::Arc;

use super::run::{self, Job};
use super::sources;

/// Whether an event is one that hooks hear of.
pub const fn is_of_interest(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::TurnEnded | Kind::TurnPaused | Kind::ApprovalRequested | Kind::AgentFailed
    )
}

/// Tells of what was written, with the notes that came with it.
pub fn written(daemon: &Arc<Daemon>, desk: &Arc<Desk>, guard: &Guard<'_>, events: &[Event]) {
    let mut note = None;
    for event in events {
        if let Body::Note(Note { text, .. }) = &event.body {
            note = Some(text.clone());
        }
        let needs_somebody = matches!(event.kind(), Kind::ApprovalRequested | Kind::TurnPaused);
        if needs_somebody && guard.state.errand.is_some() {
            let stirring = kin::stir(Arc::clone(daemon), Arc::clone(desk));
            spawn("news for a parent", stirring);
        }
        if let Body::TurnEnded(ended) = &event.body {
            if ended.status == TurnStatus::Limited {
                end_hooks_of_turn(daemon, guard, event);
            }
            for fire in of_turn_ended(guard, event, ended, note.as_deref()) {
                daemon.tell(desk, fire);
            }
        }
        let fires = of_event(guard, event, note.as_deref());
        for fire in fires.into_iter().chain(of_end(guard, event)) {
            daemon.tell(desk, fire);
        }
    }
}

/// A turn that a time limit ended has let go of the hooks that it waited for: they end with it. What is
/// told of its end, and of calls that were cut off, runs on.
fn end_hooks_of_turn(daemon: &Arc<Daemon>, guard: &Guard<'_>, event: &Event) {
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
    let of_turn = open.filter(|firing| firing.turn == event.turn && is_waited_for(firing.event));
    let runs = of_turn.flat_map(|firing| &firing.runs);
    for run in runs.filter(|run| run.ended.is_none() && !run.started.is_async) {
        let ending = run::end(daemon.layout.hook_folder(run.started.hook));
        spawn("the end of a hook", ending);
    }
}

/// What hooks hear of a turn that is over, besides the Stop hooks that a completed one waited for: how
/// it ended, and a notification.
fn of_turn_ended(
    guard: &Guard<'_>,
    event: &Event,
    ended: &TurnEnded,
    note: Option<&str>,
) -> Vec<Fire> {
    // A reset and a stop have hooks of their own.
    if ended.status == TurnStatus::Interrupted && guard.state.ends_turn() {
        return Vec::new();
    }
    let error = why(ended, note);
    let failure = || Occasion::stop_failure(ended.status, &error);
    let first = match ended.status {
        TurnStatus::Completed => None,
        TurnStatus::Interrupted => Some(Occasion::new(HookEvent::Interrupt, json!({}))),
        TurnStatus::Failed | TurnStatus::Limited | TurnStatus::Lost => Some(failure()),
    };
    // A compaction that was asked for answers no prompt: the user who asked hears how it went.
    let told = (!ended.compacts).then(|| {
        let name = &guard.state.name;
        let text = match ended.status {
            TurnStatus::Completed => format!("{name} has answered"),
            TurnStatus::Interrupted => format!("{name} was interrupted"),
            TurnStatus::Failed => format!("the turn of {name} failed: {error}"),
            TurnStatus::Limited => format!("the turn of {name} was limited: {error}"),
            TurnStatus::Lost => format!("the turn of {name} was lost: {error}"),
        };
        Occasion::turn_over(ended.status, &text)
    });
    let occasions = first.into_iter().chain(told);
    occasions.map(|occasion| of_this(event, occasion)).collect()
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

fn of_this(event: &Event, occasion: Occasion) -> Fire {
    let at = event.seq.0.to_le_bytes();
    let id = FireId::of(occasion.event, &[event.agent.as_bytes(), &at]);
    Fire {
        turn: event.turn,
        ..Fire::new(id, occasion)
    }
}

fn of_event(guard: &Guard<'_>, event: &Event, note: Option<&str>) -> Option<Fire> {
    let name = &guard.state.name;
    let occasion = match &event.body {
        Body::ApprovalRequested(asked) => {
            let text = format!("{name}: the call {} waits for your approval", asked.call);
            Occasion::notification("permission_prompt", &text)
        }
        Body::TurnPaused(_) => {
            let text = note.map_or_else(|| format!("{name} waits"), str::to_owned);
            Occasion::notification("waiting", &text)
        }
        Body::AgentFailed(_) => {
            let text = note.map_or_else(|| format!("{name} has failed"), str::to_owned);
            Occasion::notification("agent_failed", &text)
        }
        _ => return None,
    };
    Some(of_this(event, occasion))
}

/// A one-shot agent has done what it was for, and its conversation is over with it. One that reached a limit may
/// go on; one that is being stopped has heard why.
fn of_end(guard: &Guard<'_>, event: &Event) -> Option<Fire> {
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
    let id = FireId::of(HookEvent::SessionEnd, &parts);
    let fire = Fire::new(id, Occasion::session_end("end", None));
    Some(Fire {
        turn: event.turn,
        ..fire
    })
}

/// A process that ran the agent is gone.
pub fn exited(daemon: &Arc<Daemon>, desk: &Arc<Desk>, reason: &str, exit: Option<Exit>) {
    let (code, signal) = match exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let fields = json!({"reason": reason, "exit_code": code, "signal": signal});
    let id = FireId::new(crate::clock::new_id());
    daemon.tell(
        desk,
        Fire::new(id, Occasion::new(HookEvent::AgentExit, fields)),
    );
}

/// Another one takes its place.
pub fn restarts(daemon: &Arc<Daemon>, desk: &Arc<Desk>, reason: &str, n: u32) {
    let fields = json!({"reason": reason, "attempt": n});
    let id = FireId::new(crate::clock::new_id());
    let occasion = Occasion::new(HookEvent::AgentRestart, fields);
    daemon.tell(desk, Fire::new(id, occasion));
}

/// The daemon itself: only the user's own hooks hear of it, and the log says how they went, for no agent's
/// journal can. Waits a little for them; they may run on.
pub async fn of_daemon(daemon: &Arc<Daemon>, event: HookEvent, fields: Value) {
    let occasion = Occasion::new(event, fields);
    let sources = sources::of_user(daemon).into_iter();
    let layers: Vec<(Layer, _)> = sources.filter_map(sources::Source::usable).collect();
    let cwd = daemon.layout.home().to_owned();
    let setting = Setting {
        cwd: cwd.display().to_string(),
        ..Setting::default()
    };
    let own = daemon.envs.own();
    let mut running = Vec::new();
    for chosen in chosen(&layers, &occasion) {
        let hook = HookId::new(crate::clock::new_id());
        let job = Job {
            hook,
            agent: None,
            folder: daemon.layout.hook_folder(hook),
            input: occasion.input(&setting, None).to_string(),
            occasion: occasion.clone(),
            env: run::environment(
                occasion.event,
                &own,
                &Default::default(),
                &cwd,
                &setting,
                None,
            ),
            secrets: daemon.own_secrets(),
            cwd: cwd.clone(),
            // Those of the daemon are all the user's own.
            confined: Ok(None),
            chosen,
        };
        job.make_folder(&daemon.layout);
        let daemon = Arc::clone(daemon);
        running.push(spawn("a hook", async move {
            let done = run::run(&daemon, &job).await;
            tracing::info!(%event, outcome = ?done.outcome, exit = ?done.exit, "a hook has run");
            job.remove_folder();
        }));
    }
    let all = async {
        for one in running {
            drop(one.await);
        }
    };
    let _late = tokio::time::timeout(daemon.session_end_wait, all).await;
}
