//! Random journals, and functions that fold them from the first event.
//!
//! - [`driver`]: what the turn machine writes, with crashes, interrupts, resets and forks at any moment.
//! - [`adversarial`]: events in an order that the turn machine never writes.

pub mod adversarial;
pub mod driver;
pub mod ops;
pub mod words;

use agentd_core::event::{Context, Event, Tool};
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_core::message::{FileKind, Wire};
use agentd_core::state::{AgentState, Segment};
use agentd_core::window::Window;
use std::collections::BTreeMap;

/// Every agent's events, each from its first.
#[derive(Clone, Debug, Default)]
pub struct Journals {
    pub agents: BTreeMap<AgentId, Vec<Event>>,
}

impl Journals {
    pub fn of(&self, agent: AgentId) -> &[Event] {
        self.agents.get(&agent).map_or(&[], Vec::as_slice)
    }

    /// The agent's state after its first `len` events.
    pub fn state(&self, agent: AgentId, len: usize) -> AgentState {
        let mut state = AgentState::new(agent);
        for event in self.of(agent).iter().take(len) {
            state.apply(event);
        }
        state
    }

    /// The events that a conversation's window is made of, oldest first.
    pub fn lineage(
        &self,
        agent: AgentId,
        state: &AgentState,
        conversation: ConversationId,
        through: Seq,
    ) -> Vec<&Event> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut own = state.tree.lineage(agent, conversation, through);
        loop {
            let older = std::mem::take(&mut own.segments);
            segments.splice(0..0, older);
            let Some(origin) = own.beyond.take() else {
                break;
            };
            let parent = self.state(origin.agent, self.of(origin.agent).len());
            if segments.len() > 1000 {
                break;
            }
            own = parent
                .tree
                .lineage(origin.agent, origin.conversation, origin.seq);
        }
        segments
            .iter()
            .flat_map(|segment| {
                self.of(segment.agent).iter().filter(move |event| {
                    event.conversation == segment.conversation && event.seq <= segment.through
                })
            })
            .collect()
    }

    /// The window of a conversation, folded from its first event.
    pub fn window(
        &self,
        agent: AgentId,
        state: &AgentState,
        conversation: ConversationId,
        through: Seq,
    ) -> Window {
        let mut window = Window::new();
        for event in self.lineage(agent, state, conversation, through) {
            window.apply(event);
        }
        window
    }
}

/// What requests contain besides their messages.
pub fn context(wire: Wire) -> Context {
    Context {
        provider: "test".into(),
        wire,
        model: "test-model".into(),
        system: "You are under test.".into(),
        kept: None,
        tools: vec![Tool {
            name: "shell".into(),
            description: "Runs a command.".into(),
            parameters: serde_json::json!({
                "type": "object",
                "properties": {"command": {"type": "string"}},
            }),
        }],
        server_tools: Vec::new(),
        max_output_tokens: 4096,
        temperature: None,
        thinking_tokens: None,
        effort: None,
        verbosity: None,
        fast: false,
        // Compatible servers do not accept them.
        omits: match wire {
            Wire::OpenaiChat => vec![FileKind::Pdf],
            _ => Vec::new(),
        },
    }
}
