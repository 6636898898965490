//! Reset and undo.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Approve, Receipt, Reset, Rewind, Status};
use agentd_client::{Error, Kind as ProblemKind, Problem};
use agentd_core::event::{Direction, Kind};
use agentd_core::id::OpId;
use agentd_core::state::Phase;
use serde_json::Value;
use std::process::Stdio;

fn reset(daemon: &TestDaemon, name: &str, ask: &Reset) -> Result<Receipt, Problem> {
    match daemon.block(daemon.client().reset(name, ask)) {
        Ok(receipt) => Ok(receipt),
        Err(Error::Problem(problem)) => Err(*problem),
        Err(error) => panic!("{error}"),
    }
}

fn fresh() -> Reset {
    Reset::default()
}

fn undo() -> Reset {
    Reset {
        step: Some(Direction::Undo),
        ..Reset::default()
    }
}

fn redo() -> Reset {
    Reset {
        step: Some(Direction::Redo),
        ..Reset::default()
    }
}

/// The newest request, as the model saw it.
fn last_request(daemon: &TestDaemon) -> Value {
    daemon.requests().last().unwrap().body.clone()
}

/// claude-code#80431, agent-of-empires#3080: the old context came back after a clear.
#[test]
fn the_next_request_holds_nothing_old() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say the magic word is xyzzy");
    let receipt = reset(&daemon, "coder", &fresh()).unwrap();
    daemon.completed("coder", "do: say fresh");
    let request = last_request(&daemon).to_string();
    assert!(!request.contains("xyzzy"), "{request}");
    let agent = daemon.show("coder");
    let now = agent.conversation.unwrap();
    assert_eq!((now.id, now.parent), (receipt.new, Some(receipt.old)));
    assert_eq!(now.ordinal, 2);
}

/// claude-code#39975: there was no way back from a clear.
#[test]
fn after_undo_the_request_is_what_it_would_have_been() {
    let plain = TestDaemon::new();
    plain.create("coder");
    plain.completed("coder", "do: say one");
    plain.completed("coder", "do: say two");

    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    reset(&daemon, "coder", &fresh()).unwrap();
    reset(&daemon, "coder", &undo()).unwrap();
    daemon.completed("coder", "do: say two");
    let strip = |daemon: &TestDaemon, mut body: Value| {
        let text = body
            .to_string()
            .replace(&daemon.work().display().to_string(), "");
        body = serde_json::from_str(&text).unwrap();
        body
    };
    let with = strip(&daemon, last_request(&daemon));
    let without = strip(&plain, last_request(&plain));
    assert_eq!(with.to_string(), without.to_string());
}

#[test]
fn undo_and_redo_go_over_several_levels_and_survive_the_daemon() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let mut conversations = vec![daemon.show("coder").conversation.unwrap().id];
    for word in ["one", "two", "three"] {
        daemon.completed("coder", &format!("do: say {word}"));
        conversations.push(reset(&daemon, "coder", &fresh()).unwrap().new);
    }
    daemon.kill_daemon();
    daemon.start_daemon();
    for at in (0..3).rev() {
        let receipt = reset(&daemon, "coder", &undo()).unwrap();
        assert_eq!(receipt.new, conversations[at]);
    }
    let nothing = reset(&daemon, "coder", &undo()).unwrap_err();
    assert_eq!(nothing.kind, ProblemKind::Conflict);
    daemon.kill_daemon();
    daemon.start_daemon();
    assert_eq!(
        reset(&daemon, "coder", &redo()).unwrap().new,
        conversations[1]
    );
    assert_eq!(daemon.show("coder").summary.as_deref(), Some("two"));
    // A turn in the newer one; both branches stay reachable.
    daemon.completed("coder", "do: say more");
    let all = daemon
        .block(daemon.client().conversations("coder"))
        .unwrap();
    assert_eq!(all.conversations.len(), 4);
    assert_eq!(
        (all.undo, all.redo),
        (Some(conversations[0]), Some(conversations[2]))
    );
}

#[test]
fn while_the_model_speaks() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let sent = daemon.send("coder", &format!("do: slowly 20 {}", "word ".repeat(200)));
    daemon.until_kind("coder", Kind::RequestSent);
    let before = until("a process", || daemon.pid("coder"));
    let receipt = reset(&daemon, "coder", &fresh()).unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    let agent = daemon.show("coder");
    assert_eq!(agent.conversation.unwrap().id, receipt.new);
    assert_ne!(
        until("a process", || daemon.pid("coder")),
        before,
        "awake again, as another"
    );
    daemon.completed("coder", "do: say next");
    daemon.verify();
}

