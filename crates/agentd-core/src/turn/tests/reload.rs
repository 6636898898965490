//! The pointer moved: this machine is done, and returns which window the next one needs.

use super::harness::{Rig, says};
use crate::event::{
    BeginSource, ConversationBegan, ConversationSealed, Direction, Notice, NoticeCause,
    PointerMoved, SealReason,
};
use crate::fixture;
use crate::id::ConversationId;
use crate::turn::{Effect, Input};

fn begin(rig: &mut Rig, to: ConversationId) -> Vec<String> {
    let parent = Some(rig.journal.conversation);
    rig.journal.conversation = to;
    let began = ConversationBegan {
        source: BeginSource::Reset,
        parent,
        from: None,
        op: None,
    };
    rig.write(vec![began.into()]).0
}

#[test]
fn a_new_conversation_asks_for_its_window() {
    let mut rig = Rig::asked();
    rig.on(says("hello"));
    let reason = SealReason::Reset;
    let (last_request, op) = (None, None);
    let sealed = ConversationSealed {
        reason,
        last_request,
        op,
    };
    rig.write(vec![sealed.into()]).does([]);
    let seen = begin(&mut rig, fixture::conversation(2));
    let head = rig.journal.head();
    assert_eq!(seen, [format!("reload through {head}")]);
}

#[test]
fn undo_asks_for_the_old_one() {
    let mut rig = Rig::new();
    let old = rig.journal.conversation;
    begin(&mut rig, fixture::conversation(2));
    rig.take_over(crate::event::After::Start, |_| {}).does([]);
    rig.journal.conversation = old;
    let (to, direction, op) = (old, Direction::Undo, None);
    let moved = rig.journal.push(PointerMoved { to, direction, op });
    let mut machine = rig.machine.clone();
    let mut new_id = || unreachable!("nothing new begins");
    let mut moment = crate::turn::Moment {
        at: rig.journal.at,
        new_id: &mut new_id,
    };
    let effects = machine.step(&mut moment, Input::Event(moved.clone()));
    let (conversation, through) = (old, moved.seq);
    assert_eq!(
        effects,
        [Effect::Reload {
            conversation,
            through
        }]
    );
}

/// The rest of the append that moved it also belongs to the next window.
#[test]
fn what_comes_after_it_moves_the_mark_and_starts_nothing() {
    let mut rig = Rig::new();
    begin(&mut rig, fixture::conversation(2));
    let (cause, text) = (NoticeCause::Hook, "welcome".to_owned());
    let seen = rig.write(vec![Notice { cause, text }.into()]).0;
    assert_eq!(seen, [format!("reload through {}", rig.journal.head())]);
    let seen = rig.prompt("hi").0;
    assert!(
        seen.iter().all(|line| line.starts_with("reload")),
        "{seen:?}"
    );
    assert_eq!(rig.sent.len(), 0);
}

#[test]
fn the_next_machine_answers_in_the_new_conversation_alone() {
    let mut rig = Rig::asked();
    rig.on(says("hello"));
    begin(&mut rig, fixture::conversation(2));
    rig.take_over(crate::event::After::Start, |_| {}).does([]);
    rig.prompt("fresh").ends_with("send 2.1");
    assert_eq!(
        rig.sent[1].1.messages.len(),
        1,
        "claude-code#80431: no old message"
    );
}

#[test]
fn another_agent_s_words_are_none_of_its_business() {
    let mut rig = Rig::asked();
    let before = rig.machine.window().clone();
    let here = rig.journal.conversation;
    rig.journal.conversation = fixture::conversation(9);
    let (cause, text) = (NoticeCause::TaskEnded, "elsewhere".to_owned());
    rig.write(vec![Notice { cause, text }.into()]).does([]);
    rig.journal.conversation = here;
    assert_eq!(*rig.machine.window(), before);
}
