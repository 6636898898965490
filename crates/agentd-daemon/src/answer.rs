//! The status and answer of a prompt, from the journal.

use crate::daemon::AgentHandle;
use crate::error::{Error, Kind, Result};
use crate::id_prefix;
use crate::view::{LOST, last_note, subagents, usage};
use agentd_client::api::{AgentRef, Answer, Status};
use agentd_core::event::{Body, Event, MessageStatus, PromptMode, TurnEnded, TurnStatus};
use agentd_core::id::{ConversationId, OpId, PromptId, Seq, TurnId};
use agentd_core::message::Block;
use agentd_core::state::Phase;
use agentd_core::usage::Spent;
use agentd_store::ReadQuery;
use std::time::Duration;

const PAGE: usize = 500;

/// What the events so far say about one prompt.
struct Trail {
    prompt: PromptId,
    conversation: Option<ConversationId>,
    turn: Option<TurnId>,
    ended: Option<TurnEnded>,
    set_aside: bool,
    removed: bool,
    op: Option<OpId>,
    text: String,
    note: Option<String>,
    spent: Spent,
}

impl Trail {
    fn follow(&mut self, event: &Event) {
        match &event.body {
            Body::PromptQueued(queued) if queued.prompt == self.prompt => {
                self.set_aside = false;
                self.conversation = Some(event.conversation);
            }
            Body::PromptsRemoved(gone) if gone.prompts.contains(&self.prompt) => {
                self.removed = true;
            }
            // Whatever a turn recorded in the meantime, it did not see the prompt.
            _ if self.removed => {}
            Body::PromptsTaken(taken) if taken.prompts.contains(&self.prompt) => {
                self.turn = event.turn;
                self.conversation = Some(event.conversation);
            }
            Body::PromptBlocked(blocked) if blocked.prompt == self.prompt => {
                self.turn = event.turn;
                self.conversation = Some(event.conversation);
            }
            Body::PromptsSetAside(aside) if aside.prompts.contains(&self.prompt) => {
                self.set_aside = true;
            }
            Body::PromptsRequeued(again) if again.prompts.contains(&self.prompt) => {
                self.set_aside = false;
                self.op = None;
            }
            Body::ConversationSealed(sealed) if self.set_aside && self.op.is_none() => {
                self.op = sealed.op;
            }
            _ if self.turn.is_none() || event.turn != self.turn => {}
            Body::MessageAdded(message) if message.status != MessageStatus::Superseded => {
                let texts = message.blocks.iter().filter_map(|block| match block {
                    Block::Text { text } | Block::Annotated { text, .. } => Some(text.as_str()),
                    _ => None,
                });
                let text = texts.collect::<Vec<_>>().join("\n");
                if !text.is_empty() {
                    self.text = text;
                }
            }
            Body::RequestEnded(ended) => self.spent.add(ended.usage, ended.cost),
            Body::Note(note) => self.note = Some(note.text.clone()),
            Body::TurnEnded(ended) => self.ended = Some(ended.clone()),
            _ => {}
        }
    }
}

/// A snapshot of what the agent is doing.
struct Moment {
    name: String,
    phase: Phase,
    head: Seq,
    turn: Option<TurnId>,
    /// A queued prompt ends the turn: what the turn waits for does not hold that prompt up.
    is_interrupting: bool,
}

impl Moment {
    async fn of(handle: &AgentHandle) -> Self {
        let guard = handle.lock().await;
        let state = &guard.state;
        Self {
            name: state.name.clone(),
            phase: state.phase(),
            head: state.head,
            turn: state.turn.as_ref().map(|turn| turn.id),
            is_interrupting: {
                let mut waiting = state.inbox.waiting();
                waiting.any(|queued| queued.mode == PromptMode::Interrupt)
            },
        }
    }

    /// Whether an earlier turn runs before a prompt that is still queued.
    const fn is_before(&self, trail: &Trail) -> bool {
        trail.turn.is_none() && self.turn.is_some() && !self.is_interrupting
    }
}

