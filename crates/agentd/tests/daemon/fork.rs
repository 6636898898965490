//! Another agent that goes on from a place of one that does not notice.

use crate::house::{House, until};
use agentd_client::api::{Answered, Archive, Fork, Forked, Purge, Reset};
use agentd_client::{Error, Kind as ProblemKind, Problem};
use agentd_core::event::{Body, Kind};
use agentd_core::id::OpId;
use agentd_core::state::Phase;

fn fork_as(name: &str) -> Fork {
    Fork {
        name: name.to_owned(),
        ..Fork::default()
    }
}

fn fork(house: &House, ask: &Fork) -> Forked {
    house.block(house.client().fork("coder", ask)).unwrap()
}

fn refused(house: &House, ask: &Fork) -> Problem {
    match house.block(house.client().fork("coder", ask)) {
        Err(Error::Problem(problem)) => *problem,
        other => panic!("{other:?}"),
    }
}

fn last_request(house: &House) -> String {
    house.requests().last().unwrap().body.to_string()
}

fn used() -> House {
    let house = House::new();
    house.create("coder");
    for word in ["one", "two"] {
        house.completed("coder", &format!("do: say {word}"));
    }
    house
}

#[test]
fn it_has_the_words_and_the_settings_and_a_cost_of_its_own() {
    let house = used();
    let parent = house.show("coder");
    let before = house.events("coder").len();
    let at = Fork {
        at: Some("1".to_owned()),
        ..fork_as("other")
    };
    let forked = fork(&house, &at);
    assert_eq!(forked.agent.name, "other");
    assert_eq!(forked.agent.usage.input_tokens, 0);
    assert_eq!(house.show("other").summary.as_deref(), Some("one"));
    assert_eq!(forked.from.agent.id, parent.id);
    let client = house.client();
    let specs = house.block(async { (client.spec("coder").await, client.spec("other").await) });
    assert_eq!(specs.0.unwrap(), specs.1.unwrap());
    house.completed("other", "do: say mine");
    let request = last_request(&house);
    assert!(request.contains("say one"), "{request}");
    assert!(!request.contains("say two"), "{request}");
    let told = request
        .matches("You are a fork of the agent `coder`")
        .count();
    assert_eq!(told, 1, "{request}");
    // The one it came from goes on as if nothing had happened.
    assert_eq!(house.events("coder").len(), before);
    assert_eq!(house.show("coder").usage, parent.usage);
    house.completed("coder", "do: say three");
    assert!(!last_request(&house).contains("mine"));
    assert!(!last_request(&house).contains("fork"));
    // A fork of the fork, from where it is now; and each has its own tree.
    let second = house.block(house.client().fork("other", &fork_as("third")));
    assert_eq!(second.unwrap().from.agent.id, forked.agent.id);
    house.completed("third", "do: say deep");
    for words in ["say one", "say mine"] {
        assert!(last_request(&house).contains(words));
    }
    let transcript = house.block(house.client().transcript("third", "1"));
    let transcript = String::from_utf8(transcript.unwrap().to_vec()).unwrap();
    for (words, is_there) in [("say one", true), ("say mine", true), ("say two", false)] {
        assert_eq!(transcript.contains(words), is_there);
    }
    house
        .block(house.client().reset("third", &Reset::default()))
        .unwrap();
    house.completed("third", "do: say fresh");
    assert!(!last_request(&house).contains("say one"));
    house.verify();
}