#[test]
fn while_a_tool_ignores_term() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = serde_json::json!({ "command": "trap '' TERM; echo on >> effects; sleep 60 & wait; sleep 60" });
    let sent = daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    until("the tool", || (daemon.effects().len() == 1).then_some(()));
    let receipt = reset(&daemon, "coder", &fresh()).unwrap();
    assert_eq!(receipt.killed.calls.len(), 1);
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    daemon.completed("coder", "do: say next");
}

#[test]
fn a_stopped_agent_stays_stopped() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    let stop = agentd_client::api::Stop::default();
    daemon.block(daemon.client().stop("coder", &stop)).unwrap();
    reset(&daemon, "coder", &fresh()).unwrap();
    let agent = daemon.show("coder");
    assert_eq!((agent.phase, agent.process.pid), (Phase::Stopped, None));
    assert_eq!(agent.conversation.unwrap().ordinal, 2);
}

/// claude-code#54658, #88732, codex#12491: background work was orphaned, unlistable or silently killed.
#[test]
fn what_runs_in_the_background_goes_on_and_is_told() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = serde_json::json!({ "command": "sleep 60", "run_in_background": true });
    daemon.completed("coder", &format!("do: call shell {call} ;; say started"));
    let receipt = reset(&daemon, "coder", &fresh()).unwrap();
    assert_eq!(receipt.kept.len(), 1);
    daemon.completed("coder", "do: say next");
    let request = last_request(&daemon).to_string();
    assert!(request.contains(&receipt.kept[0].to_string()), "{request}");
    let kill = Reset {
        kill_background: true,
        ..fresh()
    };
    let receipt = reset(&daemon, "coder", &kill).unwrap();
    assert_eq!((receipt.kept.len(), receipt.killed.tasks.len()), (0, 1));
    assert_eq!(daemon.show("coder").tasks, []);
}

/// goose#9037, claude-code#65360: a queued prompt was lost.
#[test]
fn prompts_that_wait_are_set_aside_and_come_back() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let first = daemon.send("coder", "do: hang");
    daemon.until_kind("coder", Kind::RequestSent);
    let waiting = daemon.send("coder", "do: say waited");
    let receipt = reset(&daemon, "coder", &fresh()).unwrap();
    assert_eq!(receipt.set_aside, [waiting.prompt]);
    assert_eq!(
        daemon.answer("coder", first.prompt).status,
        Status::Interrupted
    );
    let answer = daemon.answer("coder", waiting.prompt);
    assert_eq!(
        (answer.status, answer.op),
        (Status::SetAside, Some(receipt.op))
    );
    reset(&daemon, "coder", &undo()).unwrap();
    let answer = until("an answer", || {
        let answer = daemon.answer("coder", waiting.prompt);
        (answer.status == Status::Completed).then_some(answer)
    });
    assert_eq!(answer.text, "waited");
}

/// A command that waits for a prompt which a reset sets aside says so, and names the reset.
#[test]
fn who_waits_on_a_prompt_that_is_set_aside_is_told_by_the_exit_code() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.send("coder", "do: hang");
    daemon.until_kind("coder", Kind::RequestSent);
    let mut command = daemon.command();
    let command = command.args(["send", "--json", "coder", "do: say waited"]);
    let command = command.envs(daemon.caller()).stdout(Stdio::piped());
    let waits = command.spawn().unwrap();
    until("the prompt", || {
        (daemon.count("coder", Kind::PromptQueued) == 2).then_some(())
    });
    let receipt = reset(&daemon, "coder", &fresh()).unwrap();
    let told = waits.wait_with_output().unwrap();
    assert_eq!(told.status.code(), Some(3), "{told:?}");
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(told["status"], "set_aside", "{told:#}");
    assert_eq!(told["op"], serde_json::json!(receipt.op));
}

