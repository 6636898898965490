//! Rewind to an earlier position of a conversation; later messages are kept.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Checkpoint, Purge, Receipt, Reset, Rewind, Status};
use agentd_client::{Error, Kind as ProblemKind, Problem};
use agentd_core::event::{Body, Direction, Kind, ResetTo};
use agentd_core::id::{ConversationId, OpId};
use agentd_core::state::Phase;

fn problem<T: std::fmt::Debug>(result: Result<T, Error>) -> Problem {
    match result {
        Err(Error::Problem(problem)) => *problem,
        other => panic!("{other:?}"),
    }
}

fn to(place: &str) -> Rewind {
    Rewind {
        to: place.to_owned(),
        ..Rewind::default()
    }
}

fn rewind(daemon: &TestDaemon, ask: &Rewind) -> Receipt {
    daemon.block(daemon.client().rewind("coder", ask)).unwrap()
}

fn step(daemon: &TestDaemon, direction: Direction) -> Receipt {
    let ask = Reset {
        step: Some(direction),
        ..Reset::default()
    };
    daemon.block(daemon.client().reset("coder", &ask)).unwrap()
}

fn label(daemon: &TestDaemon, label: &str) {
    let label = Some(label.to_owned());
    let ask = Checkpoint { label };
    daemon
        .block(daemon.client().checkpoint("coder", &ask))
        .unwrap();
}

fn current(daemon: &TestDaemon) -> ConversationId {
    daemon.show("coder").conversation.unwrap().id
}

fn last_request(daemon: &TestDaemon) -> String {
    daemon.requests().last().unwrap().body.to_string()
}

/// An agent that has answered `one`, `two` and `three`, with a label after the second answer.
fn three_turns() -> TestDaemon {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    for word in ["one", "two", "three"] {
        daemon.completed("coder", &format!("do: say {word}"));
        if word == "two" {
            label(&daemon, "here");
        }
    }
    daemon
}

#[test]
fn to_a_turn_or_a_label_the_model_sees_what_came_before_and_nothing_after() {
    let daemon = three_turns();
    let first = current(&daemon);
    let turn = daemon.block(daemon.client().conversation("coder", "1"));
    let turn = turn.unwrap().ended[1].id.to_string();
    for place in ["2", "here", &turn] {
        let ask = Rewind {
            conversation: Some(first),
            ..to(place)
        };
        let receipt = rewind(&daemon, &ask);
        assert_eq!(daemon.show("coder").summary.as_deref(), Some("two"));
        daemon.completed("coder", "do: say again");
        let request = last_request(&daemon);
        for (word, is_there) in [("say one", true), ("say two", true), ("say three", false)] {
            assert_eq!(request.contains(word), is_there, "{place}: {request}");
        }
        let now = daemon.show("coder").conversation.unwrap();
        assert_eq!((now.id, now.turns), (receipt.new, 1));
    }
    daemon.verify();
}

/// Nothing is copied: a rewind appends the same few events, however long the history is.
#[test]
fn nothing_is_copied_and_undo_walks_over_it() {
    let daemon = three_turns();
    let old = current(&daemon);
    let before = daemon.events("coder").len();
    let receipt = rewind(&daemon, &to("1"));
    assert_eq!(
        (receipt.old, receipt.undo.as_str()),
        (old, "agentd reset coder --undo")
    );
    let events = daemon.events("coder");
    let added = events.len() - before;
    assert!(added < 20, "{:#?}", &events[before..]);
    let words = [Kind::Prompt, Kind::MessageAdded];
    assert!(!events[before..].iter().any(|it| words.contains(&it.kind())));
    // A label of what it branched off is still a place of the new one.
    assert_eq!(step(&daemon, Direction::Undo).new, old);
    assert_eq!(daemon.show("coder").summary.as_deref(), Some("three"));
    assert_eq!(step(&daemon, Direction::Redo).new, receipt.new);
    daemon.completed("coder", "do: say other");
    assert!(!last_request(&daemon).contains("say two"));
    rewind(&daemon, &to("init"));
    step(&daemon, Direction::Undo);
    step(&daemon, Direction::Undo);
    assert_eq!(current(&daemon), old);
    daemon.verify();
}

