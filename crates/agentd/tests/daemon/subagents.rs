//! Subagents: the parent gets the outcome exactly once, whichever agent or process is killed, reset or removed in
//! between.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Agent, Answer, Approve, Archive, List, Reset, Status, Stop};
use agentd_core::event::{Body, Event, Kind, SubagentEnded, SubagentOutcome};
use agentd_core::spec::{AgentSpec, Decision, Rule, Subagent};
use agentd_core::state::{AgentState, Phase};
use std::fs;
use std::time::Duration;

pub fn parent_spec(daemon: &TestDaemon) -> AgentSpec {
    let tools = ["shell", "agent"].map(str::to_owned);
    AgentSpec {
        tools: Some(tools.to_vec()),
        ..daemon.spec()
    }
}

/// A reply that starts a subagent.
pub fn start(prompt: &str, background: bool) -> String {
    let arguments = serde_json::json!({ "prompt": prompt, "run_in_background": background });
    format!("call agent {arguments}")
}

/// A prompt for a subagent: it works until the file `go` exists, and then answers `That was all.`
pub fn until_go() -> String {
    let command = "echo begun >> effects; while ! [ -e go ]; do sleep 0.02; done";
    let arguments = serde_json::json!({ "command": command });
    format!("do: call shell {arguments}")
}

pub fn go(daemon: &TestDaemon) {
    fs::write(daemon.work().join("go"), b"").unwrap();
}

pub fn daemon() -> TestDaemon {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    daemon.create_with("coder", parent_spec(&daemon));
    daemon
}

fn ends(daemon: &TestDaemon, name: &str) -> Vec<SubagentEnded> {
    let events = daemon.events(name).into_iter();
    let ends = events.filter_map(|event| match event.body {
        Body::SubagentEnded(ended) => Some(ended),
        _ => None,
    });
    ends.collect()
}

/// The result of the call that the model got.
fn results(daemon: &TestDaemon, name: &str) -> Vec<String> {
    let events = daemon.events(name).into_iter();
    let results = events.filter_map(|event: Event| match event.body {
        Body::ResultAdded(_) => Some(event.body.words().join("\n")),
        _ => None,
    });
    results.collect()
}

pub fn until_begun(daemon: &TestDaemon) {
    until("the subagent's command", || {
        (!daemon.effects().is_empty()).then_some(())
    });
}

fn until_outcome(daemon: &TestDaemon, outcome: SubagentOutcome) {
    daemon.until_event(
        "coder",
        |body| matches!(body, Body::SubagentEnded(ended) if ended.outcome == outcome),
    );
}

fn reset(daemon: &TestDaemon, name: &str, ask: &Reset) -> agentd_client::api::Receipt {
    daemon.block(daemon.client().reset(name, ask)).unwrap()
}

fn agents(daemon: &TestDaemon) -> usize {
    let list = List::default();
    let agents = daemon.block(daemon.client().agents(&list)).unwrap();
    agents.agents.len()
}

/// Checks that there was one subagent, that its end was reported once, and that all agents are idle.
pub fn check_told_once(daemon: &TestDaemon, answer: &Answer) {
    assert_eq!(
        answer.status,
        Status::Completed,
        "{answer:#?}\n{}",
        daemon.log()
    );
    assert_eq!(agents(daemon), 2, "{}", daemon.log());
    assert_eq!(daemon.count("coder", Kind::SubagentStarted), 1);
    let ended = ends(daemon, "coder");
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0].outcome, SubagentOutcome::Completed);
    until("that the subagent knows", || {
        (daemon.count("coder.1", Kind::ParentTold) == 1).then_some(())
    });
    assert!(daemon.effects().len() <= 1, "{:?}", daemon.effects());
    daemon.requests();
    daemon.verify();
}

