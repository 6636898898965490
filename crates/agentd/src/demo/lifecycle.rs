//! What happens to the demo's agent as a whole: each of these is one append, so it happens or not.

use super::model;
use super::pen::{Pen, Terms, events, failed};
use crate::clock;
use crate::error::{Error, Exit};
use agentd_core::event::{
    AgentCreated, BeginSource, ConversationBegan, ConversationSealed, Direction, Event, Mode,
    PointerMoved, Prompt, PromptsTaken, SealReason, SpecSet,
};
use agentd_core::id::{AgentId, ConversationId, OpId, PromptId, Seq};
use agentd_core::message::Block;
use agentd_core::request::{self, Request};
use agentd_core::spec::AgentSpec;
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
    let created = events(
        ConversationId::new(clock::new_id()),
        None,
        [
            AgentCreated {
                name: "demo".to_owned(),
                mode: Mode::Persistent,
            }
            .into(),
            SpecSet {
                spec: Box::new(spec),
            }
            .into(),
            ConversationBegan {
                source: BeginSource::Create,
                parent: None,
                from: None,
                op: None,
            }
            .into(),
        ],
    );
    let claim = store.claim(agent, "demo").await.map_err(failed)?;
    let append = Append::new(claim.fence, created);
    match store.append(append).await.map_err(failed)? {
        Ack::Committed { first, last } => Ok((first, last)),
        Ack::Repeated { .. } => Err(Error::new(Exit::Failed, "the agent was there already")),
    }
}

/// Seals the current conversation and begins an empty one. Returns both.
pub async fn reset(pen: &mut Pen) -> Result<(ConversationId, ConversationId), Error> {
    let (old, generation, last_request) = current(pen).await?;
    let new = ConversationId::new(clock::new_id());
    let op = Some(OpId::new(clock::new_id()));
    let sealed = ConversationSealed {
        reason: SealReason::Reset,
        last_request,
        op,
    };
    let began = ConversationBegan {
        source: BeginSource::Reset,
        parent: Some(old),
        from: None,
        op,
    };
    let mut both = events(old, None, [sealed.into()]);
    both.extend(events(new, None, [began.into()]));
    pen.append(both, generation).await?;
    Ok((old, new))
}

/// Makes the conversation before the reset the current one again. Returns it.
pub async fn undo(pen: &mut Pen) -> Result<ConversationId, Error> {
    let agent = pen.fence.agent;
    let loaded = pen.store.load(agent).await.map_err(failed)?;
    let Some(to) = loaded.state.tree.undo_target() else {
        return Err(Error::new(Exit::Refused, "there is nothing to undo"));
    };
    let (newer, generation, last_request) = current(pen).await?;
    let op = Some(OpId::new(clock::new_id()));
    let sealed = ConversationSealed {
        reason: SealReason::Undo,
        last_request,
        op,
    };
    let direction = Direction::Undo;
    let mut both = events(newer, None, [sealed.into()]);
    both.extend(events(
        to,
        None,
        [PointerMoved { to, direction, op }.into()],
    ));
    pen.append(both, generation).await?;
    Ok(to)
}

/// The current conversation, the terms under which it may be left, and its last provider request.
async fn current(pen: &Pen) -> Result<(ConversationId, Terms, Option<String>), Error> {
    let loaded = pen.store.load(pen.fence.agent).await.map_err(failed)?;
    let Some(conversation) = loaded.state.tree.current_conversation() else {
        return Err(Error::new(Exit::Failed, "the agent has no conversation"));
    };
    let terms = Terms {
        generation: Some(loaded.state.generation()),
        ..Terms::default()
    };
    Ok((conversation.id, terms, conversation.last_request.clone()))
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
