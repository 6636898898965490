//! What hooks hear of without anybody waiting for them: it has happened, and nothing they say changes it.

use crate::daemon::Daemon;
use crate::desk::{Desk, Guard};
use crate::view::kin;
use agentd_core::event::{Body, Event, FailureClass, Kind, Mode, Note, TurnStatus};
use agentd_core::hook::{Fire, HookEvent, Layer, Occasion, Setting, chosen};
use agentd_core::id::{FireId, HookId};
use agentd_process::Exit;
use serde_json::{Value, json};
use std::sync::Arc;

use super::run::{self, Job};
use super::{session, sources};

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
            tokio::spawn(kin::stir(Arc::clone(daemon), Arc::clone(desk)));
        }
        let fires = of_event(guard, event, note.as_deref());
        for fire in fires.into_iter().chain(of_end(guard, event)) {
            daemon.tell(desk, fire);
        }
    }
}

fn of_event(guard: &Guard<'_>, event: &Event, note: Option<&str>) -> Option<Fire> {
    let name = &guard.state.name;
    let at = event.seq.0.to_le_bytes();
    let occasion = match &event.body {
        Body::TurnEnded(ended) => match (ended.status, ended.failure) {
            (TurnStatus::Interrupted, _) => {
                // A reset and a stop have hooks of their own.
                if guard.state.ends_turn() {
                    return None;
                }
                Occasion::new(HookEvent::Interrupt, json!({}))
            }
            (TurnStatus::Failed, Some(FailureClass::Blocked)) => return None,
            (TurnStatus::Failed, class) => {
                let class = serde_json::to_value(class).ok();
                let class = class.as_ref().and_then(Value::as_str);
                Occasion::stop_failure(note.or(class).unwrap_or("failed"))
            }
            (TurnStatus::Lost, _) => Occasion::stop_failure(crate::view::LOST),
            _ => return None,
        },
        Body::ApprovalRequested(asked) => {
            let text = format!("{name}: the call {} waits for your leave", asked.call);
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
    let id = FireId::of(occasion.event, &[event.agent.as_bytes(), &at]);
    Some(Fire {
        turn: event.turn,
        ..Fire::new(id, occasion)
    })
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
    let own = daemon.own_env();
    let mut running = Vec::new();
    for chosen in chosen(&layers, &occasion) {
        let hook = HookId::new(crate::clock::new_id());
        let job = Job {
            hook,
            agent: None,
            folder: daemon.layout.hook_folder(hook),
            input: occasion.input(&setting, None).to_string(),
            occasion: occasion.clone(),
            env: run::environment(&own, &Default::default(), &cwd, &setting, None),
            secrets: run::secrets(&own),
            cwd: cwd.clone(),
            chosen,
        };
        job.make_folder();
        let daemon = Arc::clone(daemon);
        running.push(tokio::spawn(async move {
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
    let _late = tokio::time::timeout(session::PATIENCE, all).await;
}
