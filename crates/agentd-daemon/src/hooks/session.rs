//! Conversations begin and end: what SessionStart hooks say opens one, SessionEnd hooks hear that it is over.

use super::{has_any, run};
use crate::clock;
use crate::daemon::Daemon;
use crate::desk::{Desk, Guard};
use crate::lifecycle::send;
use agentd_core::event::{Body, Notice, NoticeCause, PromptMode};
use agentd_core::hook::{Fire, HookEvent, Occasion};
use agentd_core::id::{ConversationId, FireId, PromptId, Seq};
use agentd_store::ReadQuery;
use std::sync::Arc;
use std::time::Duration;

/// So long a reset or a stop waits for all SessionEnd hooks together; they may run on.
pub const PATIENCE: Duration = Duration::from_millis(1500);

/// Events that others may have written before a conversation is opened: prompts that wait for it.
const MOST_BESIDE: usize = 1_000;

/// The first conversation of an agent, its own or a fork's: no process before the hooks have spoken.
pub fn begins(
    daemon: &Arc<Daemon>,
    desk: &Arc<Desk>,
    guard: &mut Guard<'_>,
    source: &str,
    parent: Option<ConversationId>,
) {
    let Some(conversation) = guard.state.tree.current() else {
        return;
    };
    let occasion = start(guard, source, parent);
    open(
        daemon,
        desk,
        guard,
        Fire::of_conversation(conversation, occasion),
    );
}

/// An agent that was stopped, or is to have a new process, goes on. `at` is the event that says so.
pub fn goes_on(daemon: &Arc<Daemon>, desk: &Arc<Desk>, guard: &mut Guard<'_>, at: Option<Seq>) {
    let occasion = start(guard, "resume", None);
    let id = match at {
        Some(at) => {
            let parts = [desk.id.as_bytes().as_slice(), &at.0.to_le_bytes()];
            FireId::of(HookEvent::SessionStart, &parts)
        }
        None => FireId::new(clock::new_id()),
    };
    open(daemon, desk, guard, Fire::new(id, occasion));
}

fn start(guard: &Guard<'_>, source: &str, parent: Option<ConversationId>) -> Occasion {
    let model = guard.state.spec.model.as_deref();
    Occasion::session_start(source, model, parent.map(|parent| parent.to_string()))
}

/// Holds the agent until the hooks have spoken. Where there are none, that is now.
fn open(daemon: &Arc<Daemon>, desk: &Arc<Desk>, guard: &mut Guard<'_>, fire: Fire) {
    if has_any(daemon, guard, &fire) {
        hold(daemon, desk, guard, fire);
    }
}

/// No process before these have spoken; what they say is the first thing that it sees.
pub fn hold(daemon: &Arc<Daemon>, desk: &Arc<Desk>, guard: &mut Guard<'_>, fire: Fire) {
    guard.held += 1;
    let (daemon, desk) = (Arc::clone(daemon), Arc::clone(desk));
    tokio::spawn(async move {
        let id = fire.id;
        let bodies = opening(&daemon, &desk, fire).await;
        let is_said = is_said(&daemon, &desk, id, &bodies).await;
        let mut guard = desk.lock().await;
        let written = match is_said {
            true => Ok(()),
            false => guard.note(bodies).await.map(drop),
        };
        match written {
            Ok(()) => forget(&daemon, &guard, id),
            // Their folders stay: another daemon finds them, and tries again.
            Err(problem) => {
                tracing::error!(agent = %desk.id, %problem, "what hooks said is not written");
            }
        }
        guard.held -= 1;
        guard.changed();
        daemon.mind(&desk, &mut guard);
    });
}

/// Whether a daemon that is gone has written these already, or there is nothing to write.
async fn is_said(daemon: &Daemon, desk: &Desk, fire: FireId, bodies: &[Body]) -> bool {
    let Some(first) = bodies.first() else {
        return true;
    };
    let last_words = {
        let guard = desk.lock().await;
        let firing = guard.state.hooks.get(fire);
        let runs = firing
            .map(|firing| firing.runs.as_slice())
            .unwrap_or_default();
        runs.iter().filter_map(|run| run.ended?.words).max()
    };
    // All of it is one append, and nobody does anything before: it is not far.
    let query = ReadQuery::all(desk.id, last_words.unwrap_or(Seq(0)), MOST_BESIDE);
    let page = daemon.store.read(query).await;
    let events = page.map(|page| page.events).unwrap_or_default();
    events.iter().any(|event| match (&event.body, first) {
        (Body::Notice(known), Body::Notice(own)) => known == own,
        (Body::Prompt(known), _) => {
            let own = bodies.iter().find_map(|body| match body {
                Body::Prompt(own) => Some(&own.blocks),
                _ => None,
            });
            Some(&known.blocks) == own
        }
        _ => false,
    })
}

/// What they said is where it belongs: nobody needs to find them again.
fn forget(daemon: &Daemon, guard: &Guard<'_>, fire: FireId) {
    let firing = guard.state.hooks.get(fire);
    let ended = firing.into_iter().flat_map(|firing| &firing.runs);
    for run in ended.filter(|run| run.ended.is_some()) {
        run::remove(&daemon.layout.hook_folder(run.started.hook));
    }
}

/// What hooks have to say to a conversation that begins.
pub async fn opening(daemon: &Arc<Daemon>, desk: &Arc<Desk>, fire: Fire) -> Vec<Body> {
    let verdict = daemon.fire(desk, fire).await;
    let mut bodies = Vec::new();
    let cause = NoticeCause::Hook;
    bodies.extend(verdict.context.map(|text| Notice { cause, text }.into()));
    if let Some(text) = verdict.initial_prompt {
        let prompt = PromptId::new(clock::new_id());
        match send::bodies(prompt, &text, None, PromptMode::Queue) {
            Ok(prompt) => bodies.extend(prompt),
            Err(problem) => {
                tracing::warn!(agent = %desk.id, %problem, "a hook's first prompt is no prompt");
            }
        }
    }
    bodies
}

/// A conversation is over for now: waits a little for those that hear of it.
pub async fn ends(daemon: &Arc<Daemon>, desk: &Arc<Desk>, reason: &str, at: Seq) {
    let parts = [desk.id.as_bytes().as_slice(), &at.0.to_le_bytes()];
    let id = FireId::of(HookEvent::SessionEnd, &parts);
    let fire = Fire::new(id, Occasion::session_end(reason, None));
    let _late = daemon.fire_within(desk, fire, PATIENCE).await;
}
