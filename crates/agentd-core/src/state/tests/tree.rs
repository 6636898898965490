//! The tree of conversations: undo, redo, branches, purge.

use crate::event::*;
use crate::fixture::{self, Journal, conversation};
use crate::id::{ConversationId, Seq};
use crate::state::{Applied, Lineage, Segment};

/// Begins the n-th conversation, as a reset does, after a turn in the one before.
fn reset(journal: &mut Journal, n: u128) {
    journal.start_turn(n);
    journal.end_turn(TurnStatus::Completed);
    let parent = Some(journal.conversation);
    let (reason, last_request, op) = (SealReason::Reset, Some("req".to_owned()), None);
    journal.push(ConversationSealed {
        reason,
        last_request,
        op,
    });
    journal.conversation = conversation(n);
    journal.begin(BeginSource::Reset, parent, None);
}

fn move_to(journal: &mut Journal, n: u128, direction: Direction) {
    journal.conversation = conversation(n);
    let (to, op) = (conversation(n), None);
    journal.push(PointerMoved { to, direction, op });
}

fn current(journal: &Journal) -> Option<ConversationId> {
    journal.state().tree.current()
}

#[test]
fn a_conversation_knows_its_place() {
    let mut journal = Journal::new();
    reset(&mut journal, 2);
    let state = journal.state();
    let (old, new) = (
        state.tree.get(conversation(1)).unwrap(),
        state.tree.get(conversation(2)).unwrap(),
    );
    assert_eq!((old.ordinal, new.ordinal), (1, 2));
    assert_eq!(new.parent, Some(old.id));
    assert_eq!(old.sealed, Some(SealReason::Reset));
    assert_eq!(old.last_request.as_deref(), Some("req"));
    assert_eq!((new.sealed, new.source), (None, BeginSource::Reset));
    assert_eq!(new.began, journal.head());
}

#[test]
fn undo_and_redo_reopen_the_same_conversation_several_levels_deep() {
    let mut journal = Journal::new();
    reset(&mut journal, 2);
    reset(&mut journal, 3);
    assert_eq!(journal.state().tree.undo_target(), Some(conversation(2)));
    move_to(&mut journal, 2, Direction::Undo);
    move_to(&mut journal, 1, Direction::Undo);
    let state = journal.state();
    assert_eq!(state.tree.current(), Some(conversation(1)));
    assert_eq!(state.tree.get(conversation(1)).unwrap().sealed, None);
    assert_eq!(state.tree.undo_target(), None);
    assert_eq!(state.tree.redo_target(), Some(conversation(2)));
    move_to(&mut journal, 2, Direction::Redo);
    move_to(&mut journal, 3, Direction::Redo);
    assert_eq!(current(&journal), Some(conversation(3)));
    assert_eq!(journal.state().tree.redo_target(), None);
    assert_eq!(journal.state().anomalies, 0);
    assert_eq!(journal.state().tree.len(), 3, "nothing is made or lost");
}

#[test]
fn a_reset_after_an_undo_leaves_nothing_to_redo() {
    let mut journal = Journal::new();
    reset(&mut journal, 2);
    move_to(&mut journal, 1, Direction::Undo);
    reset(&mut journal, 3);
    let state = journal.state();
    assert_eq!(state.tree.redo_target(), None);
    assert_eq!(state.tree.undo_target(), Some(conversation(1)));
    assert!(state.tree.get(conversation(2)).is_some(), "but it is kept");
}

#[test]
fn a_move_to_anywhere_else_is_refused() {
    let mut journal = Journal::new();
    reset(&mut journal, 2);
    reset(&mut journal, 3);
    let before = journal.state();
    move_to(&mut journal, 1, Direction::Undo);
    move_to(&mut journal, 2, Direction::Redo);
    let after = journal.state();
    assert_eq!(after.anomalies, 2);
    assert_eq!(after.tree.current(), before.tree.current());
    assert_eq!(after.generation(), before.generation());
}

#[test]
fn the_generation_counts_every_move_and_says_so() {
    let mut journal = Journal::new();
    assert_eq!(journal.state().generation(), 1);
    reset(&mut journal, 2);
    assert_eq!(journal.state().generation(), 2);
    move_to(&mut journal, 1, Direction::Undo);
    assert_eq!(journal.state().generation(), 3);
    journal.prompt(1, "hi");
    assert_eq!(journal.state().generation(), 3);
    let mut state = crate::state::AgentState::new(journal.agent);
    let moved: Vec<&str> = journal
        .events
        .iter()
        .filter(|event| state.apply(event) == Applied::PointerMoved)
        .map(|event| event.kind().name())
        .collect();
    let expected = ["conversation_began", "conversation_began", "pointer_moved"];
    assert_eq!(moved, expected);
}