/// The same steps as a reset: foreground work ends, queued prompts are set aside, background work continues and the
/// model is told about it, and files are not changed.
#[test]
fn what_runs_is_stopped_as_a_reset_stops_it() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    let background = serde_json::json!({ "command": "sleep 60", "run_in_background": true });
    let call = serde_json::json!({ "command": "trap '' TERM; echo on >> effects; sleep 60" });
    let script = format!("do: call shell {background} ;; call shell {call} ;; say done");
    let running = daemon.send("coder", &script);
    until("the tool", || (daemon.effects().len() == 1).then_some(()));
    let waiting = daemon.send("coder", "do: say waited");
    let receipt = rewind(&daemon, &to("1"));
    assert_eq!(receipt.killed.calls.len(), 1);
    assert_eq!(receipt.set_aside, [waiting.prompt]);
    assert_eq!(receipt.kept.len(), 1);
    assert_eq!(
        daemon.answer("coder", running.prompt).status,
        Status::Interrupted
    );
    assert_eq!(
        daemon.answer("coder", waiting.prompt).status,
        Status::SetAside
    );
    daemon.completed("coder", "do: say next");
    let request = last_request(&daemon);
    assert!(request.contains(&receipt.kept[0].to_string()), "{request}");
    assert!(!request.contains("trap"), "{request}");
    assert_eq!(daemon.effects(), ["on"], "files are left alone");
    step(&daemon, Direction::Undo);
    let answer = until("an answer", || {
        let answer = daemon.answer("coder", waiting.prompt);
        (answer.status == Status::Completed).then_some(answer)
    });
    assert_eq!(answer.text, "waited");
}

