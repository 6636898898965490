//! A question of a running call: durable before it is shown, answered once, and gone with its call.

use super::harness::{Rig, allowed, finishes};
use crate::event::{ApprovalAnswered, Asks, Body, Decision, QuestionAnswered};
use crate::id::{ApprovalId, CallId};
use crate::mcp::Question;
use crate::message::CallOutcome;
use crate::recover::CallFact;
use crate::state::Phase;
use crate::turn::Input;
use serde_json::{Map, Value};
use uuid::Uuid;

const A: &str = "call_1_1_0";

fn asks(rig: &mut Rig) -> super::harness::Seen {
    asks_as(rig, 1)
}

/// The question with the id that the driver gave it.
fn asks_as(rig: &mut Rig, n: u128) -> super::harness::Seen {
    rig.give(Input::ToolAsks {
        approval: id(n),
        call: CallId::new(A),
        question: Question {
            server: "fs".to_owned(),
            message: "Where?".to_owned(),
            form: None,
            url: None,
        },
    })
}

fn id(n: u128) -> ApprovalId {
    ApprovalId::new(Uuid::from_u128(n))
}

fn running() -> Rig {
    let mut rig = Rig::called(&["shell"]);
    rig.on(allowed(A)).ends_with("run call_1_1_0");
    rig
}

fn asked() -> Rig {
    let mut rig = running();
    asks(&mut rig).does(["append question_asked, approval_requested call_1_1_0"]);
    rig
}

fn waiting(rig: &Rig) -> ApprovalId {
    let (id, asked) = rig.machine.agent().approvals.waiting().next().unwrap();
    assert_eq!(asked.asks, Asks::Input);
    *id
}

#[test]
fn the_answer_goes_to_the_call_that_asked() {
    let mut rig = asked();
    assert_eq!(rig.machine.agent().phase(), Phase::AwaitingApproval);
    let approval = waiting(&rig);
    let content = Map::from_iter([("path".to_owned(), Value::from("/srv"))]);
    let answer = ApprovalAnswered::new(approval, Decision::Allow);
    rig.write(vec![
        QuestionAnswered { approval, content }.into(),
        answer.into(),
    ])
    .does([r#"answer call_1_1_0 {"path":"/srv"}"#]);
    assert_eq!(rig.machine.agent().phase(), Phase::Running);
    rig.on(finishes(A, CallOutcome::Ok)).ends_with("send 1.2");
    assert_eq!(rig.machine.agent().approvals.iter().count(), 0);
}

#[test]
fn a_declined_question_does_not_deny_the_call() {
    let mut rig = asked();
    rig.decide(Decision::Deny)
        .does(["answer call_1_1_0 declined"]);
    // Another one may follow.
    asks_as(&mut rig, 2).does(["append question_asked, approval_requested call_1_1_0"]);
    rig.decide(Decision::Allow).does(["answer call_1_1_0 {}"]);
    rig.on(finishes(A, CallOutcome::Ok)).ends_with("send 1.2");
}

/// Only the process that has the call can pass the answer on. If it dies, the next one withdraws the question.
#[test]
fn a_question_needs_the_process_of_its_call() {
    let mut rig = asked();
    assert!(rig.machine.agent().needs_process());
    rig.give(Input::Stop).does([]);
    rig.crash_in_call(A, CallFact::Unknown);
    assert_eq!(rig.machine.agent().approvals.iter().count(), 0);
}

#[test]
fn a_question_ends_with_its_call() {
    let mut rig = asked();
    rig.on(finishes(A, CallOutcome::Unknown))
        .ends_with("send 1.2");
    assert_eq!(rig.machine.agent().approvals.iter().count(), 0);
    // The call has ended: it asks nothing.
    asks(&mut rig).does([]);
}

fn answer(rig: &mut Rig, approval: ApprovalId, name: &str) -> super::harness::Seen {
    let content = Map::from_iter([("name".to_owned(), Value::from(name))]);
    let answer = ApprovalAnswered::new(approval, Decision::Allow);
    let content: Body = QuestionAnswered { approval, content }.into();
    rig.write(vec![content, answer.into()])
}

/// The answer to a question that its call no longer asks does not answer the next one.
#[test]
fn a_question_that_its_call_gives_up_is_withdrawn() {
    let mut rig = asked();
    rig.holding = true;
    rig.give(Input::ToolWithdraws { approval: id(1) })
        .does(["append approval_withdrawn"]);
    // The user has answered before that was in the journal.
    answer(&mut rig, id(1), "late").does([]);
    rig.holding = false;
    rig.commit().does([]);
    assert_eq!(rig.machine.agent().phase(), Phase::Running);
    asks_as(&mut rig, 2).does(["append question_asked, approval_requested call_1_1_0"]);
    assert_eq!(waiting(&rig), id(2));
    answer(&mut rig, id(2), "Ann").does([r#"answer call_1_1_0 {"name":"Ann"}"#]);
    // Neither is there twice.
    for approval in [id(1), id(2)] {
        rig.give(Input::ToolWithdraws { approval }).does([]);
    }
    rig.on(finishes(A, CallOutcome::Ok)).ends_with("send 1.2");
    assert_eq!(rig.machine.agent().approvals.iter().count(), 0);
}

/// A call that has two questions: each answer goes to its own.
#[test]
fn an_answer_belongs_to_its_question() {
    let mut rig = asked();
    asks_as(&mut rig, 2).does(["append question_asked, approval_requested call_1_1_0"]);
    let seen = rig.write(vec![ApprovalAnswered::new(id(1), Decision::Deny).into()]);
    seen.does(["answer call_1_1_0 declined"]);
    assert_eq!(rig.answered, [id(1)]);
    rig.write(vec![ApprovalAnswered::new(id(2), Decision::Allow).into()])
        .does(["answer call_1_1_0 {}"]);
    assert_eq!(rig.answered, [id(1), id(2)]);
}

/// The time that a turn waits for the user is not its own.
#[test]
fn the_clock_of_a_turn_stands_still_while_a_question_waits() {
    let mut rig = running();
    let waits = |rig: &Rig| {
        let turn = rig.machine.agent().turn.as_ref();
        turn.unwrap().waiting_since.is_some()
    };
    assert!(!waits(&rig));
    asks(&mut rig).does(["append question_asked, approval_requested call_1_1_0"]);
    assert!(waits(&rig));
    answer(&mut rig, id(1), "Ann").does([r#"answer call_1_1_0 {"name":"Ann"}"#]);
    assert!(!waits(&rig));
}
