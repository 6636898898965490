//! A new process determines the outcome of the commands of the previous one.

use crate::fixture::{Fixture, background, shell, words};
use agentd_core::id::BootId;
use agentd_core::message::CallOutcome;
use agentd_core::recover::CallFact;
use agentd_core::turn::Finished;
use std::fs;

fn ended(fact: CallFact) -> Finished {
    match fact {
        CallFact::Ended(finished) => finished,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_runs_is_waited_for() {
    let fixture = Fixture::new();
    let call = shell("echo a; : >ready; while ! [ -e go ]; do sleep 0.01; done; echo b; exit 2");
    let started = fixture.started(&call).await;
    let begun = fixture.begin(call.clone(), started.clone());
    fixture.wait_for("ready").await;
    begun.abandon();
    assert_eq!(fixture.find(&call, &started).await, CallFact::Running);
    let resumed = fixture.resume(call.clone(), started.clone());
    fs::write(fixture.path("go"), "").unwrap();
    let finished = resumed.finished().await;
    assert_eq!(finished.outcome, CallOutcome::Error);
    assert_eq!(words(&finished), "a\nb\nexit code 2");
    // Asked later it is the same, and so it is when it is taken up too late.
    assert_eq!(ended(fixture.find(&call, &started).await), finished);
    assert_eq!(fixture.resume(call, started).finished().await, finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_waited_for_again_can_be_interrupted() {
    let fixture = Fixture::new();
    let call = shell("echo a; : >ready; while :; do sleep 1; done");
    let started = fixture.started(&call).await;
    let begun = fixture.begin(call.clone(), started.clone());
    fixture.wait_for("ready").await;
    begun.abandon();
    let finished = fixture.resume(call, started).cancelled().await;
    assert_eq!(finished.outcome, CallOutcome::Interrupted);
    let text = words(&finished);
    assert!(
        text.starts_with("a\n") && text.contains("\ninterrupted: "),
        "{text}"
    );
    fixture.nobody_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_never_began_never_will() {
    let fixture = Fixture::new();
    let call = shell(": >ran");
    let started = fixture.started(&call).await;
    assert_eq!(fixture.find(&call, &started).await, CallFact::NotStarted);
    let finished = fixture
        .begin(call.clone(), started.clone())
        .finished()
        .await;
    assert_eq!(finished.outcome, CallOutcome::Error);
    assert_eq!(words(&finished), "The command did not start.");
    assert_eq!(fixture.find(&call, &started).await, CallFact::NotStarted);
    assert!(!fixture.path("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_another_start_of_the_system_only_an_end_is_known() {
    let fixture = Fixture::new();
    let call = shell("echo x");
    let mut started = fixture.started(&call).await;
    started.boot = Some(BootId::from_bytes([1; 16]));
    assert_eq!(fixture.find(&call, &started).await, CallFact::Unknown);

    let mut started = fixture.started(&call).await;
    let finished = fixture
        .begin(call.clone(), started.clone())
        .finished()
        .await;
    started.boot = Some(BootId::from_bytes([1; 16]));
    assert_eq!(ended(fixture.find(&call, &started).await), finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_call_had_started_whether_it_runs_or_not() {
    let fixture = Fixture::new();
    let call = background(": >ready; while ! [ -e go ]; do sleep 0.01; done");
    let started = fixture.started(&call).await;
    let finished = fixture
        .begin(call.clone(), started.clone())
        .finished()
        .await;
    assert!(finished.background.is_some());
    fixture.wait_for("ready").await;
    assert_eq!(ended(fixture.find(&call, &started).await), finished);
    let task = fixture.task(started.task.unwrap());
    fs::write(fixture.path("go"), "").unwrap();
    task.ended().await.unwrap();
    assert_eq!(ended(fixture.find(&call, &started).await), finished);
}
