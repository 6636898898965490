//! Each step by itself; the test kit simulates the whole.

use super::*;
use crate::event::{Mode, PromptMode, Purged, ResetSource, TurnStatus};
use crate::fixture::{self, Journal};
use crate::id::Seq;
use crate::message::Block;

const NEW: ConversationId = ConversationId::from_bytes([7; 16]);

fn order(to: ResetTo) -> ResetBegan {
    ResetBegan {
        op: OpId::from_bytes([9; 16]),
        to,
        force: false,
        kill_background: false,
        keep_queue: false,
        clear_log: false,
        skip_hooks: false,
        grace_ms: 15_000,
        was_awake: false,
        source: ResetSource::User,
    }
}

fn numbered(n: u8, to: ResetTo) -> ResetBegan {
    let op = OpId::from_bytes([n; 16]);
    ResetBegan { op, ..order(to) }
}

fn place(journal: &mut Journal, lines: impl IntoIterator<Item = Line>) {
    for (conversation, body) in lines {
        journal.conversation = conversation;
        journal.push(body);
    }
}

fn start(journal: &mut Journal, order: ResetBegan) {
    let Begin::Append(line) = begin(&journal.state(), order).unwrap() else {
        panic!("it may begin");
    };
    place(journal, [line]);
}

/// Performs steps until the reset is over, or until the next step is `until`.
fn step_until(journal: &mut Journal, until: Next) {
    loop {
        let (state, window) = (journal.state(), journal.window());
        let lines = match next(&state) {
            reached if reached == until => return,
            Next::Nothing => return,
            Next::Hooks(step) => vec![stepped(&state, step).unwrap()],
            Next::Stop => vec![stepped(&state, ResetStep::Stop).unwrap()],
            Next::Switch => switch(&state, &window, &window, NEW).unwrap(),
            Next::End => vec![end(&state).unwrap()],
        };
        place(journal, lines);
    }
}

#[test]
fn one_reset_at_a_time_and_the_others_are_told_which() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    journal.end_turn(TurnStatus::Completed);
    start(&mut journal, numbered(1, ResetTo::Fresh));
    let refused = begin(&journal.state(), numbered(2, ResetTo::Fresh));
    let first = OpId::from_bytes([1; 16]);
    assert_eq!(refused, Err(Refused::Resetting(Box::new(first))));
    step_until(&mut journal, Next::Nothing);
    start(&mut journal, numbered(2, ResetTo::Undo));
}

#[test]
fn what_cannot_be_does_not_begin() {
    let mut journal = Journal::new();
    let state = journal.state();
    let refused = |to| begin(&state, order(to)).unwrap_err();
    assert_eq!(refused(ResetTo::Undo), Refused::NothingToUndo);
    assert_eq!(refused(ResetTo::Redo), Refused::NothingToRedo);
    let at = Seq(99);
    let conversation = None;
    let rewind = ResetTo::Rewind { at, conversation };
    assert_eq!(refused(rewind), Refused::NotThere(at));
    let without_conversation = AgentState::new(fixture::agent(1));
    let refused = begin(&without_conversation, order(ResetTo::Fresh));
    assert_eq!(refused, Err(Refused::NoConversation));
    journal.push(crate::event::AgentCreated {
        name: "once".to_owned(),
        mode: Mode::Oneshot,
    });
    let refused = begin(&journal.state(), order(ResetTo::Fresh));
    assert_eq!(refused, Err(Refused::Oneshot));
}

#[test]
fn it_can_be_withdrawn_until_the_hooks_have_heard_that_the_conversation_is_over() {
    for (until, may) in [
        (Next::Hooks(ResetStep::PreReset), true),
        (Next::Stop, true),
        (Next::Hooks(ResetStep::SessionEnd), true),
        (Next::Switch, false),
        (Next::Hooks(ResetStep::SessionStart), false),
        (Next::End, false),
    ] {
        let mut journal = Journal::new();
        let old = journal.conversation;
        start(&mut journal, order(ResetTo::Fresh));
        step_until(&mut journal, until);
        let withdrawn = withdraw(&journal.state(), ResetRefusal::StillActive);
        assert_eq!(withdrawn.is_some(), may, "{until:?}");
        place(&mut journal, withdrawn);
        step_until(&mut journal, Next::Nothing);
        let state = journal.state();
        assert_eq!(state.tree.current(), Some(if may { old } else { NEW }));
        assert_eq!(
            (state.tree.len(), state.anomalies),
            (2 - usize::from(may), 0)
        );
        // A repeated request has no effect: the outcome is recorded.
        let again = begin(&state, order(ResetTo::Fresh)).unwrap();
        let is_withdrawn = matches!(again, Begin::Over(Outcome::Withdrawn { .. }));
        assert_eq!(is_withdrawn, may);
    }
}

