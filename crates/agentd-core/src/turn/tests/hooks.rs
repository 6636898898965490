//! Hooks in the course of a turn: before a prompt is taken, before a turn ends, and around a compaction.

use super::harness::{Rig, says};
use crate::event::*;
use crate::hook::{Decision, Verdict};
use crate::id::InvocationId;
use crate::turn::{Hooks, Input};

fn rig() -> Rig {
    Rig::with(|_, policy| policy.hooks = Hooks::Asked)
}

fn no(reason: &str) -> Verdict {
    Verdict {
        decision: Decision::Deny,
        reason: Some(reason.to_owned()),
        ..Verdict::default()
    }
}

pub(super) fn invoked_hook(seen: super::harness::Seen) -> InvocationId {
    let last = seen.0.last().expect("something is done").clone();
    let mut words = last.split(' ');
    assert_eq!(words.next(), Some("invoke"), "{last}");
    words.nth(1).expect("an id").parse().expect("an id")
}

#[test]
fn a_prompt_is_taken_once_the_hooks_have_heard_of_it() {
    let mut rig = rig();
    let id = invoked_hook(rig.prompt("hi"));
    assert!(rig.machine.agent().turn.is_none());
    // The next process invokes the same hooks.
    assert_eq!(invoked_hook(rig.crash()), id);
    let verdict = Verdict {
        context: Some("it is Monday".to_owned()),
        ..Verdict::default()
    };
    let answered = |verdict| Input::HooksAnswered { id, verdict };
    rig.give(answered(verdict)).does([
        "append turn_started, notice hook, prompts_taken",
        "append context",
        "append request_sent 3.1",
        "send 3.1",
    ]);
    let request = format!("{:?}", rig.sent[0].1);
    assert!(request.contains("it is Monday"), "{request}");
    // A repeated answer counts once.
    rig.give(answered(no("late"))).does([]);
}

#[test]
fn a_prompt_that_is_refused_is_never_seen_and_no_trouble() {
    let mut rig = rig();
    let id = invoked_hook(rig.prompt("the password is xyzzy"));
    let verdict = no("no passwords");
    rig.give(Input::HooksAnswered { id, verdict }).does([
        "append turn_started, prompt_blocked, note, turn_ended failed blocked, checkpoint_set",
    ]);
    let agent = rig.machine.agent();
    assert_eq!(agent.phase(), crate::state::Phase::Idle);
    assert_eq!(agent.inbox.waiting().len(), 0);
    let id = invoked_hook(rig.prompt("hi"));
    let verdict = Verdict::default();
    rig.give(Input::HooksAnswered { id, verdict })
        .ends_with("send 2.1");
    assert!(!format!("{:?}", rig.sent[0].1).contains("xyzzy"));
}

#[test]
fn a_turn_goes_on_where_a_hook_wants_it_to() {
    let mut rig = rig();
    let id = invoked_hook(rig.prompt("hi"));
    let verdict = Verdict::default();
    rig.give(Input::HooksAnswered { id, verdict });
    let id = invoked_hook(rig.on(says("done")));
    let verdict = no("the tests fail");
    rig.give(Input::HooksAnswered { id, verdict }).does([
        "append notice hook",
        "append request_sent 2.2",
        "send 2.2",
    ]);
    let again = invoked_hook(rig.on(says("now they work")));
    assert_ne!(again, id);
    let verdict = Verdict::default();
    let id = again;
    rig.give(Input::HooksAnswered { id, verdict })
        .does(["append turn_ended completed, checkpoint_set"]);
}

#[test]
fn an_interrupt_does_not_wait_for_hooks() {
    let mut rig = rig();
    let id = invoked_hook(rig.prompt("hi"));
    let verdict = Verdict::default();
    rig.give(Input::HooksAnswered { id, verdict });
    let id = invoked_hook(rig.on(says("done")));
    rig.give(Input::Interrupt)
        .does(["append notice interrupted, turn_ended interrupted, checkpoint_set"]);
    let verdict = no("too late");
    rig.give(Input::HooksAnswered { id, verdict }).does([]);
}

/// Its hooks have not answered, so the model never sees it. The hooks of the next prompt run as usual.
#[test]
fn a_prompt_that_is_interrupted_while_hooks_are_asked_is_over() {
    let mut rig = rig();
    let id = invoked_hook(rig.prompt("the password is xyzzy"));
    rig.give(Input::Interrupt)
        .does(["append turn_started, prompt_blocked, turn_ended interrupted, checkpoint_set"]);
    let verdict = Verdict::default();
    rig.give(Input::HooksAnswered { id, verdict }).does([]);
    let id = invoked_hook(rig.prompt("hi"));
    let verdict = Verdict::default();
    rig.give(Input::HooksAnswered { id, verdict })
        .ends_with("send 2.1");
    assert!(!format!("{:?}", rig.sent[0].1).contains("xyzzy"));
    // Without an invocation or a turn there is nothing to interrupt.
    let mut idle = self::rig();
    idle.give(Input::Interrupt).does([]);
    invoked_hook(idle.prompt("hi"));
}

