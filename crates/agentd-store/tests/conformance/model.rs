//! What a journal must fold to, computed without the store from all of its events.

use agentd_core::event::Event;
use agentd_core::id::{AgentId, ConversationId, Seq};
use agentd_core::state::AgentState;
use agentd_core::window::Window;
use std::collections::BTreeMap;

#[derive(Clone, Default)]
pub struct Model {
    journals: BTreeMap<AgentId, Vec<Event>>,
}

impl Model {
    pub fn add(&mut self, event: Event) {
        self.journals.entry(event.agent).or_default().push(event);
    }

    pub fn state(&self, agent: AgentId, through: Seq) -> AgentState {
        let mut state = AgentState::new(agent);
        for event in &self.journals[&agent] {
            if event.seq <= through {
                state.apply(event);
            }
        }
        state
    }

    /// The window of a conversation, from its first ancestor on.
    pub fn window(&self, agent: AgentId, conversation: ConversationId, through: Seq) -> Window {
        let mut window = Window::new();
        self.fold(agent, conversation, through, &mut window);
        window
    }

    fn fold(
        &self,
        agent: AgentId,
        conversation: ConversationId,
        through: Seq,
        window: &mut Window,
    ) {
        let journal = &self.journals[&agent];
        let began = journal.iter().find_map(|event| match &event.body {
            agentd_core::event::Body::ConversationBegan(began)
                if event.conversation == conversation =>
            {
                Some(began)
            }
            _ => None,
        });
        if let Some(from) = began.and_then(|began| began.from) {
            self.fold(from.agent, from.conversation, from.seq, window);
        }
        let own = journal
            .iter()
            .filter(|event| event.conversation == conversation && event.seq <= through);
        own.for_each(|event| window.apply(event));
    }
}
