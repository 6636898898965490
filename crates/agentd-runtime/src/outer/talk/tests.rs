//! What a hostile or careless child says stays bounded, and calls are recorded with what is known of them.

use super::taken::{CUT, MOST_LATE, MOST_TEXT, REPORTS_PER_CALL};
use super::*;
use serde_json::{Map, Value, json};
use std::time::Duration;

fn begun() -> Talk {
    let talk = Talk::default();
    assert!(talk.begin(1) == Begun::Yes);
    talk
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn call(id: &str, arguments: &Value, is_pending: bool) -> ChildEvent {
    ChildEvent::Call {
        id: id.to_owned(),
        name: "execute".to_owned(),
        arguments: map(arguments),
        is_pending,
    }
}

fn asks(id: &str, arguments: &Value) -> ChildEvent {
    ChildEvent::Asks {
        id: id.to_owned(),
        name: "execute".to_owned(),
        arguments: map(arguments),
        question: format!("about {id}"),
    }
}

async fn reported(talk: &Talk) -> Reported {
    match talk.next().await {
        Some(ChildEvent::Call {
            id,
            name,
            arguments,
            is_pending,
        }) => Reported {
            id,
            name,
            arguments,
            is_pending,
            question: None,
        },
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn one_long_text_is_cut_and_many_small_ones_are_one() {
    let talk = begun();
    for _ in 0..1000 {
        assert_eq!(talk.push(ChildEvent::Text("ä".to_owned())), Pushed::Fits);
    }
    assert_eq!(talk.lock().said.iter().count(), 1);
    let long = ChildEvent::Text("ä".repeat(MOST_TEXT));
    assert_eq!(talk.push(long), Pushed::Fits);
    let more = ChildEvent::Text("more".to_owned());
    assert_eq!(talk.push(more), Pushed::Fits);
    talk.end_turn();
    let mut kept = String::new();
    while let Some(ChildEvent::Text(text)) = talk.next().await {
        kept.push_str(&text);
    }
    let text = kept.strip_suffix(CUT).unwrap();
    assert!(text.len() <= MOST_TEXT && text.len() > MOST_TEXT / 2);
}

#[test]
fn a_flood_of_reports_is_too_much_and_the_next_turn_begins_anew() {
    let talk = begun();
    let began = || ChildEvent::CallBegan { id: "c".to_owned() };
    let most = Bounds::default().calls * REPORTS_PER_CALL;
    let kept = (0..=most).filter(|_| talk.push(began()) == Pushed::Fits);
    assert_eq!(kept.count(), most);
    talk.end_turn();
    assert!(talk.begin(2) == Begun::Yes);
    assert_eq!(talk.push(began()), Pushed::Fits);
}

#[test]
fn the_settings_bound_calls_and_bytes() {
    let bounds = Bounds {
        calls: 2,
        bytes: 2000,
    };
    let talk = Talk::new(bounds);
    assert!(talk.begin(1) == Begun::Yes);
    for id in ["a", "b"] {
        assert_eq!(talk.push(call(id, &json!({}), false)), Pushed::Fits);
    }
    assert_eq!(talk.push(call("c", &json!({}), false)), Pushed::TooMuch);
    assert!(talk.begin(2) == Begun::Yes);
    let text = |length: usize| ChildEvent::Text("x".repeat(length));
    assert_eq!(talk.push(text(1500)), Pushed::Fits);
    assert_eq!(talk.push(text(1500)), Pushed::TooMuch);
}

/// Regression: thousands of reports that were waiting when the program was killed held the turn for minutes.
#[tokio::test]
async fn what_waits_when_the_child_ends_is_bounded() {
    let talk = begun();
    talk.open_call("open", None);
    for n in 0..1000 {
        assert_eq!(
            talk.push(call(&format!("c{n}"), &json!({}), false)),
            Pushed::Fits
        );
    }
    let ended = |id: &str| ChildEvent::CallEnded {
        id: id.to_owned(),
        outcome: agentd_core::message::CallOutcome::Ok,
        blocks: Vec::new(),
    };
    assert_eq!(talk.push(ended("open")), Pushed::Fits);
    let over = ChildEvent::Over(Over::Failed("it was killed".to_owned()));
    assert_eq!(talk.push(over.clone()), Pushed::Fits);
    assert!(matches!(talk.call_ended().await, Next::Ended(_)));
    let mut left = Vec::new();
    while let Some(said) = talk.next().await {
        left.push(said);
    }
    assert_eq!(left.len(), MOST_LATE + 2);
    let told = &left[MOST_LATE];
    assert!(
        matches!(told, ChildEvent::Text(text) if text.contains("900 reports")),
        "{told:?}"
    );
    assert_eq!(left.last(), Some(&over));
}

/// The driver waits for something else, such as the end of a call. Without an end of that wait, the child would never be read
/// again.
#[tokio::test]
async fn a_full_queue_makes_the_child_wait_and_the_driver_go_on() {
    let talk = begun();
    talk.open_call("open", None);
    let large = |n: usize| call(&format!("c{n}"), &json!({"a": "x".repeat(100_000)}), false);
    let mut said = 0;
    while tokio::time::timeout(Duration::ZERO, talk.until_room())
        .await
        .is_ok()
    {
        assert_eq!(talk.push(large(said)), Pushed::Fits);
        said += 1;
        assert!(said < 20, "the child never waits");
    }
    assert!(matches!(talk.call_ended().await, Next::Full));
    let mut pending = Reported {
        is_pending: true,
        ..reported(&talk).await
    };
    assert_eq!(talk.push(large(said)), Pushed::Fits);
    assert_eq!(talk.complete(&mut pending).await, Completed::Record);
    while talk.lock().said.is_full() {
        reported(&talk).await;
    }
    talk.until_room().await;
    // A cancelled child is read to its end, and what is too much is dropped.
    assert!(talk.give_up(1));
    for n in 0..100 {
        talk.until_room().await;
        assert_eq!(talk.push(large(n)), Pushed::Fits);
    }
    assert!(talk.lock().said.bytes() < 2 * 1024 * 1024);
    assert_eq!(talk.push(ChildEvent::Over(Over::Interrupted)), Pushed::Fits);
    assert!(!talk.is_in_turn());
}

#[test]
fn a_cancelled_turn_does_not_begin_and_is_not_the_next_one() {
    let talk = begun();
    assert!(talk.is_in(1) && !talk.is_in(2));
    talk.end_turn();
    assert!(!talk.give_up(2));
    assert!(talk.begin(2) == Begun::No);
    assert!(talk.begin(3) == Begun::Yes);
    assert!(talk.is_in(3) && !talk.is_in(2));
}

#[tokio::test]
async fn a_call_is_recorded_with_the_arguments_that_the_child_asks_about() {
    let talk = begun();
    let said = [
        call("c", &json!({"cwd": "/"}), true),
        ChildEvent::CallChanged {
            id: "c".to_owned(),
            name: "execute".to_owned(),
            arguments: map(&json!({"cwd": "/", "command": "ls"})),
        },
        ChildEvent::CallBegan { id: "c".to_owned() },
        asks("c", &json!({"command": "rm -r /"})),
    ];
    for said in said {
        assert_eq!(talk.push(said), Pushed::Fits);
    }
    let mut call = reported(&talk).await;
    assert_eq!(talk.complete(&mut call).await, Completed::Record);
    assert_eq!(call.question.as_deref(), Some("about c"));
    assert_eq!(call.arguments["command"], "rm -r /");
    assert_eq!(call.arguments["cwd"], "/");
}

#[tokio::test]
async fn a_question_about_another_call_comes_before_a_call_that_has_not_begun() {
    let talk = begun();
    for said in [
        call("a", &json!({}), true),
        call("b", &json!({}), true),
        asks("b", &json!({})),
    ] {
        assert_eq!(talk.push(said), Pushed::Fits);
    }
    let mut first = reported(&talk).await;
    assert_eq!(talk.complete(&mut first).await, Completed::Later);
    let mut second = reported(&talk).await;
    assert_eq!(second.id, "b");
    assert_eq!(talk.complete(&mut second).await, Completed::Record);
    assert!(second.question.is_some());
    assert_eq!(reported(&talk).await.id, "a");
}

#[tokio::test]
async fn a_call_that_never_begins_is_recorded_when_the_turn_is_over() {
    let talk = begun();
    assert_eq!(talk.push(call("a", &json!({}), true)), Pushed::Fits);
    let mut call = reported(&talk).await;
    talk.end_turn();
    assert_eq!(talk.complete(&mut call).await, Completed::Record);
    assert_eq!(call.question, None);
}

/// A process that ends after its turn does not end the turn of the next one.
#[test]
fn what_a_child_says_after_its_turn_belongs_to_no_other_turn() {
    let talk = begun();
    let over = |why: &str| ChildEvent::Over(Over::Failed(why.to_owned()));
    assert_eq!(
        talk.push_in(1, ChildEvent::Over(Over::Answered)),
        Pushed::Fits
    );
    assert_eq!(talk.push_in(1, over("late")), Pushed::Dropped);
    assert!(talk.begin(2) == Begun::Yes);
    assert_eq!(talk.push_in(1, over("later")), Pushed::Dropped);
    assert!(talk.is_in(2));
    assert_eq!(talk.push_in(2, over("now")), Pushed::Fits);
    assert!(!talk.is_in(2));
}

/// A turn that was interrupted in a call has no request that could record what it has used.
#[test]
fn what_a_turn_could_not_record_is_charged_to_the_next_one() {
    let talk = begun();
    let spent = |input_tokens, cost| ChildEvent::Spent {
        usage: Usage {
            input_tokens,
            ..Usage::default()
        },
        cost: Some(MicroUsd(cost)),
    };
    assert_eq!(talk.push(spent(3, 10)), Pushed::Fits);
    talk.end_turn();
    assert!(talk.owes());
    assert!(talk.begin(2) == Begun::Yes);
    assert_eq!(talk.push(spent(4, 5)), Pushed::Fits);
    let (usage, cost) = talk.take_spent().unwrap();
    assert_eq!((usage.input_tokens, cost), (7, Some(MicroUsd(15))));
    assert!(!talk.owes());
    assert_eq!(talk.take_spent(), None);
}
