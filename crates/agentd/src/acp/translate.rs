//! Events of an agent as updates of a session. Pure. The same translator is used for the past, which `session/load` replays,
//! and for what happens from then on, so a turn may begin in one and end in the other.

mod calls;
mod changes;
mod streamed;
#[cfg(test)]
mod tests;

use crate::render::event::told;
use crate::render::{Detail, word};
use crate::terminal::uncoloured;
use agent_client_protocol::v1::schema::{
    CompactionId, CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, Cost,
    ImageContent, MessageId, Notice, NoticeSeverity, Plan, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, SessionUpdate, TextContent, UsageUpdate,
};
use agentd_client::api::Delta;
use agentd_core::event::{
    Body, Event, MessageAdded, MessageStatus, PlanSet, Purpose, RequestEnded, StepState, StopReason,
};
use agentd_core::id::{AgentId, PromptId};
use agentd_core::message::{AttachedFile, Block, CutBlock};
use agentd_core::usage::MicroUsd;
pub use calls::{Calls, Waiting, of_approval};
use std::collections::BTreeMap;
use std::path::PathBuf;
use streamed::Streamed;

/// Prompts whose text is kept until they are taken.
const MOST_PROMPTS: usize = 256;

/// What the editor can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Can {
    pub notices: bool,
    pub compaction: bool,
    /// Questions with a form, and with a page to visit.
    pub forms: bool,
    pub pages: bool,
}

/// Whether an event is replayed or happens now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Past,
    Now,
}

/// Whose prompt it is: the editor shows its own prompts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Own,
    Other,
}

pub struct Translator {
    can: Can,
    /// The size of the model's context window in tokens, if it is known.
    window: Option<u64>,
    pub calls: Calls,
    prompts: BTreeMap<PromptId, Vec<Block>>,
    streamed: Streamed,
    /// Why the last reply stopped.
    stop: Option<StopReason>,
    /// The tokens of the last request, and the cost of all of them.
    used: u64,
    cost: MicroUsd,
}

impl Translator {
    pub fn new(can: Can, cwd: Option<PathBuf>, window: Option<u64>) -> Self {
        Self {
            can,
            window,
            calls: Calls::new(cwd),
            prompts: BTreeMap::new(),
            streamed: Streamed::default(),
            stop: None,
            used: 0,
            cost: MicroUsd::default(),
        }
    }

    pub const fn set_window(&mut self, window: Option<u64>) {
        self.window = window;
    }

    /// Why the last reply stopped.
    pub const fn stop(&self) -> Option<StopReason> {
        self.stop
    }

    /// The updates of an event. `whose` says whose prompts a turn takes.
    pub fn event(
        &mut self,
        event: &Event,
        when: When,
        whose: impl Fn(PromptId) -> Whose,
    ) -> Vec<SessionUpdate> {
        match &event.body {
            Body::Prompt(prompt) => {
                self.prompts.insert(prompt.prompt, prompt.blocks.clone());
                if self.prompts.len() > MOST_PROMPTS {
                    self.prompts.pop_first();
                }
                Vec::new()
            }
            Body::PromptsTaken(taken) => self.taken(&taken.prompts, whose),
            Body::PromptsRemoved(gone) => self.forget(&gone.prompts),
            Body::TurnStarted(_) => {
                self.stop = None;
                Vec::new()
            }
            Body::RequestSent(sent) => {
                let compacts = sent.purpose == Purpose::Compact;
                self.streamed.begin(sent.request.to_string(), compacts);
                Vec::new()
            }
            Body::RequestEnded(ended) => self.request_ended(ended, when),
            Body::MessageAdded(message) => self.message(event, message),
            Body::PlanSet(plan) => vec![SessionUpdate::Plan(plan_of(plan))],
            Body::Compacted(_) => self.compacted(event, when),
            body => match self.calls.event(event, body) {
                Some(updates) => updates,
                None => self.notice_of(event, when).into_iter().collect(),
            },
        }
    }

    /// A piece of a reply that streams.
    pub fn delta(&mut self, agent: AgentId, delta: &Delta) -> Vec<SessionUpdate> {
        if !self.streamed.add(delta) {
            return Vec::new();
        }
        let id = message_id(agent, &delta.request);
        let mut updates = Vec::new();
        if !delta.thinking.is_empty() {
            updates.push(thought(&id, &delta.thinking));
        }
        if !delta.text.is_empty() {
            updates.push(said(&id, &delta.text));
        }
        updates
    }

    /// The tokens in the context, and the cost so far.
    pub fn usage(&self) -> Option<SessionUpdate> {
        let size = self.window.filter(|_| self.used > 0)?;
        // Exact up to 9 billion dollars.
        #[expect(clippy::cast_precision_loss, reason = "an amount for people")]
        let amount = self.cost.0 as f64 / 1e6;
        let cost = (self.cost.0 > 0).then(|| Cost::new(amount, "USD"));
        let update = UsageUpdate::new(self.used, size).cost(cost);
        Some(SessionUpdate::UsageUpdate(update))
    }

    /// A text for the user that is no part of the conversation.
    pub fn notice(&self, id: &str, text: &str) -> SessionUpdate {
        if self.can.notices {
            let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
            let rest = (!rest.is_empty()).then(|| rest.to_owned());
            let notice = Notice::new(NoticeSeverity::Info, title).description(rest);
            return SessionUpdate::Notice(notice);
        }
        said(&MessageId::new(id), &format!("{text}\n\n"))
    }

