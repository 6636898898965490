//! Branch points: the positions from which a conversation can begin. The user names one by a label or by a turn.

use crate::event::{Body, Event};
use crate::id::{ConversationId, Seq, TurnId};
use crate::state::AgentState;
use std::collections::BTreeMap;

/// An event of one of the agent's conversations: the last one that a branch shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchPoint {
    pub conversation: ConversationId,
    pub at: Seq,
}

/// How a user names a turn. Its branch point is its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnName {
    Id(TurnId),
    /// 1 for the first turn that the conversation shows.
    Number(usize),
}

impl TurnName {
    pub fn parse(text: &str) -> Option<Self> {
        match text.parse() {
            Ok(id) => Some(Self::Id(id)),
            Err(_) => text.parse().ok().map(Self::Number),
        }
    }
}

/// The branch point with this label, as the conversation shows it: its own, or one of a conversation that it branched
/// off.
pub fn labelled(
    state: &AgentState,
    conversation: ConversationId,
    label: &str,
) -> Option<BranchPoint> {
    all_labelled(state, conversation, label).next_back()
}

/// The oldest branch point with this label that the conversation shows. Each branch has a label of its own for its
/// beginning, but what it changed began with the conversation that it branched off.
pub fn first_labelled(
    state: &AgentState,
    conversation: ConversationId,
    label: &str,
) -> Option<BranchPoint> {
    all_labelled(state, conversation, label).next()
}

/// The branch points with this label that the conversation shows, at most one of each conversation, oldest first.
fn all_labelled(
    state: &AgentState,
    conversation: ConversationId,
    label: &str,
) -> impl DoubleEndedIterator<Item = BranchPoint> {
    let lineage = state.tree.lineage(state.id, conversation, Seq(u64::MAX));
    lineage.segments.into_iter().filter_map(move |segment| {
        let conversation = segment.conversation;
        let at = *state.tree.get(conversation)?.labels.get(label)?;
        (at <= segment.through).then_some(BranchPoint { conversation, at })
    })
}

/// All labels that a conversation shows, each with its position there.
pub fn labels(state: &AgentState, conversation: ConversationId) -> BTreeMap<String, Seq> {
    let lineage = state
        .tree
        .lineage(state.id, conversation, Seq(u64::MAX))
        .segments;
    let mut labels = BTreeMap::new();
    for segment in lineage {
        let known = state.tree.get(segment.conversation);
        let known = known.into_iter().flat_map(|known| &known.labels);
        let shown = known.filter(|(_, at)| **at <= segment.through);
        labels.extend(shown.map(|(label, at)| (label.clone(), *at)));
    }
    labels
}