#[test]
fn one_reset_wins_and_an_op_is_made_once() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    let ask = Reset {
        op: Some(agentd_core::id::OpId::new(uuid::Uuid::now_v7())),
        ..fresh()
    };
    let first = reset(&daemon, "coder", &ask).unwrap();
    assert_eq!(reset(&daemon, "coder", &ask).unwrap().new, first.new);
    let old = Reset {
        if_generation: Some(1),
        ..fresh()
    };
    let problem = reset(&daemon, "coder", &old).unwrap_err();
    assert_eq!(problem.kind, ProblemKind::Conflict);
    // Many at once.
    let results = daemon.block(async {
        let mut all = Vec::new();
        for _ in 0..8 {
            let client = daemon.client();
            all.push(tokio::spawn(async move {
                client.reset("coder", &fresh()).await
            }));
        }
        let mut results = Vec::new();
        for one in all {
            results.push(one.await.unwrap());
        }
        results
    });
    let won = results.iter().filter(|result| result.is_ok()).count() as u64;
    assert!(won >= 1);
    for lost in results.into_iter().filter_map(Result::err) {
        let Error::Problem(problem) = lost else {
            panic!("{lost}")
        };
        assert_eq!(problem.kind, ProblemKind::Conflict);
    }
    assert_eq!(daemon.show("coder").generation, 2 + won);
}

#[test]
fn unknown_names_and_oneshots_are_refused() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let problem = reset(&daemon, "coderr", &fresh()).unwrap_err();
    assert_eq!(problem.kind, ProblemKind::NotFound);
    assert_eq!(problem.next.as_deref(), Some("did you mean `coder`?"));
    let create = agentd_client::api::Create {
        spec: daemon.spec(),
        prompt: Some("do: say once".to_owned()),
        env: daemon.caller(),
        ..Default::default()
    };
    let created = daemon.block(daemon.client().create(&create)).unwrap();
    let name = created.agent.name;
    daemon.answer(&name, created.prompt.unwrap());
    let problem = reset(&daemon, &name, &fresh()).unwrap_err();
    assert_eq!(problem.title, "reset is only for persistent agents");
}

#[test]
fn a_cleared_log_begins_at_the_new_conversation() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say old");
    let ask = Reset {
        clear_log: true,
        ..fresh()
    };
    let receipt = reset(&daemon, "coder", &ask).unwrap();
    let query = agentd_client::api::EventQuery::default();
    let (events, _) = daemon.block(daemon.client().page("coder", &query)).unwrap();
    assert!(events.iter().all(|event| event.conversation == receipt.new));
    assert!(daemon.events("coder").len() > events.len());
}

/// Regression: after an undo of `reset --clear-log`, the log showed only the conversation that was left.
#[test]
fn an_undo_shows_the_log_that_a_reset_cleared() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say old");
    let cleared = daemon.cli(&["reset", "coder", "--clear-log"]);
    let said = String::from_utf8_lossy(&cleared.stdout).into_owned();
    assert!(said.contains("the log was cleared"), "{said}");
    daemon.completed("coder", "do: say new");
    let log = || {
        let logs = daemon.cli(&["logs", "coder"]);
        String::from_utf8_lossy(&logs.stdout).into_owned()
    };
    assert!(!log().contains("say old"), "{}", log());
    reset(&daemon, "coder", &undo()).unwrap();
    assert!(log().contains("say old"), "{}", log());
    reset(&daemon, "coder", &redo()).unwrap();
    assert!(!log().contains("say old"), "{}", log());
}

/// Regression: two resets and one undo ended in an empty conversation.
#[test]
fn a_reset_of_an_empty_conversation_is_no_step_of_undo() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say old");
    let first = daemon.show("coder").conversation.unwrap().id;
    let second = reset(&daemon, "coder", &fresh()).unwrap();
    let third = reset(&daemon, "coder", &fresh()).unwrap();
    // It is a reset like any other: a new conversation, with a receipt.
    assert_eq!(third.old, second.new);
    assert_ne!(third.new, second.new);
    let back = reset(&daemon, "coder", &undo()).unwrap();
    assert_eq!(back.new, first);
    let problem = reset(&daemon, "coder", &undo()).unwrap_err();
    assert_eq!(problem.kind, ProblemKind::Conflict);
}

