//! A compaction that a user requests.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Compact, Compacted, Fork, Reset, Rewind, Status, Stop};
use agentd_client::{Error, Kind as ProblemKind};
use agentd_core::event::{Body, Kind, Purpose};
use agentd_core::id::OpId;
use agentd_core::state::{CompactionOutcome, Phase};

fn compact(daemon: &TestDaemon, ask: &Compact) -> Compacted {
    daemon.block(daemon.client().compact("coder", ask)).unwrap()
}

fn last_request(daemon: &TestDaemon) -> String {
    daemon.requests().last().unwrap().body.to_string()
}

fn used() -> TestDaemon {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "the magic word is xyzzy");
    daemon
}

#[test]
fn the_model_goes_on_from_its_summary_and_the_history_stays() {
    let daemon = used();
    let turns = daemon.show("coder").conversation.unwrap().turns;
    let ask = Compact {
        instructions: Some("heed the plugh".to_owned()),
        op: Some(OpId::new(uuid::Uuid::now_v7())),
        ..Compact::default()
    };
    let made = compact(&daemon, &ask);
    assert_eq!(made.outcome, CompactionOutcome::Compacted);
    assert!(made.tokens > 0);
    let request = last_request(&daemon);
    assert!(request.contains("heed the plugh"), "{request}");
    // Under the same op it is made once.
    assert_eq!(compact(&daemon, &ask), made);
    assert_eq!(daemon.count("coder", Kind::Compacted), 1);
    daemon.completed("coder", "do: say next");
    let request = last_request(&daemon);
    assert!(!request.contains("xyzzy"), "{request}");
    let agent = daemon.show("coder");
    assert_eq!(
        agent.conversation.unwrap().turns,
        turns + 1,
        "it is no turn"
    );
    let shown = daemon
        .block(daemon.client().conversation("coder", "1"))
        .unwrap();
    let compacts: Vec<bool> = shown.ended.iter().map(|turn| turn.compacts).collect();
    assert_eq!(compacts, [false, true, false]);
    assert_eq!(shown.conversation.compactions, 1);
    // Back to before it: the model sees the old messages again.
    let back = Rewind {
        to: "1".to_owned(),
        ..Rewind::default()
    };
    daemon
        .block(daemon.client().rewind("coder", &back))
        .unwrap();
    daemon.completed("coder", "do: say again");
    assert!(last_request(&daemon).contains("xyzzy"));
    daemon.verify();
}

#[test]
fn a_turn_ends_first_and_one_that_sleeps_is_woken() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.idle_ms = 50;
    daemon.create_with("coder", spec);
    assert_eq!(
        compact(&daemon, &Compact::default()).outcome,
        CompactionOutcome::Nothing
    );
    let sent = daemon.send("coder", "do: slowly 5 some words that take a while to say");
    daemon.until_kind("coder", Kind::RequestSent);
    assert_eq!(
        compact(&daemon, &Compact::default()).outcome,
        CompactionOutcome::Compacted
    );
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    until("sleep", || daemon.pid("coder").is_none().then_some(()));
    daemon.completed("coder", "do: say more");
    until("sleep", || daemon.pid("coder").is_none().then_some(()));
    assert_eq!(
        compact(&daemon, &Compact::default()).outcome,
        CompactionOutcome::Compacted
    );
    assert_eq!(daemon.show("coder").phase, Phase::Idle);
}

#[test]
fn what_cannot_be_is_refused_and_a_reset_ends_it() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say one ;; hang");
    let client = daemon.client();
    // The fake model has nothing more to say, for ever.
    let asked = daemon.spawn(async move { client.compact("coder", &Compact::default()).await });
    until("a request", || {
        let events = daemon.events("coder").into_iter();
        let mut sent = events.filter_map(|event| match event.body {
            Body::RequestSent(sent) => Some(sent.purpose),
            _ => None,
        });
        sent.find(|purpose| *purpose == Purpose::Compact)
    });
    let second = daemon.block(daemon.client().compact("coder", &Compact::default()));
    let Err(Error::Problem(problem)) = second else {
        panic!("{second:?}")
    };
    assert_eq!(problem.kind, ProblemKind::Conflict);
    // A fork is made meanwhile, and does not hear of it.
    let fork = Fork {
        name: Some("other".to_owned()),
        ..Fork::default()
    };
    daemon.block(daemon.client().fork("coder", &fork)).unwrap();
    daemon.completed("other", "do: say mine");
    daemon
        .block(daemon.client().reset("coder", &Reset::default()))
        .unwrap();
    let made = daemon.block(asked).unwrap().unwrap();
    assert_eq!(made.outcome, CompactionOutcome::Interrupted);
    daemon.completed("coder", "do: say next");
    daemon
        .block(daemon.client().stop("coder", &Stop::default()))
        .unwrap();
    let stopped = daemon.block(daemon.client().compact("coder", &Compact::default()));
    assert!(matches!(stopped, Err(Error::Problem(_))), "{stopped:?}");
    daemon.verify();
}