#[test]
fn in_a_restored_home_it_is_withdrawn_before_the_switch_and_over_after_it() {
    for (until, is_switched) in [
        (Next::Hooks(ResetStep::PreReset), false),
        (Next::Stop, false),
        (Next::Hooks(ResetStep::SessionEnd), false),
        (Next::Switch, false),
        (Next::Hooks(ResetStep::SessionStart), true),
        (Next::End, true),
    ] {
        let mut journal = Journal::new();
        let old = journal.conversation;
        start(&mut journal, order(ResetTo::Fresh));
        step_until(&mut journal, until);
        let line = end_in_restored_home(&journal.state());
        assert!(line.is_some(), "{until:?}");
        place(&mut journal, line);
        let state = journal.state();
        assert_eq!((next(&state), state.anomalies), (Next::Nothing, 0));
        let current = if is_switched { NEW } else { old };
        assert_eq!(state.tree.current(), Some(current), "{until:?}");
        assert_eq!(end_in_restored_home(&state), None);
    }
}

/// A purge does not check whether a reset in progress needs the conversation.
#[test]
fn an_undo_whose_conversation_was_purged_meanwhile_is_withdrawn_and_not_stuck() {
    let mut journal = Journal::new();
    let old = journal.conversation;
    journal.start_turn(1);
    journal.end_turn(TurnStatus::Completed);
    start(&mut journal, numbered(1, ResetTo::Fresh));
    step_until(&mut journal, Next::Nothing);
    start(&mut journal, numbered(2, ResetTo::Undo));
    step_until(&mut journal, Next::Switch);
    let events = 0;
    journal.push(Purged::conversation(old, events));
    let (state, window) = (journal.state(), journal.window());
    let refused = switch(&state, &window, &window, NEW);
    assert_eq!(refused, Err(Refused::NothingToUndo));
    assert_eq!(withdraw(&state, ResetRefusal::StillActive), None);
    let line = withdraw(&state, ResetRefusal::NoTarget).unwrap();
    place(&mut journal, [line]);
    let state = journal.state();
    assert_eq!((next(&state), state.anomalies), (Next::Nothing, 0));
    assert_eq!(state.tree.current(), Some(NEW));
}

#[test]
fn a_switch_waits_for_the_turn_to_end() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    start(&mut journal, order(ResetTo::Fresh));
    let (state, window) = (journal.state(), journal.window());
    let refused = switch(&state, &window, &window, NEW);
    assert_eq!(refused, Err(Refused::TurnUnderWay));
}

#[test]
fn the_receipt_names_what_was_set_aside_and_how_to_take_it_back() {
    let mut journal = Journal::new();
    let old = journal.conversation;
    journal.start_turn(1);
    journal.prompt(1, "hi");
    journal.reply(vec![Block::text("hello")]);
    journal.end_turn(TurnStatus::Completed);
    journal.queue(fixture::prompt_id(2), PromptMode::Queue, "and now?");
    start(&mut journal, numbered(1, ResetTo::Fresh));
    let first = OpId::from_bytes([1; 16]);
    assert_eq!(receipt(&journal.state(), first, &journal.events), None);
    step_until(&mut journal, Next::Nothing);
    let receipt = receipt(&journal.state(), first, &journal.events).unwrap();
    assert_eq!((receipt.old, receipt.new), (old, NEW));
    assert_eq!(receipt.set_aside, [fixture::prompt_id(2)]);
    assert_eq!(receipt.undo, "agentd reset agent --undo");
    // Undo and redo can be repeated any number of times.
    let second = OpId::from_bytes([2; 16]);
    let from = journal.events.len();
    start(&mut journal, numbered(2, ResetTo::Undo));
    step_until(&mut journal, Next::Nothing);
    let state = journal.state();
    assert_eq!(state.tree.current(), Some(old));
    assert_eq!(state.inbox.waiting().len(), 1);
    let receipt = super::receipt(&state, second, &journal.events[from..]).unwrap();
    assert_eq!(receipt.undo, "agentd reset agent --redo");
    start(&mut journal, numbered(3, ResetTo::Redo));
    step_until(&mut journal, Next::Nothing);
    assert_eq!(journal.state().tree.current(), Some(NEW));
    assert_eq!(journal.state().anomalies, 0);
}