#[test]
fn its_last_answer_is_the_calls_result() {
    let daemon = daemon();
    let call = start("do: say the sky is blue", false);
    let answer = daemon.completed("coder", &format!("do: {call} ;; say done"));
    assert_eq!(answer.text, "done");
    assert_eq!(results(&daemon, "coder"), ["the sky is blue"]);
    check_told_once(&daemon, &answer);
    let (parent, child) = (daemon.show("coder"), daemon.show("coder.1"));
    assert_eq!(
        child.parent.map(|it| (it.id, it.name)),
        Some((parent.id, Some("coder".to_owned())))
    );
    let [known] = &parent.children[..] else {
        panic!("{:?}", parent.children);
    };
    assert_eq!(
        (known.id, known.outcome),
        (child.id, Some(SubagentOutcome::Completed))
    );
    assert_eq!(ends(&daemon, "coder")[0].spent.requests, 1);
    let list = daemon
        .block(daemon.client().agents(&List::default()))
        .unwrap();
    let line = list.agents.iter().find(|it| it.name == "coder.1").unwrap();
    assert_eq!(line.parent.as_ref().map(|it| it.id), Some(parent.id));
    // It sees nothing of the parent's conversation, and cannot start subagents itself.
    let request = daemon.requests()[1].body.clone();
    assert_eq!(request["messages"].as_array().unwrap().len(), 1);
    let tools = request["tools"].to_string();
    assert!(
        tools.contains("shell") && !tools.contains("\"agent\""),
        "{tools}"
    );
}

#[test]
fn a_kind_has_its_own_prompt_and_an_unknown_one_is_told() {
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    let reviewer = Subagent {
        description: Some("Finds faults".to_owned()),
        model: Some("small-model".to_owned()),
        system: Some("You review.".to_owned()),
        ..Subagent::default()
    };
    spec.agents.insert("reviewer".to_owned(), reviewer);
    daemon.create_with("coder", spec);
    let call = |kind: &str| {
        let arguments = serde_json::json!({ "prompt": "do: say fine", "kind": kind });
        format!("call agent {arguments}")
    };
    let (good, bad) = (call("reviewer"), call("baker"));
    daemon.completed("coder", &format!("do: {good} ;; {bad} ;; say done"));
    let requests = daemon.requests();
    assert!(
        requests[0].body["tools"]
            .to_string()
            .contains("reviewer: Finds faults")
    );
    assert_eq!(requests[1].body["model"], "small-model");
    assert!(
        requests[1].body["system"]
            .to_string()
            .contains("You review.")
    );
    let results = results(&daemon, "coder");
    assert_eq!(results[0], "fine");
    assert!(results[1].contains("reviewer"), "{}", results[1]);
    assert_eq!(agents(&daemon), 2);
}

#[test]
fn in_the_background_its_answer_comes_as_a_prompt_once() {
    let daemon = daemon();
    let call = start(&until_go(), true);
    let answer = daemon.completed("coder", &format!("do: {call} ;; say left"));
    assert_eq!(answer.text, "left");
    assert_eq!(daemon.show("coder").children[0].outcome, None);
    go(&daemon);
    until_outcome(&daemon, SubagentOutcome::Completed);
    until("the next turn", || {
        (daemon.count("coder", Kind::TurnEnded) == 2).then_some(())
    });
    check_told_once(&daemon, &answer);
    let prompt = ends(&daemon, "coder")[0].prompt.unwrap();
    let taken = daemon.events("coder").into_iter().filter(
        |event| matches!(&event.body, Body::PromptsTaken(taken) if taken.prompts.contains(&prompt)),
    );
    assert_eq!(taken.count(), 1);
    let last = daemon.requests().last().unwrap().body.to_string();
    assert!(
        last.contains("coder.1") && last.contains("That was all."),
        "{last}"
    );
}

#[test]
fn several_work_side_by_side() {
    let daemon = daemon();
    let one = start(&until_go(), false);
    let two = start("do: say two", false);
    let sent = daemon.send("coder", &format!("do: {one} | {two} ;; say done"));
    // The second one ends while the first one works.
    until_outcome(&daemon, SubagentOutcome::Completed);
    assert_eq!(daemon.show("coder").phase, Phase::Running);
    go(&daemon);
    assert_eq!(daemon.answer("coder", sent.prompt).text, "done");
    let mut results = results(&daemon, "coder");
    results.sort();
    assert_eq!(results, ["That was all.", "two"]);
}

/// claude-code#54658: subagents were killed, or lost, with the agent that had started them.
#[test]
fn kills_of_any_of_the_three_lose_nothing() {
    for background in [false, true] {
        for victim in ["parent", "child", "daemon", "all"] {
            let daemon = daemon();
            let call = start(&until_go(), background);
            let sent = daemon.send("coder", &format!("do: {call} ;; say done"));
            until_begun(&daemon);
            if background {
                daemon.answer("coder", sent.prompt);
            }
            if matches!(victim, "parent" | "all") {
                daemon.kill_runtime("coder");
            }
            if matches!(victim, "child" | "all") {
                daemon.kill_runtime("coder.1");
            }
            if matches!(victim, "daemon" | "all") {
                daemon.kill_daemon();
                daemon.start_daemon();
            }
            go(&daemon);
            let answer = daemon.answer("coder", sent.prompt);
            until_outcome(&daemon, SubagentOutcome::Completed);
            if background {
                until("the next turn", || {
                    (daemon.count("coder", Kind::TurnEnded) == 2).then_some(())
                });
            }
            check_told_once(&daemon, &answer);
            println!("{victim}, background {background}: fine");
        }
    }
}

