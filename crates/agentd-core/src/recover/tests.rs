//! What recovery writes. The tests of the turn machine cover how the turn then continues.

use super::*;
use crate::draft::{Change, Delta};
use crate::event::{ApprovalAnswered, ApprovalRequested, Decision, SpecSet, ToolStarted};
use crate::finished::Finished;
use crate::fixture::{self, Journal, approval, call, request};
use crate::id::Incarnation;
use crate::message::Wire;
use crate::spec::AgentSpec;
use crate::usage::MicroUsd;
use std::collections::BTreeMap;

fn facts(after: After) -> Facts {
    Facts {
        incarnation: Incarnation(2),
        after,
        draft: Reply::default(),
        calls: BTreeMap::new(),
        price: None,
        full_access: false,
    }
}

fn draft(changes: impl IntoIterator<Item = Change>) -> Reply {
    let mut reply = Reply::default();
    for (part, change) in changes.into_iter().enumerate() {
        reply.apply(Delta { part, change });
    }
    reply
}

fn says(text: &str) -> Change {
    let text = text.to_owned();
    Change::Text { text }
}

fn run(journal: &Journal, facts: &Facts) -> Recovery {
    let (agent, window) = (journal.state(), journal.window());
    recover(&agent, &window, facts, Timestamp::from_millis(7))
}

fn kinds(recovery: &Recovery) -> Vec<&'static str> {
    recovery
        .events
        .iter()
        .map(|e| e.body.kind().name())
        .collect()
}

fn append(journal: &mut Journal, recovery: Recovery) {
    for event in recovery.events {
        journal.place(event);
    }
}

fn notice_of(recovery: &Recovery) -> String {
    let texts: Vec<&str> = recovery
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Notice(notice) => Some(notice.text.as_str()),
            _ => None,
        })
        .collect();
    let [text] = texts.try_into().expect("one notice");
    text.to_owned()
}

fn outcomes(recovery: &Recovery) -> Vec<(&str, CallOutcome)> {
    let ended = recovery
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolEnded(ended) => Some((ended.call.as_str(), ended.outcome)),
            _ => None,
        });
    ended.collect()
}

/// In a turn whose prompt has been taken.
fn in_turn() -> Journal {
    let mut journal = Journal::new();
    journal.start_turn(1);
    journal.prompt(1, "hi");
    journal
}

fn started(journal: &mut Journal, id: &str) {
    journal.push(ToolStarted {
        call: CallId::new(id),
        tool: "shell".to_owned(),
        task: None,
        boot: None,
        change: None,
        patched: Vec::new(),
        may_change_files: false,
    });
}

fn with_on_crash(on_crash: OnCrash) -> Journal {
    let mut journal = Journal::new();
    let spec = AgentSpec {
        on_crash,
        ..AgentSpec::default()
    };
    let spec = Box::new(spec);
    journal.push(SpecSet { spec });
    journal.start_turn(1);
    journal.prompt(1, "hi");
    journal
}

#[test]
fn an_idle_agent_has_a_new_incarnation_and_nothing_else() {
    let mut journal = in_turn();
    journal.reply(vec![Block::text("hello")]);
    journal.end_turn(TurnStatus::Completed);
    let recovery = run(&journal, &facts(After::Crash));
    assert_eq!(kinds(&recovery), ["incarnation_began"]);
    assert_eq!(recovery.ends, None);
    let event = &recovery.events[0];
    assert_eq!((event.turn, event.at), (None, Timestamp::from_millis(7)));
}

#[test]
fn an_agent_without_a_conversation_has_nowhere_to_write() {
    let recovery = run(&Journal::empty(), &facts(After::Start));
    assert_eq!(recovery.events, []);
}

/// Recovery turns the draft into an interrupted message.
#[test]
fn the_draft_becomes_one_interrupted_message_and_the_request_is_charged() {
    let mut journal = in_turn();
    journal.send(request(1, 1), Purpose::Answer);
    let mut facts = facts(After::Crash);
    facts.draft = draft([says("It is "), says("half past")]);
    facts.price = Some(Price {
        input: MicroUsd(1_000_000),
        output: MicroUsd(1_000_000),
        cache_read: MicroUsd(0),
        cache_write: MicroUsd(0),
        long_context: None,
    });
    let recovery = run(&journal, &facts);
    assert_eq!(recovery.ends, Some(request(1, 1)));
    let expected = ["incarnation_began", "request_ended", "message", "notice"];
    assert_eq!(kinds(&recovery), expected);
    let Body::RequestEnded(ended) = &recovery.events[1].body else {
        panic!("{recovery:?}");
    };
    assert_eq!(ended.outcome, RequestOutcome::Lost);
    assert_eq!(
        (ended.usage.input_tokens, ended.usage.output_tokens),
        (100, 5)
    );
    assert!(ended.estimated);
    assert_eq!(ended.cost, Some(MicroUsd(105)));
    let Body::MessageAdded(message) = &recovery.events[2].body else {
        panic!("{recovery:?}");
    };
    assert_eq!(message.status, MessageStatus::Interrupted);
    assert_eq!(
        message.blocks,
        [Block::text("It is "), Block::text("half past")]
    );
}

