//! Notices events that are missing from the stream of all agents: the events of each agent have no gaps.

use agentd_core::event::Event;
use agentd_core::id::{AgentId, Seq};
use std::collections::BTreeMap;

/// The last event of each agent that was on the stream.
#[derive(Debug, Default)]
pub struct Gaps {
    last: BTreeMap<AgentId, Seq>,
    /// The stream began with the first event of the journal. Otherwise the first event that is seen of an agent may have
    /// any number.
    is_whole: bool,
}

impl Gaps {
    pub const fn new(is_whole: bool) -> Self {
        Self {
            last: BTreeMap::new(),
            is_whole,
        }
    }

    /// The first event of its agent that is missing before this one. After damage was quarantined, an agent uses the
    /// numbers of the lost events again.
    pub fn before(&mut self, event: &Event) -> Option<Seq> {
        let last = self.last.insert(event.agent, event.seq);
        let last = last.or_else(|| self.is_whole.then_some(Seq::ZERO))?;
        (event.seq > last.next()).then(|| last.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::event::Note;
    use agentd_core::id::ConversationId;
    use agentd_core::time::Timestamp;

    fn event(agent: u8, seq: u64) -> Event {
        Event {
            agent: AgentId::from_bytes([agent; 16]),
            seq: Seq(seq),
            at: Timestamp::default(),
            conversation: ConversationId::from_bytes([1; 16]),
            turn: None,
            body: Note {
                about: None,
                text: String::new(),
            }
            .into(),
        }
    }

    #[test]
    fn a_missing_event_is_noticed_and_named() {
        let mut gaps = Gaps::new(true);
        let seen = [(1, 1), (2, 1), (1, 2), (2, 3), (1, 5), (1, 6)];
        let found = seen.map(|(agent, seq)| gaps.before(&event(agent, seq)));
        assert_eq!(found, [None, None, None, Some(Seq(2)), Some(Seq(3)), None]);
        assert_eq!(gaps.before(&event(3, 2)), Some(Seq(1)));
    }

    #[test]
    fn a_stream_may_begin_in_the_middle_and_an_agent_may_use_numbers_again() {
        let mut gaps = Gaps::new(false);
        let found = [7, 8, 5, 6].map(|seq| gaps.before(&event(1, seq)));
        assert_eq!(found, [None; 4]);
    }
}