    fn taken(
        &mut self,
        prompts: &[PromptId],
        whose: impl Fn(PromptId) -> Whose,
    ) -> Vec<SessionUpdate> {
        let mut updates = Vec::new();
        for &prompt in prompts {
            let blocks = self.prompts.remove(&prompt).unwrap_or_default();
            if whose(prompt) == Whose::Other {
                let id = MessageId::new(prompt.to_string());
                let contents = blocks.iter().filter_map(content);
                updates.extend(contents.map(|content| {
                    let chunk = ContentChunk::new(content).message_id(id.clone());
                    SessionUpdate::UserMessageChunk(chunk)
                }));
            }
        }
        updates
    }

    fn forget(&mut self, prompts: &[PromptId]) -> Vec<SessionUpdate> {
        self.prompts.retain(|prompt, _| !prompts.contains(prompt));
        Vec::new()
    }

    fn request_ended(&mut self, ended: &RequestEnded, when: When) -> Vec<SessionUpdate> {
        if let Some(cost) = ended.cost {
            self.cost = self.cost.saturating_add(cost);
        }
        if !self.streamed.compacts() && ended.usage.total() > 0 {
            self.used = ended.usage.total();
        }
        match when {
            When::Past => Vec::new(),
            When::Now => self.usage().into_iter().collect(),
        }
    }

    /// What was not streamed of a reply, and its calls.
    fn message(&mut self, event: &Event, message: &MessageAdded) -> Vec<SessionUpdate> {
        let request = message.request.map(|request| request.to_string());
        let mut streamed = self.streamed.take(request.as_deref());
        if message.status == MessageStatus::Superseded {
            return Vec::new();
        }
        self.stop = message.stop;
        let request = request.unwrap_or_else(|| event.seq.to_string());
        let id = message_id(event.agent, &request);
        let mut updates = Vec::new();
        for block in &message.blocks {
            match block {
                Block::Thinking { text, .. }
                | Block::Cut {
                    what: CutBlock::Thinking,
                    text,
                } => {
                    let rest = streamed.thinking.remaining(text);
                    updates.extend(rest.map(|rest| thought(&id, rest)));
                }
                Block::Text { text } | Block::Annotated { text, .. } => {
                    let rest = streamed.text.remaining(text);
                    updates.extend(rest.map(|rest| said(&id, rest)));
                }
                Block::ToolCall(call) => updates.extend(self.calls.called(event, call)),
                Block::Image { .. } => updates.extend(content(block).map(|content| {
                    let chunk = ContentChunk::new(content).message_id(id.clone());
                    SessionUpdate::AgentMessageChunk(chunk)
                })),
                _ => {}
            }
        }
        updates
    }

    fn compacted(&self, event: &Event, when: When) -> Vec<SessionUpdate> {
        if self.can.compaction {
            let id = CompactionId::new(format!("{}-{}", event.agent, event.seq));
            let update = CompactionUpdate::new(id, CompactionStatus::Completed);
            return vec![SessionUpdate::CompactionUpdate(update)];
        }
        self.notice_of(event, when).into_iter().collect()
    }

    /// What the user should know although it is no part of the conversation.
    fn notice_of(&self, event: &Event, when: When) -> Option<SessionUpdate> {
        let is_notable = match &event.body {
            Body::TurnEnded(ended) => ended.limit.is_some(),
            Body::TurnPaused(_)
            | Body::AgentFailed(_)
            | Body::AgentStopped(_)
            | Body::FilesRestored(_)
            | Body::Compacted(_) => true,
            _ => false,
        };
        if !is_notable || when == When::Past {
            return None;
        }
        let text = uncoloured(&told(event, None, Detail::Brief)?);
        let id = format!("{}-{}", event.agent, event.seq);
        Some(self.notice(&id, text.trim()))
    }
}

fn message_id(agent: AgentId, request: &str) -> MessageId {
    MessageId::new(format!("{agent}-{request}"))
}

fn said(id: &MessageId, text: &str) -> SessionUpdate {
    let chunk = ContentChunk::new(ContentBlock::from(text)).message_id(id.clone());
    SessionUpdate::AgentMessageChunk(chunk)
}

fn thought(id: &MessageId, text: &str) -> SessionUpdate {
    let chunk = ContentChunk::new(ContentBlock::from(text)).message_id(id.clone());
    SessionUpdate::AgentThoughtChunk(chunk)
}

/// A text of the program itself, as an answer.
pub fn answer(id: &str, text: &str) -> SessionUpdate {
    said(&MessageId::new(id), text)
}

/// A block of a prompt or a result. A file is shown by its name.
fn content(block: &Block) -> Option<ContentBlock> {
    let image = |data: &str, media_type: &str| {
        ContentBlock::Image(ImageContent::new(data.to_owned(), media_type.to_owned()))
    };
    let text = |text: &str| ContentBlock::Text(TextContent::new(text));
    Some(match block {
        Block::Text { text: it } | Block::Annotated { text: it, .. } => text(it),
        Block::Image { media_type, data } => image(data, media_type),
        Block::Attachment(attachment) => match &attachment.file {
            AttachedFile::Image { media_type, data } => image(data, media_type),
            _ => text(&format!(" ({})", attachment.info())),
        },
        _ => return None,
    })
}

fn plan_of(set: &PlanSet) -> Plan {
    let entries = set.steps.iter().map(|step| {
        let status = match step.state {
            StepState::Pending => PlanEntryStatus::Pending,
            StepState::InProgress => PlanEntryStatus::InProgress,
            StepState::Done => PlanEntryStatus::Completed,
        };
        PlanEntry::new(step.step.clone(), PlanEntryPriority::Medium, status)
    });
    Plan::new(entries.collect())
}

/// What the turn waits for, in a few words.
pub fn waits_for(reason: agentd_core::event::PauseReason) -> String {
    word(reason).replace('_', " ")
}