/// A stop or a reset does not drop the prompt: it stays queued, or is set aside.
#[test]
fn a_stop_leaves_the_prompt_that_hooks_were_asked_about() {
    let mut rig = rig();
    invoked_hook(rig.prompt("hi"));
    rig.write(vec![AgentStopped {}.into()]).does([]);
    rig.give(Input::Stop).does(["stopped"]);
    assert_eq!(rig.machine.agent().inbox.waiting().len(), 1);
}

#[test]
fn a_hook_of_a_call_can_end_the_turn() {
    let mut rig = Rig::called(&["shell"]);
    rig.give(Input::Halt("enough".to_owned())).does([
        "append tool_ended call_1_1_0 interrupted, result, notice hook, turn_ended interrupted, checkpoint_set",
    ]);
    let notice = rig
        .journal
        .events
        .iter()
        .find_map(|event| match &event.body {
            Body::Notice(notice) => Some(notice.text.clone()),
            _ => None,
        });
    assert!(notice.unwrap().contains("enough"));
}

/// If a process dies between the summary and its hooks, the next process runs them. Their context is added for the
/// model once.
#[test]
fn hooks_hear_of_a_summary_also_after_a_crash() {
    let mut rig = rig();
    let heard = |id: InvocationId| Input::HooksAnswered {
        id,
        verdict: Verdict::default(),
    };
    let asked = invoked_hook(rig.prompt("hi"));
    rig.give(heard(asked)).ends_with("send 2.1");
    let stop = invoked_hook(rig.on(says("a long story")));
    rig.give(heard(stop));
    let op = crate::id::OpId::from_bytes([4; 16]);
    let before = invoked_hook(rig.write(vec![CompactionAsked { op }.into()]));
    rig.give(heard(before)).ends_with("send 2.2");
    let after = invoked_hook(rig.on(says("short")));
    assert_eq!(invoked_hook(rig.crash()), after, "the same is asked again");
    let start = invoked_hook(rig.give(heard(after)));
    assert_eq!(invoked_hook(rig.crash()), after);
    assert_eq!(invoked_hook(rig.give(heard(after))), start);
    let verdict = Verdict {
        context: Some("the code word is swordfish".to_owned()),
        ..Verdict::default()
    };
    rig.give(Input::HooksAnswered { id: start, verdict }).does([
        "append notice hook",
        "append turn_ended completed, checkpoint_set",
    ]);
}

/// It died right after it had added the hooks' context.
#[test]
fn what_hooks_say_to_a_summary_is_told_once() {
    let mut rig = rig();
    let heard = |id: InvocationId| Input::HooksAnswered {
        id,
        verdict: Verdict::default(),
    };
    let asked = invoked_hook(rig.prompt("hi"));
    rig.give(heard(asked));
    let stop = invoked_hook(rig.on(says("a long story")));
    rig.give(heard(stop));
    let op = crate::id::OpId::from_bytes([4; 16]);
    let before = invoked_hook(rig.write(vec![CompactionAsked { op }.into()]));
    rig.give(heard(before));
    let after = invoked_hook(rig.on(says("short")));
    let start = invoked_hook(rig.give(heard(after)));
    let text = "the code word is swordfish".to_owned();
    let cause = NoticeCause::Hook;
    rig.journal.turn = rig.machine.agent().turn.as_ref().map(|turn| turn.id);
    rig.journal.push(Notice {
        cause,
        text: text.clone(),
    });
    assert_eq!(invoked_hook(rig.crash()), after);
    assert_eq!(invoked_hook(rig.give(heard(after))), start);
    let verdict = Verdict {
        context: Some(text),
        ..Verdict::default()
    };
    rig.give(Input::HooksAnswered { id: start, verdict })
        .does(["append turn_ended completed, checkpoint_set"]);
}

/// A file with hooks that comes during the turn counts from the next prompt on.
#[test]
fn without_any_hook_the_end_of_the_turn_is_in_the_commit_of_the_reply() {
    let mut rig = rig();
    let id = invoked_hook(rig.prompt("hi"));
    let verdict = Verdict {
        hookless: true,
        ..Verdict::default()
    };
    rig.give(Input::HooksAnswered { id, verdict })
        .ends_with("send 2.1");
    rig.on(says("done")).does([
        "append request_ended completed, message complete, turn_ended completed, checkpoint_set (ends 2.1)",
    ]);
    let (id, verdict) = (invoked_hook(rig.prompt("again")), Verdict::default());
    rig.give(Input::HooksAnswered { id, verdict })
        .ends_with("send 2.2");
    invoked_hook(rig.on(says("done")));
}
