//! A question of a running call: durable before it is shown, answered once, and gone with its call.

use super::harness::{Rig, allowed, finishes};
use crate::event::{ApprovalAnswered, Asks, Decision, QuestionAnswered};
use crate::id::{ApprovalId, CallId};
use crate::mcp::Question;
use crate::message::CallOutcome;
use crate::recover::CallFact;
use crate::state::Phase;
use crate::turn::Input;
use serde_json::{Map, Value};

const A: &str = "call_1_1_0";

fn asks(rig: &mut Rig) -> super::harness::Seen {
    rig.give(Input::ToolAsks {
        call: CallId::new(A),
        question: Question {
            server: "fs".to_owned(),
            message: "Where?".to_owned(),
            form: None,
            url: None,
        },
    })
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
    asks(&mut rig).does(["append question_asked, approval_requested call_1_1_0"]);
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
