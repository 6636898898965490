//! What holds at every moment, whatever was lost.

use super::{RuntimeProcess, Sim};
use crate::predicate::unanswered_words;
use agentd_core::event::{Body, Event, Purpose, ResetStep};
use agentd_core::id::Seq;
use agentd_core::message::Block;
use agentd_core::request::{self, Request};
use agentd_core::state::{AgentState, Queued};
use std::collections::BTreeSet;

impl Sim {
    /// After every op.
    pub fn check(&mut self) {
        self.check_prefix();
        let state = self.kept.state();
        assert_eq!(state.anomalies, 0, "{:#?}", self.kept.events.last());
        if let Some(reset) = state.resets.under_way() {
            let is_new = state.tree.current() != Some(reset.old);
            let switched = reset.done >= Some(ResetStep::Switch);
            assert_eq!(is_new, switched, "neither the old one nor the new one");
        }
        let current = state.tree.current();
        let is_here = |queued: &Queued| Some(queued.conversation) == current;
        let mut aside = state.inbox.set_aside_prompts();
        assert!(!aside.any(is_here), "its conversation is current again");
        assert!(
            state.inbox.waiting().all(is_here),
            "its words are elsewhere"
        );
    }

    /// What the runtime's machine has received is a prefix of the journal.
    fn check_prefix(&mut self) {
        let Some(machine) = self.runtime.as_ref().and_then(RuntimeProcess::machine) else {
            return;
        };
        let head = machine.agent().head;
        assert!(head <= Seq(self.kept.events.len() as u64));
        if self.told.head > head {
            self.told = AgentState::new(super::AGENT);
        }
        for event in &self.kept.events {
            if event.seq > self.told.head && event.seq <= head {
                self.told.apply(event);
            }
        }
        assert_eq!(*machine.agent(), self.told, "it knows another journal");
    }

    /// A request contains what the journal says, and nothing else: no text of a conversation that was left.
    pub(super) fn check_sent(&mut self, request: &Request) {
        let machine = self.runtime.as_ref().and_then(RuntimeProcess::machine);
        let agent = machine.expect("only a machine sends").agent();
        assert!(!agent.stopped, "a stopped agent sends");
        assert!(!agent.ends_turn(), "sent during a reset");
        let current = agent.tree.current().expect("a conversation");
        if request.purpose == Purpose::Answer {
            let window = self.kept.window_at(current, agent.head);
            let again = request::answer(&window, &request.context).expect("a request");
            assert_eq!(again.messages, request.messages);
            let lineage: Vec<&Event> = self.kept.lineage(current, agent.head).collect();
            let mut sent = Vec::new();
            let blocks = request.messages.iter().flat_map(|message| &message.blocks);
            blocks.for_each(|block| block.words(&mut sent));
            for word in unanswered_words(&lineage) {
                assert!(sent.contains(&word), "unanswered, and not sent: {word}");
            }
        }
        let inside: BTreeSet<Seq> = self
            .kept
            .lineage(current, agent.head)
            .map(|event| event.seq)
            .collect();
        let (mut known, mut left) = (Vec::new(), Vec::new());
        for event in &self.kept.events {
            match inside.contains(&event.seq) {
                true => words(event, &mut known),
                false => words(event, &mut left),
            }
        }
        let mut sent = Vec::new();
        let blocks = request.messages.iter().flat_map(|message| &message.blocks);
        blocks.for_each(|block| block.words(&mut sent));
        for (text, from) in &self.withdrawn {
            let is_told = agent.head >= *from;
            assert!(!is_told || !sent.contains(text), "withdrawn: {text}");
        }
        let known: BTreeSet<String> = known.into_iter().collect();
        for word in left.iter().filter(|word| !known.contains(*word)) {
            assert!(!sent.contains(word), "said in another conversation: {word}");
        }
        if self.is_recording {
            self.sent.push(request.clone());
        }
    }
}

fn words(event: &Event, out: &mut Vec<String>) {
    let blocks: &[Block] = match &event.body {
        Body::Prompt(body) => &body.blocks,
        Body::MessageAdded(body) => &body.blocks,
        Body::ResultAdded(body) => &body.blocks,
        _ => &[],
    };
    blocks
        .iter()
        .filter(|block| !matches!(block, Block::ToolCall(_)))
        .for_each(|block| block.words(out));
}