/// With a pending approval, a task in the background and a queue: the fork gets none of them, and is told.
#[test]
fn what_is_under_way_stays_where_it_is() {
    let house = House::new();
    let mut spec = house.spec();
    let rule = serde_json::json!([{ "tool": "write_file", "decision": "ask" }]);
    spec.permissions = serde_json::from_value(rule).unwrap();
    house.create_with("coder", spec);
    let background = serde_json::json!({ "command": "sleep 60", "run_in_background": true });
    let write = serde_json::json!({ "file_path": "x", "content": "y" });
    let script = format!("do: call shell {background} ;; call write_file {write} ;; say done");
    house.send("coder", &script);
    until("a question", || {
        (house.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    house.send("coder", "do: say waited");
    let parent = house.show("coder");
    assert_eq!(
        (parent.approvals.len(), parent.tasks.len(), parent.queued),
        (1, 1, 1)
    );
    let forked = fork(&house, &fork_as("other")).agent;
    assert_eq!(
        (forked.approvals.len(), forked.tasks.len(), forked.queued),
        (0, 0, 0)
    );
    assert_eq!(forked.phase, Phase::Idle);
    let notices = house.count("other", Kind::Notice);
    assert_eq!(notices, 1);
    house.completed("other", "do: say mine");
    let request = last_request(&house);
    assert!(
        request.contains("These calls belong to the other branch"),
        "{request}"
    );
    assert!(request.contains("background tasks"), "{request}");
    assert!(!house.work().join("x").exists());
    // The question of the other is still there, and is answered once.
    let asked = house.show("coder").approvals[0].id;
    let allow = agentd_core::event::Decision::Allow;
    let wrong = house.block(house.client().decide("other", asked, &Answered::new(allow)));
    assert!(matches!(wrong, Err(Error::Problem(_))), "{wrong:?}");
    house
        .block(house.client().decide("coder", asked, &Answered::new(allow)))
        .unwrap();
    until("the file", || house.work().join("x").exists().then_some(()));
    until("its queue", || {
        (house.show("coder").summary.as_deref() == Some("waited")).then_some(())
    });
    house.requests();
    house.verify();
}

#[test]
fn an_op_makes_one_agent_and_what_cannot_be_is_refused() {
    let house = used();
    let ask = Fork {
        op: Some(OpId::new(uuid::Uuid::now_v7())),
        ..fork_as("other")
    };
    let first = fork(&house, &ask);
    assert!(!first.repeated);
    let again = fork(&house, &ask);
    assert_eq!((again.agent.id, again.repeated), (first.agent.id, true));
    assert_eq!(again.from, first.from);
    house.kill_daemon();
    house.start_daemon();
    assert!(fork(&house, &ask).repeated);
    // Many at once.
    let ask = Fork {
        op: Some(OpId::new(uuid::Uuid::now_v7())),
        ..fork_as("another")
    };
    let made = house.block(async {
        let mut all = Vec::new();
        for _ in 0..6 {
            let (client, ask) = (house.client(), ask.clone());
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
        refused(&house, &fork_as("coder")).kind,
        ProblemKind::Conflict
    );
    assert_eq!(
        refused(&house, &fork_as("No Name")).kind,
        ProblemKind::Invalid
    );
    let nowhere = Fork {
        at: Some("7".to_owned()),
        ..fork_as("new")
    };
    assert_eq!(refused(&house, &nowhere).kind, ProblemKind::NotFound);
    let old = Fork {
        if_generation: Some(99),
        ..fork_as("new")
    };
    assert_eq!(refused(&house, &old).kind, ProblemKind::Conflict);
    let taken = Fork {
        op: Some(OpId::new(house.show("coder").id.uuid())),
        ..fork_as("new")
    };
    assert_eq!(refused(&house, &taken).kind, ProblemKind::Conflict);
    house.create("new");
    house.verify();
}

/// A parent's words stay for as long as a fork shows them, and go when it is gone.
#[test]
fn the_parent_cannot_be_purged_under_it() {
    let house = used();
    fork(&house, &fork_as("other"));
    let client = house.client();
    house
        .block(client.archive("coder", &Archive::default()))
        .unwrap();
    let refused = house.block(client.purge("coder", &Purge::default()));
    let Err(Error::Problem(problem)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(problem.kind, ProblemKind::Conflict);
    let said = format!("{problem:?}");
    assert!(said.contains("other") || said.contains(&house.show("other").id.to_string()));
    house.completed("other", "do: say still here");
    assert!(last_request(&house).contains("say one"));
    // A fork of one that was removed.
    house.block(client.fork("coder", &fork_as("late"))).unwrap();
    assert_eq!(house.show("late").summary.as_deref(), Some("two"));
    for name in ["other", "late"] {
        house
            .block(client.archive(name, &Archive::default()))
            .unwrap();
        house.block(client.purge(name, &Purge::default())).unwrap();
    }
    house
        .block(client.purge("coder", &Purge::default()))
        .unwrap();
    house.verify();
}

/// A daemon that dies while a fork is made: it is there whole, or not at all, and asking again makes one.
#[test]
fn a_daemon_that_dies_in_a_fork_leaves_one_or_none() {
    let house = used();
    for round in 0..6 {
        let name = format!("fork-{round}");
        let ask = Fork {
            op: Some(OpId::new(uuid::Uuid::now_v7())),
            ..fork_as(&name)
        };
        let (client, again) = (house.client(), ask.clone());
        let asked = house.spawn(async move { client.fork("coder", &ask).await });
        for _ in 0..round {
            house.show("coder");
        }
        house.kill_daemon();
        let _whatever = house.block(asked);
        house.start_daemon();
        let forked = fork(&house, &again);
        let events = house.events(&name);
        let began = |body: &Body| matches!(body, Body::ConversationBegan(_));
        assert_eq!(events.iter().filter(|it| began(&it.body)).count(), 1);
        assert_eq!(house.show(&name).id, forked.agent.id);
        house.completed(&name, "do: say mine");
        assert!(last_request(&house).contains("say two"));
    }
    house.verify();
}