#[test]
fn the_steps_come_in_order_and_an_op_is_good_for_once() {
    let mut journal = Journal::new();
    let old = journal.conversation;
    assert_eq!(next(&journal.state()), Next::Nothing);
    let Begin::Append((_, body)) = begin(&journal.state(), order(ResetTo::Fresh)).unwrap() else {
        panic!("it may begin");
    };
    journal.push(body);
    let again = begin(&journal.state(), order(ResetTo::Fresh)).unwrap();
    assert_eq!(again, Begin::UnderWay);
    assert_eq!(next(&journal.state()), Next::Hooks(ResetStep::PreReset));
    for (step, then) in [
        (ResetStep::PreReset, Next::Stop),
        (ResetStep::Stop, Next::Hooks(ResetStep::SessionEnd)),
        (ResetStep::SessionEnd, Next::Switch),
    ] {
        let (_, body) = stepped(&journal.state(), step).unwrap();
        journal.push(body);
        assert_eq!(next(&journal.state()), then);
    }
    let gone = withdraw(&journal.state(), ResetRefusal::StillActive);
    assert_eq!(gone, None, "there is no way back any more");
    let new = NEW;
    let window = journal.window();
    for (conversation, body) in switch(&journal.state(), &window, &window, new).unwrap() {
        journal.conversation = conversation;
        journal.push(body);
    }
    assert_eq!(journal.state().tree.current(), Some(new));
    let (_, body) = stepped(&journal.state(), ResetStep::SessionStart).unwrap();
    journal.push(body);
    assert_eq!(next(&journal.state()), Next::End);
    let (_, body) = end(&journal.state()).unwrap();
    journal.push(body);
    let state = journal.state();
    assert_eq!((next(&state), state.anomalies), (Next::Nothing, 0));
    let receipt = receipt(&state, order(ResetTo::Fresh).op, &journal.events).unwrap();
    assert_eq!((receipt.old, receipt.new), (old, new));
    let again = begin(&state, order(ResetTo::Fresh)).unwrap();
    assert!(matches!(again, Begin::Over(Outcome::Ended { .. })));
}

#[test]
fn an_op_that_was_used_for_something_else_is_refused() {
    let mut journal = Journal::new();
    start(&mut journal, order(ResetTo::Fresh));
    let op = order(ResetTo::Fresh).op;
    let other = Err(Refused::OtherOp(Box::new(op)));
    assert_eq!(begin(&journal.state(), order(ResetTo::Undo)), other);
    step_until(&mut journal, Next::Nothing);
    assert_eq!(begin(&journal.state(), order(ResetTo::Undo)), other);
    let state = journal.state();
    assert_eq!(state.resets.asked_for(op), Some(&ResetTo::Fresh));
    let made = state.made(op, crate::event::OpVerb::Rename, "");
    assert_eq!(made, Err(Refused::OtherOp(Box::new(op))));
    // An op of another change is not taken for a reset either.
    let renamed = OpId::from_bytes([3; 16]);
    journal.push(crate::event::Operation {
        op: renamed,
        verb: crate::event::OpVerb::Rename,
        digest: "a".to_owned(),
        receipt: crate::event::OpReceipt::None,
    });
    let state = journal.state();
    let refused = begin(&state, numbered(3, ResetTo::Fresh));
    assert_eq!(refused, Err(Refused::OtherOp(Box::new(renamed))));
    let made = |digest| state.made(renamed, crate::event::OpVerb::Rename, digest);
    assert!(made("a").unwrap().is_some());
    assert_eq!(made("b"), Err(Refused::OtherOp(Box::new(renamed))));
    let unknown = OpId::from_bytes([4; 16]);
    assert_eq!(
        state.made(unknown, crate::event::OpVerb::Stop, ""),
        Ok(None)
    );
}
