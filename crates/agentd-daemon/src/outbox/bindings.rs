//! The webhooks of bindings: each reads the journal of its agent, in order.

use super::again::Again;
use super::deliver::{Left, Message, Target, deliver};
use super::position::{self, Position};
use crate::bindings::Binding;
use crate::daemon::Daemon;
use crate::ending::left;
use crate::spawn::{caught, spawn};
use agentd_client::api::time::rfc3339;
use agentd_core::event::{Body, Event, Kind, MessageStatus};
use agentd_core::id::{BindingId, Seq, TurnId};
use agentd_core::message::Block;
use agentd_core::outbox::binding::{self, Outgoing, Released, Terms};
use agentd_core::outbox::webhook::{binding_message_id, unanswered_id, unbound_id};
use agentd_core::time::Timestamp;
use agentd_failpoint as failpoint;
use agentd_store::ReadQuery;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

const PAGE: usize = 200;
const MESSAGES: &[Kind] = &[Kind::MessageAdded];

/// The name of a binding's destination, and of its file.
pub fn destination(binding: BindingId) -> String {
    format!("binding-{binding}")
}

/// Starts a task for each binding, also for those that are made later.
pub async fn follow_all(daemon: Arc<Daemon>) {
    let mut changes = daemon.bindings.changes();
    let mut ending = daemon.ending();
    // Each task removes its own entry.
    let running: Arc<Mutex<HashSet<BindingId>>> = Arc::default();
    loop {
        changes.borrow_and_update();
        for binding in daemon.bindings.all().await.unwrap_or_default() {
            let mut known = running.lock().unwrap_or_else(PoisonError::into_inner);
            if known.insert(binding.id) {
                let (daemon, running) = (Arc::clone(&daemon), Arc::clone(&running));
                spawn("binding", async move {
                    follow(&daemon, binding.id).await;
                    let mut known = running.lock().unwrap_or_else(PoisonError::into_inner);
                    known.remove(&binding.id);
                });
            }
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = left(&mut ending) => return,
        }
    }
}

/// Why a binding's task stops until it is started again.
enum Stop {
    /// The daemon ends, or the binding is gone.
    Over,
    Failed(String),
}

impl From<Left> for Stop {
    fn from(_: Left) -> Self {
        Self::Over
    }
}

impl<E: std::error::Error> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

async fn follow(daemon: &Arc<Daemon>, id: BindingId) {
    let mut ending = daemon.ending();
    let mut again = Again::new(destination(id));
    loop {
        again.begin();
        // A panic of the work does not end the binding.
        let stopped = match caught("binding", follow_once(daemon, id)).await {
            Ok(Ok(()) | Err(Stop::Over)) => return,
            Ok(Err(Stop::Failed(error))) => error,
            Err(_) => "the task panicked".to_owned(),
        };
        let delay = again.failed(daemon, stopped);
        tokio::select! {
            // tidy: polls after an error of the disk
            () = tokio::time::sleep(delay) => {}
            () = left(&mut ending) => return,
        }
    }
}

async fn follow_once(daemon: &Arc<Daemon>, id: BindingId) -> Result<(), Stop> {
    let destination = destination(id);
    let Some(first) = daemon.bindings.get(id).await else {
        return gone(daemon, &destination);
    };
    let position = Position::<Seq>::read(daemon, &destination)?;
    // The binding itself says where it begins, so that a position that was never stored is no loss.
    let mut position =
        position.unwrap_or_else(|| Position::new(daemon, &destination, first.since, 0));
    let mut ending = daemon.ending();
    let mut changes = daemon.bindings.changes();
    loop {
        changes.borrow_and_update();
        let Some(binding) = daemon.bindings.get(id).await else {
            return gone(daemon, &destination);
        };
        let mut commits = daemon.store.commits();
        let query = ReadQuery::all(binding.agent, *position.after(), PAGE);
        let page = daemon.store.read(query).await?;
        // If it was unbound meanwhile, the page may have events from after that, which must not end it in another way.
        let now = daemon.bindings.get(id).await;
        if now.map(|now| now.unbound) != Some(binding.unbound) {
            continue;
        }
        daemon.deliveries.works(&destination);
        let is_end = page.events.is_empty();
        let terms = Terms {
            binding: id,
            release_on: &binding.release_on,
            unbound: binding.unbound,
        };
        for event in &page.events {
            match binding::of_event(position.fold(), event, &terms) {
                Some(outgoing) => {
                    let message = message(daemon, &binding, event, outgoing).await?;
                    if failpoint::injected_bug("position_before_send") {
                        position.delivered(daemon, event.seq).await?;
                    }
                    failpoint::hit("before", "binding.send");
                    send(daemon, &binding, &message).await?;
                    position.delivered(daemon, event.seq).await?;
                    failpoint::hit("after", "outbox.position");
                }
                None => position.pass(daemon, event.seq).await?,
            }
            if let Some(last) = farewell(daemon, &binding, &position, End::Later) {
                return say_farewell(daemon, &binding, &position, last).await;
            }
        }
        let at_end = match is_end {
            true => End::Here,
            false => End::Later,
        };
        if let Some(last) = farewell(daemon, &binding, &position, at_end) {
            return say_farewell(daemon, &binding, &position, last).await;
        }
        if !is_end {
            continue;
        }
        tokio::select! {
            more = commits.next() => if !more { return Err(Stop::Over) },
            changed = changes.changed() => if changed.is_err() { return Err(Stop::Over) },
            () = left(&mut ending) => return Err(Stop::Over),
        }
    }
}

/// Where the journal ends, as far as it was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// There may be more events.
    Later,
    Here,
}