/// The daemon dies at every step of a reset: the old or the new conversation is current, and the next daemon completes
/// the reset.
#[test]
fn a_daemon_that_dies_in_a_reset_finishes_it() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    for round in 0..6 {
        daemon.completed("coder", &format!("do: say round {round}"));
        let before = daemon.show("coder");
        let sent = daemon.send("coder", &format!("do: slowly 20 {}", "word ".repeat(200)));
        let events = before.head.0;
        until("a request", || {
            let mut events = daemon
                .events("coder")
                .into_iter()
                .filter(|it| it.seq.0 > events);
            events.find(|event| event.kind() == Kind::RequestSent)
        });
        let client = daemon.client();
        let asked = daemon.spawn(async move { client.reset("coder", &fresh()).await });
        let steps = daemon.count("coder", Kind::ResetStepped);
        until("a step", || {
            (daemon.count("coder", Kind::ResetStepped) > steps).then_some(())
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
        let after = daemon.show("coder");
        assert_eq!(after.generation, before.generation + 1);
    }
    daemon.requests();
    daemon.verify();
}

/// codex#29058: a pending approval was lost silently.
#[test]
fn while_a_call_waits_for_leave() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    let rule = serde_json::json!([{ "tool": "shell", "decision": "ask" }]);
    spec.permissions = serde_json::from_value(rule).unwrap();
    daemon.create_with("coder", spec);
    let call = serde_json::json!({ "command": "echo never >> effects" });
    let sent = daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    let agent = until("a question", || {
        let agent = daemon.show("coder");
        (agent.phase == Phase::AwaitingApproval).then_some(agent)
    });
    let question = agent.approvals[0].id;
    reset(&daemon, "coder", &fresh()).unwrap();
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    assert_eq!(daemon.show("coder").approvals, []);
    let late = daemon.client();
    let late = daemon.block(late.approve("coder", question, &Approve::default()));
    assert!(matches!(late, Err(Error::Problem(_))), "{late:?}");
    assert_eq!(daemon.effects().len(), 0);
    daemon.completed("coder", "do: say next");
}

#[test]
fn while_the_conversation_is_being_compacted() {
    let daemon = TestDaemon::new();
    std::fs::write(
        daemon.home().join("config.toml"),
        "[models.\"some-model\"]\nwindow = 9000\n",
    )
    .unwrap();
    daemon.create("coder");
    daemon.completed(
        "coder",
        &format!("remember this: {}", "many words ".repeat(1000)),
    );
    let sent = daemon.send("coder", "do: say more");
    until("a summary that is asked for", || {
        let events = daemon.events("coder").into_iter();
        let mut sent = events.filter_map(|event| match event.body {
            agentd_core::event::Body::RequestSent(sent) => Some(sent.purpose),
            _ => None,
        });
        sent.find(|purpose| *purpose == agentd_core::event::Purpose::Compact)
    });
    reset(&daemon, "coder", &fresh()).unwrap();
    let status = daemon.answer("coder", sent.prompt).status;
    assert!(
        matches!(status, Status::Interrupted | Status::Completed),
        "{status:?}"
    );
    daemon.completed("coder", "do: say next");
    let request = last_request(&daemon).to_string();
    assert!(!request.contains("many words"), "{request}");
    daemon.verify();
}

/// claude-code#68293: clear did nothing for an agent in the background.
#[test]
fn while_it_sleeps() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.idle_ms = 50;
    daemon.create_with("coder", spec);
    daemon.completed("coder", "do: say old");
    until("sleep", || daemon.pid("coder").is_none().then_some(()));
    reset(&daemon, "coder", &fresh()).unwrap();
    assert_eq!(daemon.pid("coder"), None, "it sleeps on");
    daemon.completed("coder", "do: say new");
    assert!(!last_request(&daemon).to_string().contains("say old"));
}

#[test]
fn prompts_that_come_meanwhile_wait_for_the_new_conversation() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let call = serde_json::json!({ "command": "trap '' TERM; echo on >> effects; sleep 60 & wait; sleep 60" });
    daemon.send("coder", &format!("do: call shell {call} ;; say done"));
    until("the tool", || (daemon.effects().len() == 1).then_some(()));
    let client = daemon.client();
    let asked = daemon.spawn(async move { client.reset("coder", &fresh()).await });
    daemon.until_kind("coder", Kind::ResetBegan);
    let meanwhile = daemon.send("coder", "do: say meanwhile");
    let receipt = daemon.block(asked).unwrap().unwrap();
    let answer = daemon.answer("coder", meanwhile.prompt);
    assert_eq!(answer.conversation, receipt.new);
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (Status::Completed, "meanwhile")
    );
}

#[test]
fn an_op_that_is_used_again_is_for_the_same_thing() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say one");
    let op = Some(OpId::new(uuid::Uuid::now_v7()));
    let first = reset(&daemon, "coder", &Reset { op, ..fresh() }).unwrap();
    let refused = reset(&daemon, "coder", &Reset { op, ..undo() }).unwrap_err();
    assert_eq!(refused.kind, ProblemKind::Conflict, "{refused:#?}");
    let rewind = Rewind {
        to: "init".to_owned(),
        op,
        ..Rewind::default()
    };
    let refused = daemon.block(daemon.client().rewind("coder", &rewind));
    assert!(refused.is_err());
    assert_eq!(daemon.show("coder").conversation.unwrap().id, first.new);
}