#[test]
fn an_empty_draft_becomes_nothing_and_nothing_is_told() {
    let mut journal = in_turn();
    journal.send(request(1, 1), Purpose::Answer);
    let recovery = run(&journal, &facts(After::Crash));
    assert_eq!(kinds(&recovery), ["incarnation_began", "request_ended"]);
}

#[test]
fn a_call_that_was_being_written_never_runs_and_the_model_is_told() {
    let mut journal = in_turn();
    journal.send(request(1, 1), Purpose::Answer);
    let mut facts = facts(After::Crash);
    let (id, name) = (CallId::new("x"), "shell".to_owned());
    facts.draft = draft([says("I run"), Change::Call { id, name }]);
    let recovery = run(&journal, &facts);
    assert!(notice_of(&recovery).contains("was cut off and did not run"));
    append(&mut journal, recovery);
    assert!(!journal.window().has_open_calls());
    let whole = Change::Whole { block: call("x") };
    facts.draft = draft([says("I run"), whole]);
    let mut journal = in_turn();
    journal.send(request(1, 1), Purpose::Answer);
    let recovery = run(&journal, &facts);
    append(&mut journal, recovery);
    assert!(!journal.window().has_open_calls(), "in one piece as well");
}

#[test]
fn half_a_summary_is_kept_and_never_sent() {
    let mut journal = in_turn();
    journal.send(request(1, 1), Purpose::Compact);
    let mut facts = facts(After::Crash);
    facts.draft = draft([says("So far")]);
    let recovery = run(&journal, &facts);
    let expected = ["incarnation_began", "request_ended", "message"];
    assert_eq!(kinds(&recovery), expected);
    let Body::MessageAdded(message) = &recovery.events[2].body else {
        panic!("{recovery:?}");
    };
    assert_eq!(message.status, MessageStatus::Superseded);
}

/// The result of a call that was not started says so; a call whose outcome is unknown gets the result *unknown*.
#[test]
fn each_open_call_is_told_as_it_is() {
    let mut journal = in_turn();
    journal.reply(vec![call("a"), call("b"), call("c"), call("d"), call("e")]);
    for id in ["a", "b", "c", "d"] {
        started(&mut journal, id);
    }
    let mut facts = facts(After::Crash);
    let outcome = CallOutcome::Error;
    let blocks = vec![Block::text("exit 1")];
    let known = [
        ("a", CallFact::Ended(Finished::new(outcome, blocks))),
        ("b", CallFact::NotStarted),
        ("c", CallFact::Unknown),
        // `d` is not listed; `e` never started, whatever its fact says.
        ("e", CallFact::Running),
    ];
    for (id, fact) in known {
        facts.calls.insert(CallId::new(id), fact);
    }
    let recovery = run(&journal, &facts);
    let expected = [
        ("a", CallOutcome::Error),
        ("b", CallOutcome::NotStarted),
        ("c", CallOutcome::Unknown),
        ("d", CallOutcome::Unknown),
        ("e", CallOutcome::NotStarted),
    ];
    assert_eq!(outcomes(&recovery), expected);
    let notice = notice_of(&recovery);
    assert!(notice.contains("did not run: `b`, `e`."), "{notice}");
    assert!(notice.contains("unknown; check before you repeat one: `c`, `d`."));
    assert!(recovery.running.is_empty());
}

#[test]
fn a_call_whose_process_runs_is_left_alone() {
    let mut journal = in_turn();
    journal.reply(vec![call("a")]);
    started(&mut journal, "a");
    let mut facts = facts(After::Crash);
    facts.calls.insert(CallId::new("a"), CallFact::Running);
    let recovery = run(&journal, &facts);
    assert_eq!(recovery.running, [CallId::new("a")]);
    assert_eq!(kinds(&recovery), ["incarnation_began"]);
}

#[test]
fn a_call_that_waits_for_approval_is_left_alone_and_so_is_an_approved_one() {
    let mut journal = in_turn();
    journal.reply(vec![call("a"), call("b"), call("c")]);
    for (n, id) in [(1, "a"), (2, "b")] {
        let (approval, call) = (approval(n), CallId::new(id));
        journal.push(ApprovalRequested::new(approval, call));
    }
    let (approval, decision) = (approval(2), Decision::Allow);
    journal.push(ApprovalAnswered::new(approval, decision));
    let recovery = run(&journal, &facts(After::Crash));
    assert_eq!(outcomes(&recovery), [("c", CallOutcome::NotStarted)]);
}