/// The runtime dies, or the daemon: the compaction is made once, and a client that asks again gets its outcome.
#[test]
fn it_survives_kills() {
    for kill_daemon in [false, true] {
        let daemon = used();
        let words = format!("do: say one ;; slowly 30 {}", "word ".repeat(40));
        daemon.completed("coder", &words);
        let ask = Compact {
            op: Some(OpId::new(uuid::Uuid::now_v7())),
            ..Compact::default()
        };
        let (client, again) = (daemon.client(), ask.clone());
        let asked = daemon.spawn(async move { client.compact("coder", &ask).await });
        until("a request", || {
            let events = daemon.events("coder").into_iter();
            let compacts = |body: &Body| matches!(body, Body::RequestSent(sent) if sent.purpose == Purpose::Compact);
            events.into_iter().find(|event| compacts(&event.body))
        });
        match kill_daemon {
            true => {
                daemon.kill_daemon();
                daemon.start_daemon();
            }
            false => daemon.kill_runtime("coder"),
        }
        let _whatever = daemon.block(asked);
        assert_eq!(
            compact(&daemon, &again).outcome,
            CompactionOutcome::Compacted
        );
        assert_eq!(daemon.count("coder", Kind::Compacted), 1);
        daemon.completed("coder", "do: say next");
        daemon.verify();
    }
}

fn window(daemon: &TestDaemon, tokens: u64) {
    let text = format!("[models.\"some-model\"]\nwindow = {tokens}\n");
    std::fs::write(daemon.home().join("config.toml"), text).unwrap();
}

/// A prompt of this many bytes that ends with `xyzzy`; the model answers it with `fine`.
fn large(bytes: usize) -> String {
    let filler = "word ".repeat(bytes / 5);
    format!("do: say fine ;; say {filler} xyzzy")
}

/// Regression: the request after the compaction contained only the summary, without the prompt.
#[test]
fn a_large_prompt_is_answered_and_never_summarised() {
    for (compact_at, tokens, bytes) in [(0.1, 200_000, 60 * 1024), (0.8, 160_000, 400 * 1024)] {
        let daemon = TestDaemon::new();
        window(&daemon, tokens);
        let mut spec = daemon.spec();
        spec.compact_at = compact_at;
        daemon.create_with("coder", spec);
        daemon.completed("coder", "do: say hello");
        let answer = daemon.completed("coder", &large(bytes));
        assert_eq!(answer.text, "fine");
        assert!(last_request(&daemon).contains("xyzzy"));
        // With as much before it, which is summarised.
        daemon.completed("coder", &format!("do: say {}", "word ".repeat(bytes / 5)));
        daemon.completed("coder", "do: say between");
        let answer = daemon.completed("coder", &large(bytes));
        assert_eq!(answer.text, "fine");
        let request = last_request(&daemon);
        assert!(request.contains("xyzzy"));
        assert!(request.contains("Summary of the conversation up to here"));
        daemon.verify();
    }
}

/// A prompt that does not fit into the model's window fails with an error that says so; the next prompt is answered.
#[test]
fn a_prompt_that_is_too_large_by_itself_fails_with_an_error_of_its_own() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let answer = daemon.ask("coder", "do: overflow 10 | say never");
    assert_eq!(answer.status, Status::Failed);
    let error = answer.error.unwrap();
    assert!(error.contains("larger than the model's window"), "{error}");
    let last = daemon.events("coder").into_iter().rev();
    let ended = last.filter_map(|event| match event.body {
        Body::TurnEnded(ended) => Some(ended.failure),
        _ => None,
    });
    let class = agentd_core::event::FailureClass::TurnTooLarge;
    assert_eq!(ended.flatten().next(), Some(class));
    assert_eq!(daemon.count("coder", Kind::Compacted), 0);
}

/// From Claude 5.5 on, the model accepts its thinking only after the messages that led to it, and no thinking budget.
#[test]
fn thinking_that_is_bound_to_its_place_survives_a_compaction_and_a_change() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.model = Some("claude-opus-5-5".to_owned());
    spec.reasoning = Some(agentd_core::spec::Reasoning::High);
    spec.temperature = Some(0.5);
    daemon.create_with("coder", spec);
    daemon.completed(
        "coder",
        &format!("do: think hm | say {}", "word ".repeat(20_000)),
    );
    let looks = r#"do: think so | call shell {"command": "true"} ;; overflow 60000 | think on | say it fits"#;
    assert_eq!(daemon.completed("coder", looks).text, "it fits");
    assert_eq!(daemon.count("coder", Kind::Compacted), 1);
    daemon.completed("coder", "do: think more | say next");
    let set = ["set", "coder", "system=You are another agent."];
    assert!(daemon.cli(&set).status.success());
    daemon.completed("coder", "do: think again | say last");
    daemon.completed("coder", "do: say end");
    // None was refused, and the last one holds what was thought since the change.
    let last = daemon.requests().last().unwrap().body.to_string();
    assert!(
        last.contains("again") && !last.contains("\"thinking\":\"so\""),
        "{last}"
    );
    daemon.verify();
}