/// Rewind in the middle of a turn, with a call that waits for approval: the new conversation has neither, and the model
/// is told.
#[test]
fn into_the_middle_of_a_turn() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    let rule = serde_json::json!([{ "tool": "shell", "decision": "ask" }]);
    spec.permissions = serde_json::from_value(rule).unwrap();
    daemon.create_with("coder", spec);
    let call = serde_json::json!({ "command": "echo never >> effects" });
    daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    until("a question", || {
        (daemon.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    label(&daemon, "asked");
    rewind(&daemon, &to("asked"));
    assert_eq!(daemon.show("coder").approvals, []);
    daemon.completed("coder", "do: say next");
    let request = last_request(&daemon);
    assert!(request.contains("branched off in the middle"), "{request}");
    // Again from the very beginning of that one, before its calls were answered.
    rewind(&daemon, &to("init"));
    daemon.completed("coder", "do: say next");
    assert!(last_request(&daemon).contains("branched off in the middle"));
    assert_eq!(daemon.effects().len(), 0);
    daemon.requests();
    daemon.verify();
}

/// Rewind to a position before a compaction: the model sees the old messages again.
#[test]
fn before_a_compaction_the_old_messages_are_there_again() {
    let daemon = TestDaemon::new();
    std::fs::write(
        daemon.home().join("config.toml"),
        "[models.\"some-model\"]\nwindow = 9000\n",
    )
    .unwrap();
    daemon.create("coder");
    daemon.completed("coder", "the magic word is xyzzy");
    let words = "many words ".repeat(1000);
    daemon.completed("coder", &format!("remember this: {words}"));
    daemon.completed("coder", "do: say more");
    assert!(daemon.count("coder", Kind::Compacted) > 0);
    assert!(!last_request(&daemon).contains("xyzzy"));
    rewind(&daemon, &to("1"));
    daemon.completed("coder", "do: say next");
    let request = last_request(&daemon);
    assert!(request.contains("xyzzy"), "{request}");
    assert!(!request.contains("many words"), "{request}");
}

#[test]
fn an_op_is_made_once_and_what_cannot_be_is_refused() {
    let daemon = three_turns();
    let ask = Rewind {
        op: Some(OpId::new(uuid::Uuid::now_v7())),
        ..to("here")
    };
    let first = rewind(&daemon, &ask);
    assert_eq!(rewind(&daemon, &ask).new, first.new);
    assert_eq!(daemon.show("coder").generation, 2);
    let refused = |ask: &Rewind| problem(daemon.block(daemon.client().rewind("coder", ask)));
    // The third turn is in the conversation that was left.
    assert_eq!(refused(&to("3")).kind, ProblemKind::NotFound);
    let nowhere = refused(&to("nowhere"));
    assert_eq!(nowhere.kind, ProblemKind::NotFound);
    assert!(nowhere.next.unwrap().contains("--conversation"));
    let old = Rewind {
        if_generation: Some(1),
        ..to("1")
    };
    assert_eq!(refused(&old).kind, ProblemKind::Conflict);
    let unknown = Rewind {
        conversation: Some(ConversationId::new(uuid::Uuid::now_v7())),
        ..to("1")
    };
    assert_eq!(refused(&unknown).kind, ProblemKind::NotFound);
    assert_eq!(daemon.show("coder").generation, 2);
    // What a branch shows cannot be purged under it.
    let purge = Purge {
        conversation: Some(first.old),
        dry_run: false,
    };
    let needed = problem(daemon.block(daemon.client().purge("coder", &purge)));
    assert_eq!(needed.kind, ProblemKind::Conflict);
}

/// The daemon dies at every step of a rewind: the old or the new conversation is current, and the next daemon completes
/// the rewind.
#[test]
fn a_daemon_that_dies_in_a_rewind_finishes_it() {
    let daemon = three_turns();
    for round in 0..4 {
        let sent = daemon.send("coder", &format!("do: slowly 20 {}", "word ".repeat(200)));
        let before = daemon.show("coder");
        until("a request", || {
            let events = daemon.events("coder").into_iter();
            let mut new = events.filter(|it| it.seq > sent.seq);
            new.find(|event| event.kind() == Kind::RequestSent)
        });
        let client = daemon.client();
        let asked = daemon.spawn(async move { client.rewind("coder", &to("1")).await });
        let steps = daemon.count("coder", Kind::ResetStepped);
        until("a step", || {
            (daemon.count("coder", Kind::ResetStepped) > steps + round).then_some(())
        });
        daemon.kill_daemon();
        let _whatever = daemon.block(asked);
        daemon.start_daemon();
        let answer = daemon.answer("coder", sent.prompt);
        assert_eq!(answer.status, Status::Interrupted);
        until("its end", || {
            let ended = daemon.count("coder", Kind::ResetEnded);
            (ended == round + 1).then_some(())
        });
        assert_eq!(daemon.show("coder").generation, before.generation + 1);
        daemon.completed("coder", "do: say next");
        let request = last_request(&daemon);
        assert!(!request.contains("say two"), "{request}");
        assert!(request.contains("say one"), "{request}");
    }
    let began = daemon.events("coder").into_iter();
    let began = began.filter(|event| {
        matches!(&event.body, Body::ResetBegan(began) if matches!(began.to, ResetTo::Rewind { .. }))
    });
    assert_eq!(began.count(), 4);
    daemon.verify();
}

/// Concurrent undo and reset by two clients: one succeeds, the other gets a conflict, and neither is done in part.
#[test]
fn while_another_client_takes_something_back() {
    let daemon = three_turns();
    daemon
        .block(daemon.client().reset("coder", &Reset::default()))
        .unwrap();
    for _ in 0..3 {
        let before = daemon.show("coder").generation;
        let (undo, other) = daemon.block(async {
            let undo = Reset {
                step: Some(Direction::Undo),
                ..Reset::default()
            };
            let (one, two) = (daemon.client(), daemon.client());
            let fresh = Reset::default();
            tokio::join!(one.reset("coder", &undo), two.reset("coder", &fresh))
        });
        let won = u64::from(undo.is_ok()) + u64::from(other.is_ok());
        assert!(won >= 1);
        for lost in [undo.err(), other.err()].into_iter().flatten() {
            let Error::Problem(problem) = lost else {
                panic!("{lost}")
            };
            assert_eq!(problem.kind, ProblemKind::Conflict);
        }
        let agent = daemon.show("coder");
        assert_eq!(agent.generation, before + won);
        assert_ne!(agent.phase, Phase::Resetting);
    }
    daemon.completed("coder", "do: say next");
    daemon.verify();
}
