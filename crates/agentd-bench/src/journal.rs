//! The events of agents in a benchmark: messages, and whole turns as the turn machine writes them.

use std::time::{SystemTime, UNIX_EPOCH};

use agentd_core::event::*;
use agentd_core::id::{AgentId, ConversationId, Incarnation, PromptId, Seq, TryId, TurnId};
use agentd_core::message::{Block, Wire};
use agentd_core::time::Timestamp;
use agentd_core::usage::{MicroUsd, Usage};
use serde_json::json;
use uuid::Uuid;

use crate::words::Words;

/// The journal of one agent so far. The caller must append all of its events, in order.
pub struct Story {
    pub agent: AgentId,
    conversation: ConversationId,
    words: Words,
    /// The number of events so far, which is the `seq` of the last one.
    seq: u64,
    tries: u64,
    /// The positions of the window's items after the last summary.
    placed: Vec<u64>,
}

impl Story {
    /// An agent with its first events.
    pub fn begin(name: &str, seed: u64) -> (Self, Vec<NewEvent>) {
        let mut story = Self {
            agent: AgentId::new(Uuid::now_v7()),
            conversation: ConversationId::new(Uuid::now_v7()),
            words: Words::new(seed),
            seq: 0,
            tries: 0,
            placed: Vec::new(),
        };
        let created = AgentCreated {
            name: name.to_owned(),
            mode: Mode::Persistent,
        };
        let began = ConversationBegan {
            source: BeginSource::Create,
            parent: None,
            from: None,
            op: None,
        };
        let mut events = Vec::new();
        story.add(&mut events, None, created);
        story.add(&mut events, None, began);
        (story, events)
    }

    /// A message with about this many bytes of text.
    pub fn message(&mut self, bytes: usize) -> NewEvent {
        let message = self.reply(None, bytes);
        let mut events = Vec::with_capacity(1);
        self.placed.push(self.seq + 1);
        self.add(&mut events, None, message);
        events.remove(0)
    }

    /// What every request of the conversation holds.
    pub fn context(&mut self, events: &mut Vec<NewEvent>) {
        let tool = |name: &str, description: String| Tool {
            name: name.to_owned(),
            description,
            parameters: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
        };
        let context = Context {
            provider: "bench".to_owned(),
            wire: Wire::AnthropicMessages,
            model: "bench".to_owned(),
            system: self.words.text(2048),
            kept: None,
            tools: vec![
                tool("read", self.words.text(200)),
                tool("write", self.words.text(200)),
            ],
            server_tools: Vec::new(),
            max_output_tokens: 4096,
            temperature: None,
            thinking_tokens: None,
            effort: None,
            verbosity: None,
            fast: false,
            omits: Vec::new(),
        };
        self.add(events, None, context);
    }

    /// A prompt and its answer: eight events, two messages.
    pub fn turn(&mut self, bytes: usize, events: &mut Vec<NewEvent>) {
        self.turn_with(bytes, None, events);
    }

    /// A turn that first summarises all but the newest `keep` items of the window.
    pub fn compacting_turn(&mut self, bytes: usize, keep: usize, events: &mut Vec<NewEvent>) {
        self.turn_with(bytes, Some(keep), events);
    }

    fn turn_with(&mut self, bytes: usize, keep: Option<usize>, events: &mut Vec<NewEvent>) {
        let prompt = PromptId::new(Uuid::now_v7());
        let id = TurnId::new(Uuid::now_v7());
        let queued = PromptQueued {
            prompt,
            key: None,
            mode: PromptMode::Queue,
        };
        let words = Prompt {
            prompt,
            blocks: vec![Block::text(self.words.text(bytes))],
        };
        self.add(events, None, queued);
        self.add(events, None, words);
        self.add(events, Some(id), TurnStarted::default());
        self.placed.push(self.seq + 1);
        let taken = PromptsTaken {
            prompts: vec![prompt],
        };
        self.add(events, Some(id), taken);
        if let Some(keep) = keep {
            self.compact(id, keep, events);
        }
        let request = self.send(id, Purpose::Answer, events);
        let reply = self.reply(Some(request), bytes);
        self.placed.push(self.seq + 1);
        self.add(events, Some(id), reply);
        self.end(id, request, events);
        self.add(events, Some(id), TurnEnded::with(TurnStatus::Completed));
    }

    fn compact(&mut self, turn: TurnId, keep: usize, events: &mut Vec<NewEvent>) {
        let covered = self.placed.len().saturating_sub(keep);
        let Some(last) = covered.checked_sub(1).map(|last| self.placed[last]) else {
            return;
        };
        self.placed.drain(..covered);
        let through = Position {
            agent: self.agent,
            seq: Seq(last),
        };
        let request = self.send(turn, Purpose::Compact, events);
        let text = self.words.text(1024);
        self.add(events, Some(turn), Summary { through, text });
        self.add(events, Some(turn), Compacted { through });
        self.end(turn, request, events);
    }

    fn send(&mut self, turn: TurnId, purpose: Purpose, events: &mut Vec<NewEvent>) -> TryId {
        self.tries += 1;
        let request = TryId {
            incarnation: Incarnation(1),
            n: self.tries,
        };
        let sent = RequestSent {
            request,
            purpose,
            grant: Grant {
                input_tokens: 20_000,
                output_tokens: 4096,
                cost: Some(MicroUsd(100_000)),
            },
        };
        self.add(events, Some(turn), sent);
        request
    }

    fn end(&mut self, turn: TurnId, request: TryId, events: &mut Vec<NewEvent>) {
        let ended = RequestEnded {
            request,
            outcome: RequestOutcome::Completed,
            usage: Usage {
                input_tokens: 1500,
                output_tokens: 300,
                cache_read_tokens: 12_000,
                cache_write_tokens: 800,
            },
            estimated: false,
            cost: Some(MicroUsd(12_345)),
            provider_request: Some(format!("req_{:016x}", self.tries)),
        };
        self.add(events, Some(turn), ended);
    }

    fn reply(&mut self, request: Option<TryId>, bytes: usize) -> MessageAdded {
        MessageAdded {
            request,
            status: MessageStatus::Complete,
            stop: Some(StopReason::EndTurn),
            blocks: vec![Block::text(self.words.text(bytes))],
        }
    }

    fn add(&mut self, events: &mut Vec<NewEvent>, turn: Option<TurnId>, body: impl Into<Body>) {
        self.seq += 1;
        events.push(NewEvent {
            at: now(),
            conversation: self.conversation,
            turn,
            body: body.into(),
        });
    }
}

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::state::AgentState;
    use agentd_core::window::Window;

    /// The size of the window after this many turns, folded as the store does.
    fn window_after(turns: usize) -> usize {
        let (mut story, mut events) = Story::begin("a", 1);
        story.context(&mut events);
        for turn in 1..=turns {
            match turn % 25 == 5 {
                true => story.compacting_turn(50, 10, &mut events),
                false => story.turn(50, &mut events),
            }
        }
        let mut state = AgentState::new(story.agent);
        let mut window = Window::new();
        for (index, event) in events.into_iter().enumerate() {
            let event = event.placed(story.agent, Seq(index as u64 + 1));
            state.apply(&event);
            window.apply(&event);
        }
        assert_eq!(state.anomalies, 0, "the journal is one that agentd writes");
        window.items().len()
    }

    #[test]
    fn compaction_keeps_the_window_as_it_is() {
        let window = window_after(500);
        assert!((45..=60).contains(&window), "{window}");
        assert_eq!(window_after(1000), window);
    }
}
