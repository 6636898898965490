//! Another agent that begins from some event of this one's journal, whatever is in progress there.

use super::{AGENT, Sim};
use agentd_core::begin::{self, NewFork};
use agentd_core::branch_point::BranchPoint;
use agentd_core::event::{Body, NewEvent};
use agentd_core::id::{AgentId, ConversationId, OpId, Seq};
use agentd_core::state::AgentState;
use agentd_core::usage::Spent;

impl Sim {
    /// Some event, counted from the newest; none before its conversation began.
    pub(super) fn some_branch_point(&self, back: u8) -> Option<BranchPoint> {
        let event = self.kept.events.iter().rev().nth(usize::from(back))?;
        let known = self.kept.state().tree.get(event.conversation)?;
        (event.seq >= known.began).then_some(BranchPoint {
            conversation: event.conversation,
            at: event.seq,
        })
    }

    /// A fork is one append to another journal: it exists completely, or not at all. It is checked here, immediately;
    /// nothing of it comes back to this journal.
    pub(super) fn fork(&mut self, back: u8) {
        let (Some(place), true) = (self.some_branch_point(back), self.daemon.is_some()) else {
            return;
        };
        let agent = AgentId::new(self.new_id());
        let new = ConversationId::new(self.new_id());
        let op = Some(OpId::new(agent.uuid()));
        let parent = self.kept.state();
        let mut window = self.kept.window_at(place.conversation, place.at);
        let before = window.items().len();
        let lines = begin::fork(parent, &window, place, NewFork::persistent("fork"), new, op)
            .expect("a fork");
        let mut state = AgentState::new(agent);
        let mut notices = 0;
        for (seq, (conversation, body)) in (1..).map(Seq).zip(lines) {
            notices += u32::from(matches!(body, Body::Notice(_)));
            let event = NewEvent {
                at: self.now(),
                conversation,
                turn: None,
                body,
            };
            let event = event.placed(agent, seq);
            state.apply(&event);
            window.apply(&event);
        }
        assert_eq!(state.anomalies, 0);
        assert_eq!(notices, 1, "it is told once");
        assert_eq!(state.approvals.iter().count(), 0, "no question of another");
        assert_eq!(state.tasks.running().len(), 0, "no task of another");
        assert_eq!(state.inbox.waiting().len(), 0, "no prompt of another");
        assert!(state.turn.is_none() && !state.needs_process());
        assert_eq!(
            state.spending.lifetime,
            Spent::default(),
            "no cost of another"
        );
        let began = state.tree.current_conversation().expect("a conversation");
        let from = began.from.expect("it has a prefix");
        assert_eq!((from.agent, from.seq), (AGENT, place.at));
        assert!(!window.has_open_calls(), "every call is answered");
        assert!(window.items().len() > before);
        self.forks += 1;
    }
}