/// Whether it is certain that no call is open at a branch point. `after` holds the events that follow it in its
/// conversation, or the first of them.
pub fn is_between_turns(state: &AgentState, point: BranchPoint, after: &[Event]) -> bool {
    for event in after {
        match &event.body {
            Body::TurnStarted(_) => return true,
            // A branch that begins in the middle of a turn starts with the results of the open calls.
            Body::ResultAdded(_) => return false,
            // Set at the end of a turn, or by the user.
            Body::CheckpointSet(_) => {}
            _ if event.turn.is_some() => return false,
            _ => {}
        }
    }
    let last = after.last().map_or(point.at, |event| event.seq);
    let known = state.tree.get(point.conversation);
    let is_all = known.is_some_and(|known| known.head == last);
    let turn = state.turn.as_ref();
    is_all && turn.is_none_or(|turn| turn.conversation != point.conversation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{BeginSource, CheckpointSet, Origin, TurnStatus};
    use crate::fixture::{self, Journal};
    use crate::message::Block;

    fn mark(journal: &mut Journal, label: &str) -> Seq {
        let label = label.to_owned();
        journal.push(CheckpointSet { label, at: None });
        journal.head()
    }

    /// Two turns, a label after each, and a branch off the first.
    fn branched() -> (Journal, Seq) {
        let mut journal = Journal::new();
        for (n, label) in [(1, "one"), (2, "two")] {
            journal.start_turn(n);
            journal.prompt(n, "go on");
            journal.reply(vec![Block::text("done")]);
            journal.end_turn(TurnStatus::Completed);
            mark(&mut journal, label);
        }
        let first = journal.conversation;
        let at = labelled(&journal.state(), first, "one").unwrap().at;
        journal.conversation = fixture::conversation(2);
        let from = Origin {
            agent: journal.agent,
            conversation: first,
            seq: at,
        };
        journal.begin(BeginSource::Rewind, Some(first), Some(from));
        (journal, at)
    }

    #[test]
    fn a_branch_shows_the_labels_before_it_and_none_after() {
        let (mut journal, at) = branched();
        let (first, second) = (fixture::conversation(1), fixture::conversation(2));
        let state = journal.state();
        let one = BranchPoint {
            conversation: first,
            at,
        };
        assert_eq!(labelled(&state, second, "one"), Some(one));
        assert_eq!(labelled(&state, second, "two"), None);
        let shown = labels(&state, second);
        assert_eq!((shown.get("one"), shown.get("two")), (Some(&at), None));
        assert!(labelled(&state, first, "two").is_some());
        // Its own label comes first.
        let at = mark(&mut journal, "one");
        let own = BranchPoint {
            conversation: second,
            at,
        };
        assert_eq!(labelled(&journal.state(), second, "one"), Some(own));
        assert_eq!(labels(&journal.state(), second).get("one"), Some(&own.at));
    }

    /// The files of a branch began with the conversation that it branched off.
    #[test]
    fn the_first_of_several_labels_is_that_of_the_oldest_conversation() {
        let mut journal = Journal::new();
        let begin = mark(&mut journal, "init");
        journal.start_turn(1);
        journal.end_turn(TurnStatus::Completed);
        let (first, at) = (journal.conversation, journal.head());
        journal.conversation = fixture::conversation(2);
        let from = Origin {
            agent: journal.agent,
            conversation: first,
            seq: at,
        };
        journal.begin(BeginSource::Rewind, Some(first), Some(from));
        let own = mark(&mut journal, "init");
        let (state, second) = (journal.state(), fixture::conversation(2));
        let at = |found: Option<BranchPoint>| found.map(|it| it.at);
        assert_eq!(at(labelled(&state, second, "init")), Some(own));
        assert_eq!(at(first_labelled(&state, second, "init")), Some(begin));
        assert_eq!(first_labelled(&state, second, "other"), None);
    }

    #[test]
    fn a_turn_is_an_id_or_a_number() {
        assert_eq!(TurnName::parse("3"), Some(TurnName::Number(3)));
        let id = fixture::turn(1);
        assert_eq!(TurnName::parse(&id.to_string()), Some(TurnName::Id(id)));
        assert_eq!(TurnName::parse("before-that"), None);
        assert_eq!(TurnName::parse("-1"), None);
    }

    /// It returns true only where the window has no open calls.
    #[test]
    fn between_turns_no_call_is_open() {
        let mut journal = Journal::new();
        journal.start_turn(1);
        journal.prompt(1, "go on");
        journal.reply(vec![fixture::call("a")]);
        journal.result("a", "fine");
        journal.reply(vec![Block::text("done")]);
        journal.end_turn(TurnStatus::Completed);
        journal.start_turn(2);
        let conversation = journal.conversation;
        let state = journal.state();
        let mut sure = 0;
        for event in &journal.events {
            let point = BranchPoint {
                conversation,
                at: event.seq,
            };
            let after = journal.events.get(event.seq.0 as usize..).unwrap();
            if is_between_turns(&state, point, after) {
                sure += 1;
                let mut window = crate::window::Window::new();
                let before = journal.events.iter().filter(|it| it.seq <= event.seq);
                before.for_each(|event| window.apply(event));
                assert!(!window.has_open_calls(), "{event:?}");
                assert!(event.turn.is_none() || matches!(event.body, Body::TurnEnded(_)));
            }
        }
        assert!(sure > 1);
        // In the middle of a running turn it is never certain.
        let head = BranchPoint {
            conversation,
            at: journal.head(),
        };
        assert!(!is_between_turns(&state, head, &[]));
    }
}
