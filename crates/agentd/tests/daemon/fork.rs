//! A new agent that continues from a position of an existing agent, which is not affected.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Approve, Archive, Fork, Forked, Purge, Reset};
use agentd_client::{Error, Kind as ProblemKind, Problem};
use agentd_core::event::{Body, Kind, Mode};
use agentd_core::id::OpId;
use agentd_core::state::Phase;
use std::time::Duration;

fn fork_as(name: &str) -> Fork {
    Fork {
        name: Some(name.to_owned()),
        ..Fork::default()
    }
}

fn fork(daemon: &TestDaemon, ask: &Fork) -> Forked {
    daemon.block(daemon.client().fork("coder", ask)).unwrap()
}

fn refused(daemon: &TestDaemon, ask: &Fork) -> Problem {
    match daemon.block(daemon.client().fork("coder", ask)) {
        Err(Error::Problem(problem)) => *problem,
        other => panic!("{other:?}"),
    }
}

fn last_request(daemon: &TestDaemon) -> String {
    daemon.requests().last().unwrap().body.to_string()
}

fn used() -> TestDaemon {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    for word in ["one", "two"] {
        daemon.completed("coder", &format!("do: say {word}"));
    }
    daemon
}

#[test]
fn it_has_the_words_and_the_settings_and_a_cost_of_its_own() {
    let daemon = used();
    let parent = daemon.show("coder");
    let before = daemon.events("coder").len();
    let at = Fork {
        at: Some("1".to_owned()),
        ..fork_as("other")
    };
    let forked = fork(&daemon, &at);
    assert_eq!(forked.agent.name, "other");
    assert_eq!(forked.agent.usage.input_tokens, 0);
    assert_eq!(daemon.show("other").summary.as_deref(), Some("one"));
    assert_eq!(forked.from.agent.id, parent.id);
    let client = daemon.client();
    let specs = daemon.block(async { (client.spec("coder").await, client.spec("other").await) });
    assert_eq!(specs.0.unwrap(), specs.1.unwrap());
    daemon.completed("other", "do: say mine");
    let request = last_request(&daemon);
    assert!(request.contains("say one"), "{request}");
    assert!(!request.contains("say two"), "{request}");
    let told = request
        .matches("You are a fork of the agent `coder`")
        .count();
    assert_eq!(told, 1, "{request}");
    // The one it came from goes on as if nothing had happened.
    assert_eq!(daemon.events("coder").len(), before);
    assert_eq!(daemon.show("coder").usage, parent.usage);
    daemon.completed("coder", "do: say three");
    assert!(!last_request(&daemon).contains("mine"));
    assert!(!last_request(&daemon).contains("fork"));
    // A fork of the fork, from where it is now; and each has its own tree.
    let second = daemon.block(daemon.client().fork("other", &fork_as("third")));
    assert_eq!(second.unwrap().from.agent.id, forked.agent.id);
    daemon.completed("third", "do: say deep");
    for words in ["say one", "say mine"] {
        assert!(last_request(&daemon).contains(words));
    }
    let transcript = daemon.block(daemon.client().transcript("third", "1"));
    let transcript = String::from_utf8(transcript.unwrap().to_vec()).unwrap();
    for (words, is_there) in [("say one", true), ("say mine", true), ("say two", false)] {
        assert_eq!(transcript.contains(words), is_there);
    }
    daemon
        .block(daemon.client().reset("third", &Reset::default()))
        .unwrap();
    daemon.completed("third", "do: say fresh");
    assert!(!last_request(&daemon).contains("say one"));
    daemon.verify();
}

