//! What happens to the demo's agent as a whole: each of these is one append, so it happens or not.

use super::model;
use super::pen::{Pen, Terms, events, failed};
use crate::clock;
use crate::error::{Error, Exit};
use agentd_core::begin::{self, Queue};
use agentd_core::event::{Direction, Event, Mode, NewEvent, Prompt, PromptsTaken};
use agentd_core::id::{AgentId, ConversationId, OpId, PromptId, Seq};
use agentd_core::message::Block;
use agentd_core::request::{self, Request};
use agentd_core::spec::AgentSpec;
use agentd_core::state::AgentState;
use agentd_store::{Ack, Append, Loaded, SqliteStore, Store as _};

pub async fn create(store: &SqliteStore, agent: AgentId) -> Result<(Seq, Seq), Error> {
    let context = model::context();
    let spec = AgentSpec {
        provider: Some(context.provider),
        model: Some(context.model),
        tools: Some(vec![model::MULTIPLY.to_owned()]),
        system: context.system,
        ..AgentSpec::default()
    };
    let conversation = ConversationId::new(clock::new_id());
    let created = lines(begin::create("demo", Mode::Persistent, &spec, conversation));
    let claim = store.claim(agent, "demo").await.map_err(failed)?;
    let append = Append::new(claim.fence, created);
    match store.append(append).await.map_err(failed)? {
        Ack::Committed { first, last } => Ok((first, last)),
        Ack::Repeated { .. } => Err(Error::new(Exit::Failed, "the agent was there already")),
    }
}

/// Seals the current conversation and begins an empty one. Returns both.
pub async fn reset(pen: &mut Pen) -> Result<(ConversationId, ConversationId), Error> {
    let Loaded { state, window, .. } = pen.store.load(pen.fence.agent).await.map_err(failed)?;
    let Some(old) = state.tree.current() else {
        return Err(Error::new(Exit::Failed, "the agent has no conversation"));
    };
    let new = ConversationId::new(clock::new_id());
    let op = Some(OpId::new(clock::new_id()));
    let begun = begin::reset(&state, &window, new, Queue::SetAside, op).map_err(refused)?;
    pen.append(lines(begun), terms(&state)).await?;
    Ok((old, new))
}

/// Makes the conversation before the reset the current one again. Returns it.
pub async fn undo(pen: &mut Pen) -> Result<ConversationId, Error> {
    let state = pen.store.load(pen.fence.agent).await.map_err(failed)?.state;
    let op = Some(OpId::new(clock::new_id()));
    let stepped = begin::step(&state, Direction::Undo, op).map_err(refused)?;
    let to = state.tree.undo_target();
    pen.append(lines(stepped), terms(&state)).await?;
    to.ok_or_else(|| Error::new(Exit::Refused, "there is nothing to undo"))
}

/// The pointer must be where it was.
fn terms(state: &AgentState) -> Terms {
    Terms {
        generation: Some(state.generation()),
        ..Terms::default()
    }
}

fn refused(refused: begin::Refused) -> Error {
    Error::new(Exit::Refused, "the conversation cannot be left").because(refused)
}

fn lines(lines: Vec<begin::Line>) -> Vec<NewEvent> {
    let event = |(conversation, body)| events(conversation, None, [body]);
    lines.into_iter().flat_map(event).collect()
}

/// The request that would leave if this were prompted next. Nothing is written.
pub fn request_after(loaded: &Loaded, prompt: &str) -> Option<Request> {
    let conversation = loaded.state.tree.current()?;
    let id = PromptId::new(clock::new_id());
    let blocks = vec![Block::text(prompt)];
    let prompts = vec![id];
    let bodies = [
        Prompt { prompt: id, blocks }.into(),
        PromptsTaken { prompts }.into(),
    ];
    let mut window = loaded.window.clone();
    let mut seq = loaded.state.head;
    for event in events(conversation, None, bodies) {
        seq = seq.next();
        let event: Event = event.placed(loaded.state.id, seq);
        window.apply(&event);
    }
    let context = window.context()?.clone();
    request::answer(&window, &context)
}