/// An undo to a purged conversation is refused.
#[test]
fn nothing_brings_a_purged_conversation_back() {
    let mut journal = Journal::new();
    reset(&mut journal, 2);
    reset(&mut journal, 3);
    let (purged, events) = (conversation(2), 3);
    journal.push(Purged::conversation(purged, events));
    let state = journal.state();
    assert!(state.tree.get(purged).unwrap().purged);
    assert_eq!(state.tree.undo_target(), Some(conversation(1)));
    move_to(&mut journal, 2, Direction::Undo);
    assert_eq!(journal.state().anomalies, 1);
    move_to(&mut journal, 1, Direction::Undo);
    assert_eq!(current(&journal), Some(conversation(1)));
    assert_eq!(journal.state().tree.len(), 3, "tree and cost stay");
}

#[test]
fn a_purge_takes_it_out_of_redo_too() {
    let mut journal = Journal::new();
    reset(&mut journal, 2);
    move_to(&mut journal, 1, Direction::Undo);
    let (purged, events) = (conversation(2), 3);
    journal.push(Purged::conversation(purged, events));
    assert_eq!(journal.state().tree.redo_target(), None);
}

#[test]
fn labels_belong_to_their_conversation_and_to_a_place_in_it() {
    let mut journal = Journal::new();
    let set = |label: &str, at| CheckpointSet {
        label: label.to_owned(),
        at,
    };
    journal.push(set("here", None));
    let here = journal.head();
    journal.push(set("there", Some(Seq(1))));
    reset(&mut journal, 2);
    journal.push(set("here", None));
    let state = journal.state();
    let first = &state.tree.get(conversation(1)).unwrap().labels;
    assert_eq!(first["here"], here);
    assert_eq!(first["there"], Seq(1));
    assert_eq!(state.tree.get(conversation(2)).unwrap().labels.len(), 1);
}

fn origin(journal: &Journal, n: u128, seq: u64) -> Origin {
    Origin {
        agent: journal.agent,
        conversation: conversation(n),
        seq: Seq(seq),
    }
}

#[test]
fn a_branch_s_lineage_is_its_parents_prefixes_and_itself() {
    let mut journal = Journal::new();
    journal.prompt(1, "one");
    let first = journal.head().0;
    journal.conversation = conversation(2);
    let from = origin(&journal, 1, first);
    journal.begin(BeginSource::Rewind, Some(conversation(1)), Some(from));
    journal.prompt(2, "two");
    let second = journal.head().0;
    journal.conversation = conversation(3);
    let from = origin(&journal, 2, second);
    journal.begin(BeginSource::Rewind, Some(conversation(2)), Some(from));
    let state = journal.state();
    let segment = |n, through| Segment {
        agent: journal.agent,
        conversation: conversation(n),
        through: Seq(through),
    };
    let head = journal.head();
    let lineage = state.tree.lineage(journal.agent, conversation(3), head);
    let expected = Lineage {
        segments: vec![segment(1, first), segment(2, second), segment(3, head.0)],
        beyond: None,
    };
    assert_eq!(lineage, expected);
    let branches: Vec<_> = state
        .tree
        .branches_of(conversation(1))
        .map(|c| c.id)
        .collect();
    assert_eq!(branches, [conversation(2)]);
}

#[test]
fn a_fork_s_lineage_goes_on_in_its_parent_agent() {
    let mut journal = Journal::empty();
    let from = Origin {
        agent: fixture::agent(9),
        conversation: conversation(9),
        seq: Seq(40),
    };
    journal.begin(BeginSource::Fork, None, Some(from));
    let state = journal.state();
    let lineage = state.tree.lineage(journal.agent, conversation(1), Seq(1));
    assert_eq!(lineage.beyond, Some(from));
    assert_eq!(lineage.segments.len(), 1);
    assert_eq!(state.anomalies, 0);
}

#[test]
fn a_forged_circle_of_branches_does_not_hang_us() {
    let mut journal = Journal::new();
    journal.conversation = conversation(2);
    let from = origin(&journal, 3, 1);
    journal.begin(BeginSource::Rewind, None, Some(from));
    journal.conversation = conversation(3);
    let from = origin(&journal, 2, 1);
    journal.begin(BeginSource::Rewind, None, Some(from));
    let state = journal.state();
    let lineage = state.tree.lineage(journal.agent, conversation(3), Seq(9));
    assert!(lineage.segments.len() <= state.tree.len() + 1);
}

#[test]
fn a_conversation_begins_once() {
    let mut journal = Journal::new();
    journal.begin(BeginSource::Reset, None, None);
    let state = journal.state();
    assert_eq!(
        (state.tree.len(), state.generation(), state.anomalies),
        (1, 1, 1)
    );
}