/// The parent has a pending approval, a background task and queued prompts: the fork gets none of them, and the model is
/// told.
#[test]
fn what_is_under_way_stays_where_it_is() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    let rule = serde_json::json!([{ "tool": "write_file", "decision": "ask" }]);
    spec.permissions = serde_json::from_value(rule).unwrap();
    daemon.create_with("coder", spec);
    let background = serde_json::json!({ "command": "sleep 60", "run_in_background": true });
    let write = serde_json::json!({ "file_path": "x", "content": "y" });
    let script = format!("do: call shell {background} ;; call write_file {write} ;; say done");
    daemon.send("coder", &script);
    until("a question", || {
        (daemon.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    daemon.send("coder", "do: say waited");
    let parent = daemon.show("coder");
    assert_eq!(
        (parent.approvals.len(), parent.tasks.len(), parent.queued),
        (1, 1, 1)
    );
    let forked = fork(&daemon, &fork_as("other")).agent;
    assert_eq!(
        (forked.approvals.len(), forked.tasks.len(), forked.queued),
        (0, 0, 0)
    );
    assert_eq!(forked.phase, Phase::Idle);
    let notices = daemon.count("other", Kind::Notice);
    assert_eq!(notices, 1);
    daemon.completed("other", "do: say mine");
    let request = last_request(&daemon);
    assert!(
        request.contains("These calls belong to the other branch"),
        "{request}"
    );
    assert!(request.contains("background tasks"), "{request}");
    assert!(!daemon.work().join("x").exists());
    // The question of the other is still there, and is answered once.
    let asked = daemon.show("coder").approvals[0].id;
    let wrong = daemon.block(daemon.client().approve("other", asked, &Approve::default()));
    assert!(matches!(wrong, Err(Error::Problem(_))), "{wrong:?}");
    daemon
        .block(daemon.client().approve("coder", asked, &Approve::default()))
        .unwrap();
    until("the file", || {
        daemon.work().join("x").exists().then_some(())
    });
    until("its queue", || {
        (daemon.show("coder").summary.as_deref() == Some("waited")).then_some(())
    });
    daemon.requests();
    daemon.verify();
}

#[test]
fn an_op_makes_one_agent_and_what_cannot_be_is_refused() {
    let daemon = used();
    let ask = Fork {
        op: Some(OpId::new(uuid::Uuid::now_v7())),
        ..fork_as("other")
    };
    let first = fork(&daemon, &ask);
    assert!(!first.repeated);
    let again = fork(&daemon, &ask);
    assert_eq!((again.agent.id, again.repeated), (first.agent.id, true));
    assert_eq!(again.from, first.from);
    daemon.kill_daemon();
    daemon.start_daemon();
    assert!(fork(&daemon, &ask).repeated);
    // Many at once.
    let ask = Fork {
        op: Some(OpId::new(uuid::Uuid::now_v7())),
        ..fork_as("another")
    };
    let made = daemon.block(async {
        let mut all = Vec::new();
        for _ in 0..6 {
            let (client, ask) = (daemon.client(), ask.clone());
            all.push(tokio::spawn(
                async move { client.fork("coder", &ask).await },
            ));
        }
        let mut made = Vec::new();
        for one in all {
            made.push(one.await.unwrap().unwrap());
        }
        made
    });
    assert_eq!(made.iter().filter(|it| !it.repeated).count(), 1);
    assert!(made.iter().all(|it| it.agent.id == made[0].agent.id));
    assert_eq!(
        refused(&daemon, &fork_as("coder")).kind,
        ProblemKind::Conflict
    );
    assert_eq!(
        refused(&daemon, &fork_as("No Name")).kind,
        ProblemKind::Invalid
    );
    let nowhere = Fork {
        at: Some("7".to_owned()),
        ..fork_as("new")
    };
    assert_eq!(refused(&daemon, &nowhere).kind, ProblemKind::NotFound);
    let old = Fork {
        if_generation: Some(99),
        ..fork_as("new")
    };
    assert_eq!(refused(&daemon, &old).kind, ProblemKind::Conflict);
    let taken = Fork {
        op: Some(OpId::new(daemon.show("coder").id.uuid())),
        ..fork_as("new")
    };
    assert_eq!(refused(&daemon, &taken).kind, ProblemKind::Conflict);
    daemon.create("new");
    daemon.verify();
}

/// The messages of a parent cannot be purged while a fork uses them, and can be purged when the fork is gone.
#[test]
fn the_parent_cannot_be_purged_under_it() {
    let daemon = used();
    fork(&daemon, &fork_as("other"));
    let client = daemon.client();
    daemon
        .block(client.archive("coder", &Archive::default()))
        .unwrap();
    let refused = daemon.block(client.purge("coder", &Purge::default()));
    let Err(Error::Problem(problem)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(problem.kind, ProblemKind::Conflict);
    let said = format!("{problem:?}");
    assert!(said.contains("other") || said.contains(&daemon.show("other").id.to_string()));
    daemon.completed("other", "do: say still here");
    assert!(last_request(&daemon).contains("say one"));
    // A fork of one that was removed.
    daemon
        .block(client.fork("coder", &fork_as("late")))
        .unwrap();
    assert_eq!(daemon.show("late").summary.as_deref(), Some("two"));
    for name in ["other", "late"] {
        daemon
            .block(client.archive(name, &Archive::default()))
            .unwrap();
        daemon.block(client.purge(name, &Purge::default())).unwrap();
    }
    daemon
        .block(client.purge("coder", &Purge::default()))
        .unwrap();
    daemon.verify();
}

/// The daemon dies during a fork: the new agent exists completely or not at all, and a repeated request creates one
/// agent.
#[test]
fn a_daemon_that_dies_in_a_fork_leaves_one_or_none() {
    let daemon = used();
    for round in 0..6 {
        let name = format!("fork-{round}");
        let ask = Fork {
            op: Some(OpId::new(uuid::Uuid::now_v7())),
            ..fork_as(&name)
        };
        let (client, again) = (daemon.client(), ask.clone());
        let asked = daemon.spawn(async move { client.fork("coder", &ask).await });
        for _ in 0..round {
            daemon.show("coder");
        }
        daemon.kill_daemon();
        let _whatever = daemon.block(asked);
        daemon.start_daemon();
        let forked = fork(&daemon, &again);
        let events = daemon.events(&name);
        let began = |body: &Body| matches!(body, Body::ConversationBegan(_));
        assert_eq!(events.iter().filter(|it| began(&it.body)).count(), 1);
        assert_eq!(daemon.show(&name).id, forked.agent.id);
        daemon.completed(&name, "do: say mine");
        assert!(last_request(&daemon).contains("say two"));
    }
    daemon.verify();
}

/// The prompt is in the commit that creates the agent: a one-shot agent takes no second one.
#[test]
fn a_fork_can_have_its_first_prompt_and_settings_of_its_own() {
    let daemon = used();
    let mut spec = daemon.block(daemon.client().spec("coder")).unwrap();
    spec.limits.max_iterations = 7;
    let ask = Fork {
        mode: Some(Mode::Oneshot),
        spec: Some(Box::new(spec)),
        prompt: Some("do: say three".to_owned()),
        op: Some(OpId::new(uuid::Uuid::now_v7())),
        ..Fork::default()
    };
    let forked = fork(&daemon, &ask);
    let name = forked.agent.name.as_str();
    assert_eq!(forked.agent.mode, Mode::Oneshot);
    let prompt = forked.prompt.unwrap();
    let limit = Duration::from_secs(60);
    let answer = daemon.block(daemon.client().answer(name, prompt, limit));
    assert_eq!(answer.unwrap().text, "three");
    assert!(last_request(&daemon).contains("say two"));
    let spec = daemon.block(daemon.client().spec(name)).unwrap();
    assert_eq!(spec.limits.max_iterations, 7);
    let again = fork(&daemon, &ask);
    assert_eq!((again.repeated, again.prompt), (true, Some(prompt)));
    let other = Fork {
        prompt: Some("do: say other".to_owned()),
        ..ask
    };
    assert_eq!(refused(&daemon, &other).kind, ProblemKind::Conflict);
    daemon.verify();
}