/// What a binding's last message is about.
struct Farewell {
    id: String,
    what: &'static str,
    at: Timestamp,
    seq: Option<Seq>,
}

/// The last message of a binding, once it has ended and each message that was accepted before has its answer.
fn farewell(
    daemon: &Daemon,
    binding: &Binding,
    position: &Position<Seq>,
    end: End,
) -> Option<Farewell> {
    let (routed, lifetime) = position.folded();
    let copy = daemon.home.identity.of_copy();
    let farewell = match (lifetime.released, binding.unbound) {
        (Some(Released { what, seq, at }), _) => Farewell {
            id: binding_message_id(copy, binding.id, seq),
            what: what.name(),
            at,
            seq: Some(seq),
        },
        (None, Some(last)) if end == End::Here || *position.after() >= last => Farewell {
            id: unbound_id(copy, binding.id),
            what: "unbind",
            at: binding.unbound_at.unwrap_or(binding.bound_at),
            seq: None,
        },
        (None, _) => return None,
    };
    lifetime.is_over(routed, binding.agent).then_some(farewell)
}

/// Names the messages that will not be answered, sends the last message, and removes the binding.
async fn say_farewell(
    daemon: &Daemon,
    binding: &Binding,
    position: &Position<Seq>,
    last: Farewell,
) -> Result<(), Stop> {
    let Farewell { id, what, at, seq } = last;
    let (routed, _) = position.folded();
    let prompts = routed.waiting(binding.agent);
    if !prompts.is_empty() {
        let data = json!({ "prompts": prompts });
        let removed = Message {
            id: unanswered_id(&id),
            body: body(binding, "binding.removed", rfc3339(at), seq, data),
        };
        send(daemon, binding, &removed).await?;
    }
    let data = json!({ "what": what });
    let body = body(binding, "binding.released", rfc3339(at), seq, data);
    failpoint::hit("before", "binding.send");
    send(daemon, binding, &Message { id, body }).await?;
    release(daemon, binding).await
}

fn gone(daemon: &Daemon, destination: &str) -> Result<(), Stop> {
    position::forget(daemon, destination);
    daemon.deliveries.works(destination);
    Ok(())
}

/// Removes a binding whose last message was delivered.
async fn release(daemon: &Daemon, binding: &Binding) -> Result<(), Stop> {
    failpoint::hit("before", "outbox.release");
    let id = binding.id;
    let drop_it = |all: &mut Vec<Binding>| all.retain(|binding| binding.id != id);
    daemon.bindings.change(&daemon.layout, drop_it).await?;
    tracing::info!(address = binding.address, "binding released");
    gone(daemon, &destination(id))
}

/// Sends a message, unless the user removes the binding at once.
async fn send(daemon: &Daemon, binding: &Binding, message: &Message) -> Result<(), Stop> {
    let target = Target {
        destination: destination(binding.id),
        url: binding.url.clone(),
        secret: binding.secret.clone(),
    };
    let mut changes = daemon.bindings.changes();
    let removed = async {
        loop {
            changes.borrow_and_update();
            if daemon.bindings.get(binding.id).await.is_none() {
                return;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        sent = deliver(daemon, &target, message) => Ok(sent?),
        () = removed => {
            gone(daemon, &target.destination)?;
            Err(Stop::Over)
        }
    }
}

fn body(binding: &Binding, kind: &str, at: String, seq: Option<Seq>, data: Value) -> String {
    let mut whole = json!({
        "binding": binding.id,
        "address": binding.address,
        "agent": { "id": binding.agent },
        "seq": seq,
    });
    if let (Value::Object(whole), Value::Object(data)) = (&mut whole, data) {
        whole.extend(data);
    }
    json!({ "type": kind, "timestamp": at, "data": whole }).to_string()
}

async fn message(
    daemon: &Arc<Daemon>,
    binding: &Binding,
    event: &Event,
    outgoing: Outgoing,
) -> Result<Message, Stop> {
    let (kind, data) = match outgoing {
        Outgoing::Answer {
            turn,
            status,
            prompts,
        } => {
            let text = answer(daemon, binding, turn).await?;
            let data = json!({ "turn": turn, "prompts": prompts, "status": status, "text": text });
            ("binding.answer", data)
        }
        Outgoing::Question { turn, approval } => {
            let data = json!({ "turn": turn, "approval": approval });
            ("binding.question", data)
        }
        Outgoing::Removed { prompts } => ("binding.removed", json!({ "prompts": prompts })),
        Outgoing::Changed(what) => ("binding.changed", json!({ "what": what })),
    };
    Ok(Message {
        id: binding_message_id(daemon.home.identity.of_copy(), binding.id, event.seq),
        body: body(binding, kind, rfc3339(event.at), Some(event.seq), data),
    })
}

/// The last text of a turn, without the secrets that the daemon knows; none if it was purged.
async fn answer(
    daemon: &Arc<Daemon>,
    binding: &Binding,
    turn: TurnId,
) -> Result<Option<String>, Stop> {
    let mut last = None;
    let mut after = binding.since;
    loop {
        let query = ReadQuery {
            turn: Some(turn),
            kinds: MESSAGES,
            ..ReadQuery::all(binding.agent, after, PAGE)
        };
        let page = daemon.store.read(query).await?;
        last = page.events.iter().filter_map(text_of).next_back().or(last);
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    let handle = daemon.handle(binding.agent).await?;
    let secrets = handle.lock().await.secrets();
    Ok(last.map(|text| secrets.redact(&text)))
}

fn text_of(event: &Event) -> Option<String> {
    let Body::MessageAdded(message) = &event.body else {
        return None;
    };
    if message.status == MessageStatus::Superseded {
        return None;
    }
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text { text } | Block::Annotated { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}