/// A prompt by its id, or by the beginning of its id.
pub async fn find(handle: &AgentHandle, given: &str) -> Result<PromptId> {
    let prefix = id_prefix::parse(given, "prompt")?;
    if let Some(whole) = prefix.whole() {
        return Ok(whole);
    }
    let mut sent = Vec::new();
    let mut after = Seq::ZERO;
    loop {
        let query = ReadQuery::all(handle.id, after, PAGE);
        let page = handle.daemon.store.read(query).await?;
        sent.extend(page.events.iter().filter_map(|event| match &event.body {
            Body::PromptQueued(queued) => Some(queued.prompt),
            _ => None,
        }));
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    let only = id_prefix::only(&prefix, "prompt", sent)?;
    only.ok_or_else(|| {
        let what = format!("no prompt {prefix} was sent to this agent");
        Error::new(Kind::NotFound, what)
    })
}

/// The status of a prompt. Waits, for at most `wait`, until its turn has ended or needs the user.
pub async fn answer(handle: &AgentHandle, prompt: PromptId, wait: Duration) -> Result<Answer> {
    let from = handle.daemon.position_of(prompt);
    let mut trail = Trail {
        prompt,
        conversation: None,
        turn: None,
        ended: None,
        set_aside: false,
        removed: false,
        op: None,
        text: String::new(),
        note: None,
        spent: Spent::default(),
    };
    let mut at = Seq(from.0.saturating_sub(1));
    let deadline = tokio::time::Instant::now() + wait;
    let mut changes = handle.changes();
    loop {
        changes.borrow_and_update();
        // The state is read before the journal, so the journal is never the older of the two: if the turn ends in
        // between, the journal has its end.
        let moment = Moment::of(handle).await;
        at = read_on(handle, at, &mut trail).await?;
        let Some(conversation) = trail.conversation else {
            let what = format!("no prompt {prompt} was sent to this agent");
            return Err(Error::new(Kind::NotFound, what));
        };
        let answer = so_far(handle, conversation, &trail, moment).await;
        let waits = matches!(answer.status, Status::Waiting);
        if answer.status.is_over() || waits {
            return Ok(answer);
        }
        let changed = tokio::time::timeout_at(deadline, changes.changed());
        if changed.await.is_err() || handle.daemon.is_ending() {
            return Ok(answer);
        }
    }
}

async fn read_on(handle: &AgentHandle, after: Seq, trail: &mut Trail) -> Result<Seq> {
    let mut at = after;
    loop {
        let page = handle
            .daemon
            .store
            .read(ReadQuery::all(handle.id, at, PAGE))
            .await?;
        for event in &page.events {
            trail.follow(event);
            at = event.seq;
        }
        if page.next.is_none() {
            return Ok(at);
        }
    }
}

async fn so_far(
    handle: &AgentHandle,
    conversation: ConversationId,
    trail: &Trail,
    moment: Moment,
) -> Answer {
    let is_this_turn = moment.turn == trail.turn;
    let is_behind = moment.is_before(trail);
    let Moment {
        name, phase, head, ..
    } = moment;
    let held_up = match &trail.ended {
        None if phase != Phase::Running => None,
        None if is_this_turn && trail.turn.is_some() => subagents::held_up(handle).await,
        // A turn that waits for a key continues by itself once a caller has it; an approval needs the user in any case.
        None if is_behind => {
            let held_up = subagents::held_up(handle).await;
            held_up.filter(|held_up| held_up.phase == Phase::AwaitingApproval)
        }
        _ => None,
    };
    let status = match &trail.ended {
        Some(ended) => ended.status.into(),
        None if trail.removed => Status::Removed,
        None if trail.set_aside => Status::SetAside,
        None if matches!(phase, Phase::Failed | Phase::Stopped) => Status::Waiting,
        None if is_behind && (phase == Phase::AwaitingApproval || held_up.is_some()) => {
            Status::Waiting
        }
        None if trail.turn.is_none() => Status::Queued,
        None if is_this_turn && matches!(phase, Phase::Waiting | Phase::AwaitingApproval) => {
            Status::Waiting
        }
        None if held_up.is_some() => Status::Waiting,
        None => Status::Running,
    };
    let error = match (&trail.ended, status) {
        (Some(ended), _) => match ended.status {
            TurnStatus::Completed | TurnStatus::Interrupted => None,
            TurnStatus::Limited => ended
                .limit
                .and_then(|limit| serde_json::to_value(limit).ok())
                .and_then(|limit| limit.as_str().map(str::to_owned)),
            TurnStatus::Failed => trail.note.clone(),
            TurnStatus::Lost => Some(LOST.to_owned()),
        },
        // A limit of the home holds its turn back.
        (None, Status::Queued) => {
            let wait = handle.daemon.admission.waits(handle.id);
            wait.map(|wait| wait.to_string())
        }
        (None, Status::Removed) => Some("the user removed the prompt from the queue".to_owned()),
        (None, Status::SetAside) => Some("a reset set the prompt aside".to_owned()),
        (None, Status::Waiting) => Some(match phase {
            Phase::Running => match &held_up {
                Some(held_up) => subagents::reason(&handle.daemon, held_up).await,
                None => "the turn is waiting".to_owned(),
            },
            Phase::Stopped => "the agent is stopped".to_owned(),
            Phase::AwaitingApproval if is_behind => {
                "a call of an earlier turn is waiting for approval".to_owned()
            }
            Phase::AwaitingApproval => "a call is waiting for approval".to_owned(),
            _ => {
                let note = match &trail.note {
                    Some(note) => Some(note.clone()),
                    None => last_note(&handle.daemon, handle.id, head).await,
                };
                note.unwrap_or_else(|| "the turn is waiting".to_owned())
            }
        }),
        _ => None,
    };
    Answer {
        agent: AgentRef {
            id: handle.id,
            name: Some(name),
        },
        prompt: trail.prompt,
        conversation,
        turn: trail.turn,
        status,
        text: trail.text.clone(),
        usage: usage(&trail.spent),
        error,
        failure: trail.ended.as_ref().and_then(|ended| ended.failure),
        op: trail.op,
    }
}