/// The user changes a setting while a call of several runs: the others are run by the new process.
#[test]
fn a_planned_restart_leaves_calls_that_have_not_started() {
    let mut journal = in_turn();
    journal.reply(vec![call("a"), call("b")]);
    started(&mut journal, "a");
    let mut facts = facts(After::Restart);
    facts.calls.insert(CallId::new("a"), CallFact::NotStarted);
    let recovery = run(&journal, &facts);
    assert_eq!(outcomes(&recovery), [("a", CallOutcome::NotStarted)]);
}

/// After recovery, repair finds nothing to do, and a second recovery changes nothing.
#[test]
fn once_recovered_there_is_nothing_left_to_recover_or_to_repair() {
    let mut journal = in_turn();
    journal.reply(vec![Block::text("I look"), call("a"), call("b")]);
    started(&mut journal, "a");
    journal.result("b", "early");
    let recovery = run(&journal, &facts(After::Crash));
    append(&mut journal, recovery);
    let again = run(&journal, &facts(After::Restart));
    assert_eq!(kinds(&again), ["incarnation_began"]);
    for wire in Wire::ALL {
        let context = fixture::context(wire);
        let request = crate::request::answer(&journal.window(), &context).unwrap();
        assert_eq!(request.repairs, []);
    }
    assert_eq!(journal.state().anomalies, 0);
}

#[test]
fn a_restart_is_told_as_one_and_never_counts() {
    let mut journal = in_turn();
    for n in 2..9 {
        let id = format!("call{n}");
        journal.reply(vec![call(&id)]);
        started(&mut journal, &id);
        let mut facts = facts(After::Restart);
        facts.incarnation = Incarnation(n);
        let recovery = run(&journal, &facts);
        let restarted = |event: &NewEvent| matches!(&event.body, Body::Notice(notice) if notice.cause == NoticeCause::Restarted);
        assert!(recovery.events.iter().any(restarted));
        append(&mut journal, recovery);
    }
    assert_eq!(journal.state().turn.unwrap().crashes, 0);
}

/// A turn has three attempts in total without progress.
#[test]
fn the_third_crash_in_a_row_is_the_last() {
    let mut journal = in_turn();
    for _ in 0..2 {
        let recovery = run(&journal, &facts(After::Crash));
        assert_eq!(kinds(&recovery), ["incarnation_began"]);
        append(&mut journal, recovery);
    }
    let recovery = run(&journal, &facts(After::Crash));
    let expected = ["incarnation_began", "turn_ended", "checkpoint_set"];
    assert_eq!(kinds(&recovery), expected);
    append(&mut journal, recovery);
    let last = journal.state().last_turn.unwrap();
    assert_eq!(last.status, TurnStatus::Lost);
}

#[test]
fn on_crash_wait_pauses_once() {
    let mut journal = with_on_crash(OnCrash::Wait);
    let recovery = run(&journal, &facts(After::Crash));
    assert_eq!(kinds(&recovery), ["incarnation_began", "turn_paused"]);
    append(&mut journal, recovery);
    let recovery = run(&journal, &facts(After::Crash));
    assert_eq!(kinds(&recovery), ["incarnation_began"]);
}

#[test]
fn on_crash_continue_does_not_pause() {
    let journal = with_on_crash(OnCrash::Continue);
    let recovery = run(&journal, &facts(After::Crash));
    assert_eq!(kinds(&recovery), ["incarnation_began"]);
}

#[test]
fn what_recovery_writes_belongs_to_the_turn_and_its_conversation() {
    let mut journal = in_turn();
    journal.reply(vec![call("a")]);
    let recovery = run(&journal, &facts(After::Crash));
    for event in &recovery.events {
        assert_eq!(event.turn, Some(fixture::turn(1)));
        assert_eq!(event.conversation, journal.conversation);
    }
}

#[test]
fn a_result_is_never_empty() {
    let call = CallId::new("a");
    let [_, body] = result(&call, CallOutcome::Ok, vec![Block::text(" ")]);
    let Body::ResultAdded(added) = body else {
        panic!("{body:?}");
    };
    assert_eq!(added.blocks, [Block::text("(no output)")]);
}

/// A branch from the middle of a turn has neither its calls nor its approvals.
#[test]
fn a_branch_closes_the_calls_it_inherits() {
    let mut journal = in_turn();
    journal.reply(vec![call("a"), call("b")]);
    journal.result("a", "done");
    let bodies = close_branch(&journal.window());
    let [Body::ResultAdded(result), Body::Notice(notice)] = bodies.as_slice() else {
        panic!("{bodies:?}");
    };
    assert_eq!(result.call, CallId::new("b"));
    assert_eq!(notice.cause, NoticeCause::Branched);
    journal.result("b", "done");
    assert_eq!(close_branch(&journal.window()), []);
}