#[test]
fn depth_and_number_are_limited() {
    let daemon = TestDaemon::new();
    let mut spec = parent_spec(&daemon);
    spec.limits.max_children = 1;
    daemon.create_with("coder", spec);
    let (one, two) = (start(&until_go(), true), start("do: say two", false));
    daemon.completed("coder", &format!("do: {one} ;; {two} ;; say done"));
    let results = results(&daemon, "coder");
    assert!(
        results[1].contains("max_children") && results[1].contains("coder.1"),
        "{results:?}"
    );
    assert_eq!(agents(&daemon), 2);
    go(&daemon);
    until_outcome(&daemon, SubagentOutcome::Completed);
}

/// A subagent may have subagents, up to the depth that the topmost agent allows.
#[test]
fn those_below_a_subagent_go_as_deep_as_the_limit_and_no_deeper() {
    let daemon = TestDaemon::new();
    let mut spec = parent_spec(&daemon);
    spec.limits.max_depth = 2;
    daemon.create_with("coder", spec);
    let nested = |prompt: &str| format!("do: {}", start(prompt, false));
    let deepest = nested("do: say too deep");
    let prompt = format!("{} ;; say done", nested(&nested(&deepest)));
    daemon.completed("coder", &prompt);
    assert_eq!(agents(&daemon), 3);
    let refused = results(&daemon, "coder.1.1");
    // The deepest is not even given the tool.
    assert!(refused[0].contains("Unknown tool `agent`"), "{refused:?}");
    assert_eq!(results(&daemon, "coder"), ["That was all."]);
    let text = |args: &[&str]| {
        let output = daemon.cli(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let tree = text(&["list", "--tree"]);
    let names: Vec<&str> = tree
        .lines()
        .filter(|line| line.contains("coder"))
        .map(|line| {
            line.split_whitespace()
                .find(|word| word.contains("coder"))
                .unwrap()
        })
        .collect();
    assert_eq!(names, ["coder", "coder.1", "coder.1.1"], "{tree}");
    let indent = |name: &str| {
        let line = tree.lines().find(|line| {
            let mut words = line.split_whitespace();
            words.any(|word| word == name)
        });
        line.unwrap().find("coder").unwrap()
    };
    assert!(
        indent("coder") < indent("coder.1") && indent("coder.1") < indent("coder.1.1"),
        "{tree}"
    );
    daemon.verify();
}

/// The caller of the parent supplied the key. After its process and the daemon died, the child gets the key from the
/// parent's process.
#[test]
fn a_child_has_its_key_again_after_the_daemon_and_its_own_process_died() {
    let daemon = TestDaemon::new();
    daemon.create_with("coder", parent_spec(&daemon));
    let sent = daemon.send(
        "coder",
        &format!("do: {} ;; say done", start(&until_go(), false)),
    );
    until_begun(&daemon);
    let child = until("a process", || daemon.pid("coder.1"));
    daemon.kill_daemon();
    crate::test_daemon::kill(child, rustix::process::Signal::KILL);
    daemon.start_daemon();
    go(&daemon);
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Completed
    );
    assert_eq!(results(&daemon, "coder"), ["That was all."]);
    daemon.verify();
}

/// The child has lost its key. The parent's turn, which waits for the child, does not report that by itself.
#[test]
fn whoever_waits_for_the_parent_is_told_that_its_subagent_needs_a_key() {
    let daemon = TestDaemon::new();
    daemon.create_with("coder", parent_spec(&daemon));
    let sent = daemon.send(
        "coder",
        &format!("do: {} ;; say done", start(&until_go(), false)),
    );
    until_begun(&daemon);
    let processes = ["coder", "coder.1"].map(|name| until("a process", || daemon.pid(name)));
    daemon.kill_daemon();
    for process in processes {
        crate::test_daemon::kill(process, rustix::process::Signal::KILL);
    }
    daemon.start_daemon();
    go(&daemon);
    until("it", || {
        (daemon.show("coder").phase == Phase::Waiting).then_some(())
    });
    let prompt = sent.prompt.to_string();
    for wait in [&["wait", "coder"][..], &["wait", "coder", &prompt]] {
        // Its caller has no key either.
        let wait = daemon.command().args(wait).output().unwrap();
        let said = String::from_utf8_lossy(&wait.stderr).into_owned();
        assert_eq!(wait.status.code(), Some(6), "{said}");
        let names = ["coder.1", "ANTHROPIC_API_KEY", "`agentd continue coder`"];
        assert!(names.iter().all(|name| said.contains(name)), "{said}");
    }
    // First the one, then the other: each has a process of its own, and each of them needs it.
    let status = until("its end", || {
        daemon.cli(&["continue", "coder"]);
        let (client, moment) = (daemon.client(), Duration::from_millis(500));
        let answer = daemon.block(client.answer("coder", sent.prompt, moment));
        let status = answer.unwrap().status;
        status.is_over().then_some(status)
    });
    assert_eq!(status, Status::Completed);
    assert_eq!(results(&daemon, "coder"), ["That was all."]);
    daemon.verify();
}

/// A client that waits for the parent is told that the user must approve a call, and of which subagent.
#[test]
fn whoever_waits_for_the_parent_is_told_that_its_subagent_needs_leave() {
    let daemon = TestDaemon::new();
    let agent = asking(&daemon);
    until("it", || {
        (daemon.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    let wait = daemon.cli(&["wait", "coder"]);
    let said = String::from_utf8_lossy(&wait.stderr).into_owned();
    assert_eq!(wait.status.code(), Some(6), "{said}");
    assert!(said.contains("agentd approve coder"), "{said}");
    let prompt = daemon
        .events("coder")
        .into_iter()
        .find_map(|event| match event.body {
            Body::PromptQueued(queued) => Some(queued.prompt),
            _ => None,
        });
    let wait = daemon.cli(&["wait", "coder", &prompt.unwrap().to_string()]);
    let said = String::from_utf8_lossy(&wait.stderr).into_owned();
    assert_eq!(wait.status.code(), Some(6), "{said}");
    assert!(
        said.contains("coder.1") && said.contains("agentd approve coder"),
        "{said}"
    );
    let approved = daemon.cli(&["approve", "coder"]);
    assert!(approved.status.success(), "{approved:?}");
    let wait = daemon.cli(&["wait", "coder"]);
    assert!(wait.status.success(), "{wait:?}");
    assert_eq!(daemon.effects(), ["ran"]);
    assert_eq!(agent.approvals.len(), 1);
}

/// Regression: `list` showed such a parent as running, and `show` as waiting.
#[test]
fn the_list_shows_a_parent_as_waiting_while_its_subagent_asks() {
    let daemon = TestDaemon::new();
    asking(&daemon);
    until("it", || {
        (daemon.show("coder").phase == Phase::AwaitingApproval).then_some(())
    });
    let list = daemon
        .block(daemon.client().agents(&List::default()))
        .unwrap();
    let line = list.agents.iter().find(|line| line.name == "coder");
    assert_eq!(line.unwrap().phase, Phase::AwaitingApproval);
    let denied = daemon.cli(&["deny", "coder"]);
    assert!(denied.status.success(), "{denied:?}");
}

/// A client that is already waiting is told when the approval is requested.
#[test]
fn a_send_that_waits_ends_when_a_subagent_needs_leave() {
    let daemon = TestDaemon::new();
    let mut spec = parent_spec(&daemon);
    spec.permissions = vec![Rule {
        tool: "shell".to_owned(),
        pattern: None,
        decision: Decision::Ask,
        needs: Vec::new(),
    }];
    daemon.create_with("coder", spec);
    let command = serde_json::json!({ "command": "echo ran >> effects" });
    let prompt = start(&format!("do: call shell {command}"), false);
    let sent = daemon.cli(&["send", "coder", &format!("do: {prompt} ;; say done")]);
    let said = String::from_utf8_lossy(&sent.stderr).into_owned();
    assert_eq!(sent.status.code(), Some(6), "{said}");
    assert!(said.contains("coder.1"), "{said}");
    let denied = daemon.cli(&["deny", "coder"]);
    assert!(denied.status.success(), "{denied:?}");
    let wait = daemon.cli(&["wait", "coder"]);
    assert!(wait.status.success(), "{wait:?}");
    assert_eq!(daemon.effects().len(), 0);
}

/// Two children cannot both spend the last dollar of `limits.subtree`.
#[test]
fn all_of_them_together_stay_within_the_subtrees_budget() {
    let daemon = TestDaemon::new();
    let mut spec = parent_spec(&daemon);
    spec.limits.subtree.tokens = Some(20_000);
    daemon.create_with("coder", spec);
    let calls: Vec<String> = (0..5).map(|_| start("do: say x", false)).collect();
    daemon.ask("coder", &format!("do: {} ;; say done", calls.join(" | ")));
    let events = daemon.events("coder");
    let leases = events.iter().filter_map(|event| match &event.body {
        Body::SubagentStarted(started) => started.lease.tokens,
        _ => None,
    });
    assert!(leases.count() > 1);
    // At no moment can the agents together spend more than the budget.
    let mut state = AgentState::new(daemon.show("coder").id);
    for event in &events {
        state.apply(event);
        let most = state.subtree_spent().usage.total();
        assert!(most <= 20_000, "{}: {most}", event.seq);
    }
    let spent: u64 = ends(&daemon, "coder")
        .iter()
        .map(|ended| ended.spent.usage.total())
        .sum();
    let own = daemon.show("coder").usage;
    assert!(spent + own.input_tokens + own.output_tokens <= 20_000);
    // Its lease has ended: it cannot pay for another prompt.
    let child = daemon.show("coder.1");
    assert_eq!(
        child.last_turn.unwrap().status,
        agentd_core::event::TurnStatus::Completed
    );
    assert_eq!(
        daemon.ask("coder.1", "do: say more").status,
        Status::Limited
    );
}

#[test]
fn a_reset_of_the_parent_stops_those_it_waits_for_and_keeps_the_others() {
    let daemon = daemon();
    let behind = start(&until_go(), true);
    daemon.completed("coder", &format!("do: {behind} ;; say left"));
    let before = start("do: hang", false);
    let sent = daemon.send("coder", &format!("do: {before} ;; say done"));
    until("the second one", || {
        let child = daemon.block(daemon.client().agent("coder.2")).ok()?;
        child.turn.map(drop)
    });
    let receipt = reset(&daemon, "coder", &Reset::default());
    assert_eq!(
        daemon.answer("coder", sent.prompt).status,
        Status::Interrupted
    );
    assert_eq!(receipt.killed.subagents, ["coder.2"]);
    assert_eq!(receipt.kept_subagents, ["coder.1"]);
    assert_eq!(
        ends(&daemon, "coder")[0].outcome,
        SubagentOutcome::Interrupted
    );
    until("its end", || {
        (daemon.show("coder.2").phase == Phase::Stopped).then_some(())
    });
    // The new conversation knows of the other one, and gets its answer.
    go(&daemon);
    until_outcome(&daemon, SubagentOutcome::Completed);
    until("the next turn", || {
        let conversation = daemon.show("coder").conversation.unwrap();
        (conversation.id == receipt.new && conversation.turns == 1).then_some(())
    });
    until("its end", || {
        (daemon.show("coder").phase == Phase::Idle).then_some(())
    });
    let last = daemon.requests().last().unwrap().body.to_string();
    assert!(
        last.contains("continue in the background") && last.contains("That was all."),
        "{last}"
    );
    daemon.verify();
}

#[test]
fn all_are_ended_where_the_reset_or_stop_says_so() {
    for is_reset in [true, false] {
        let daemon = daemon();
        daemon.completed(
            "coder",
            &format!("do: {} ;; say left", start(&until_go(), true)),
        );
        until_begun(&daemon);
        if is_reset {
            let ask = Reset {
                kill_background: true,
                ..Reset::default()
            };
            let receipt = reset(&daemon, "coder", &ask);
            assert_eq!(receipt.killed.subagents, ["coder.1"]);
        } else {
            let ask = Stop {
                kill_background: true,
                ..Stop::default()
            };
            daemon.block(daemon.client().stop("coder", &ask)).unwrap();
        }
        let ended = ends(&daemon, "coder");
        assert_eq!(ended.len(), 1);
        assert_eq!(
            (ended[0].outcome, ended[0].prompt),
            (SubagentOutcome::Interrupted, None)
        );
        assert_eq!(daemon.show("coder").queued, 0);
        assert_eq!(daemon.show("coder.1").phase, Phase::Stopped);
    }
}

#[test]
fn a_reset_of_the_subagent_or_its_removal_is_told() {
    for outcome in [SubagentOutcome::Reset, SubagentOutcome::Deleted] {
        let daemon = daemon();
        let sent = daemon.send(
            "coder",
            &format!("do: {} ;; say done", start(&until_go(), false)),
        );
        until_begun(&daemon);
        if outcome == SubagentOutcome::Reset {
            reset(&daemon, "coder.1", &Reset::default());
        } else {
            daemon
                .block(daemon.client().archive("coder.1", &Archive::default()))
                .unwrap();
        }
        let answer = daemon.answer("coder", sent.prompt);
        assert_eq!(answer.status, Status::Completed, "{answer:?}");
        let ended = ends(&daemon, "coder");
        assert_eq!((ended.len(), ended[0].outcome), (1, outcome));
        assert_eq!(results(&daemon, "coder").len(), 1);
        let words = if outcome == SubagentOutcome::Reset {
            "reset"
        } else {
            "removed"
        };
        assert!(results(&daemon, "coder")[0].contains(words));
        daemon.requests();
        daemon.verify();
    }
}

fn asking(daemon: &TestDaemon) -> Agent {
    let mut spec = parent_spec(daemon);
    spec.permissions = vec![Rule {
        tool: "shell".to_owned(),
        pattern: None,
        decision: Decision::Ask,
        needs: Vec::new(),
    }];
    daemon.create_with("coder", spec);
    let command = serde_json::json!({ "command": "echo ran >> effects" });
    let prompt = format!("do: call shell {command}");
    daemon.send(
        "coder",
        &format!("do: {} ;; say done", start(&prompt, false)),
    );
    until("a question", || {
        let agent = daemon.show("coder");
        (!agent.approvals.is_empty()).then_some(agent)
    })
}

/// codex#29058: a pending approval was lost.
#[test]
fn a_question_of_the_subagents_is_answered_at_the_parents_after_any_restart() {
    let daemon = TestDaemon::empty();
    daemon.daemon_has_keys();
    daemon.start_daemon();
    let agent = asking(&daemon);
    assert_eq!(
        agent.approvals[0]
            .agent
            .as_ref()
            .and_then(|it| it.name.as_deref()),
        Some("coder.1")
    );
    assert!(agent.error.unwrap().contains("coder.1"));
    assert_eq!(daemon.show("coder.1").phase, Phase::AwaitingApproval);
    daemon.kill_runtime("coder");
    daemon.kill_daemon();
    daemon.start_daemon();
    let approval = daemon.show("coder").approvals[0].id;
    daemon
        .block(
            daemon
                .client()
                .approve("coder", approval, &Approve::default()),
        )
        .unwrap();
    until_outcome(&daemon, SubagentOutcome::Completed);
    assert_eq!(daemon.effects(), ["ran"]);
    assert_eq!(daemon.show("coder").approvals, []);
    until("its end", || {
        (daemon.show("coder").phase == Phase::Idle).then_some(())
    });
    assert_eq!(results(&daemon, "coder"), ["That was all."]);
}

#[test]
fn the_question_is_withdrawn_when_the_parent_is_reset() {
    let daemon = TestDaemon::new();
    asking(&daemon);
    reset(&daemon, "coder", &Reset::default());
    assert_eq!(daemon.show("coder").approvals, []);
    assert_eq!(daemon.show("coder.1").approvals, []);
    assert_eq!(daemon.effects(), [""; 0]);
    assert_eq!(
        ends(&daemon, "coder")[0].outcome,
        SubagentOutcome::Interrupted
    );
}

#[test]
fn subagents_are_put_away_with_their_parent() {
    let daemon = daemon();
    daemon.completed(
        "coder",
        &format!("do: {} ;; say left", start(&until_go(), true)),
    );
    until_begun(&daemon);
    let removed = daemon
        .block(daemon.client().archive("coder", &Archive::default()))
        .unwrap();
    assert_eq!(removed.ended.subagents, ["coder.1"]);
    assert_eq!(agents(&daemon), 0);
    assert!(daemon.show("coder.1").archived);
    until("its process", || {
        let left = daemon.processes();
        (!left.iter().any(|(_, line)| line.contains("sleep 0.02"))).then_some(())
    });
    daemon.verify();
}

/// The parent's process ends, and its next process waits for the subagent.
#[test]
fn a_daemon_that_stops_takes_nobody_with_it() {
    let daemon = daemon();
    let sent = daemon.send(
        "coder",
        &format!("do: {} ;; say done", start(&until_go(), false)),
    );
    until_begun(&daemon);
    let stop = daemon.client();
    go(&daemon);
    daemon.block(stop.stop_daemon()).unwrap();
    until("its end", || daemon.block(daemon.client().daemon()).err());
    daemon.start_daemon();
    let answer = daemon.answer("coder", sent.prompt);
    check_told_once(&daemon, &answer);
}
