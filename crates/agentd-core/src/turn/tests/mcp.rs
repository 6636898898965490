//! The tools of MCP servers: found before the first request of a turn, and stable within it.

use super::harness::{Rig, Seen as Done, allowed, calls, finishes, says};
use crate::event::{McpLifeCycle, McpTool};
use crate::mcp::{Known, Offer, Seen, Trouble};
use crate::message::CallOutcome;
use crate::turn::Input;
use serde_json::json;
use std::collections::BTreeSet;

const CALL: &str = "call_2_1_0";

fn known(settings: &str) -> Known {
    Known {
        name: "fs".to_owned(),
        settings: settings.to_owned(),
        read_only: BTreeSet::from(["get.info".to_owned()]),
    }
}

fn rig() -> Rig {
    Rig::with(|_, policy| policy.mcp = vec![known("1")])
}

fn offers(rig: &mut Rig, tools: &[&str]) -> Done {
    let offer = offer(tools);
    seen(rig, Ok(offer))
}

fn offer(tools: &[&str]) -> Offer {
    let tools = tools.iter().map(|name| McpTool {
        name: (*name).to_owned(),
        description: "A tool.".to_owned(),
        parameters: json!({"type": "object", "properties": {}}),
    });
    Offer {
        life_cycle: McpLifeCycle::Handshake,
        tools: tools.collect(),
    }
}

fn fails(rig: &mut Rig, text: &str) -> Done {
    seen(rig, Err(Trouble::Failed(text.to_owned())))
}

fn seen(rig: &mut Rig, outcome: Result<Offer, Trouble>) -> Done {
    let look = rig.machine.live.looks.newest;
    let seen = vec![Seen {
        server: "fs".to_owned(),
        settings: "1".to_owned(),
        outcome,
    }];
    rig.give(Input::McpSeen { look, seen })
}

fn nothing_new(rig: &mut Rig) -> Done {
    let (look, seen) = (rig.machine.live.looks.newest, Vec::new());
    rig.give(Input::McpSeen { look, seen })
}

fn sent_tools(rig: &Rig) -> Vec<String> {
    let (_, request) = rig.sent.last().unwrap();
    let tools = request.context.tools.iter();
    tools.map(|tool| tool.name.clone()).collect()
}

#[test]
fn an_unknown_list_is_waited_for_and_durable_before_the_request() {
    let mut rig = rig();
    rig.prompt("hi")
        .does(["append turn_started, prompts_taken", "list mcp fs"]);
    offers(&mut rig, &["look"]).does([
        "append mcp_listed",
        "append context",
        "append request_sent 2.1",
        "send 2.1",
    ]);
    assert_eq!(sent_tools(&rig), ["shell", "read", "mcp__fs__look"]);
    rig.on(says("hello")).completes();
    // It is known now, so it is not worth a wait; nothing new means nothing to write.
    rig.prompt("again").ends_with("list mcp ");
    nothing_new(&mut rig).does(["append request_sent 2.2", "send 2.2"]);
    assert_eq!(sent_tools(&rig), ["shell", "read", "mcp__fs__look"]);
}

#[test]
fn a_list_counts_from_the_next_turn_on() {
    let mut rig = rig();
    rig.prompt("hi").ends_with("list mcp fs");
    offers(&mut rig, &["look"]).ends_with("send 2.1");
    rig.on(calls(&["shell"]));
    rig.on(allowed(CALL));
    // Not asked again within the turn.
    rig.on(finishes(CALL, CallOutcome::Ok))
        .ends_with("send 2.2");
    assert_eq!(sent_tools(&rig), ["shell", "read", "mcp__fs__look"]);
    rig.on(says("done")).completes();
    rig.prompt("again").ends_with("list mcp ");
    offers(&mut rig, &["look", "write"]).does([
        "append mcp_listed",
        "append context",
        "append request_sent 2.3",
        "send 2.3",
    ]);
    assert_eq!(
        sent_tools(&rig),
        ["shell", "read", "mcp__fs__look", "mcp__fs__write"]
    );
}

#[test]
fn a_problem_is_told_once_and_a_list_takes_it_back() {
    let mut rig = rig();
    rig.prompt("hi").ends_with("list mcp fs");
    fails(&mut rig, "It is gone.").does([
        "append mcp_listed",
        "append context",
        "append request_sent 2.1",
        "send 2.1",
    ]);
    let (_, request) = rig.sent.last().unwrap();
    assert!(format!("{:?}", request.messages).contains("It is gone."));
    rig.on(says("hello")).completes();
    rig.prompt("again").ends_with("list mcp fs");
    fails(&mut rig, "It is gone.").does(["append request_sent 2.2", "send 2.2"]);
    rig.on(says("hello")).completes();
    rig.prompt("again").ends_with("list mcp fs");
    offers(&mut rig, &["look"]).ends_with("send 2.3");
    rig.on(says("hello")).completes();
    // A known list still counts when the server fails later.
    rig.prompt("again").ends_with("list mcp ");
    fails(&mut rig, "It is gone.").does(["append request_sent 2.4", "send 2.4"]);
    assert_eq!(sent_tools(&rig), ["shell", "read", "mcp__fs__look"]);
}

/// A reason that differs at each attempt, like one with a time in it, is told once; a reason is better than none.
#[test]
fn a_problem_that_changes_is_not_told_again() {
    let mut rig = rig();
    rig.prompt("hi").ends_with("list mcp fs");
    seen(&mut rig, Err(Trouble::Late)).ends_with("send 2.1");
    rig.on(says("hello")).completes();
    rig.prompt("again").ends_with("list mcp fs");
    fails(&mut rig, "It is gone, at 12:00.").does([
        "append mcp_listed",
        "append request_sent 2.2",
        "send 2.2",
    ]);
    rig.on(says("hello")).completes();
    for (n, outcome) in [(3, "It is gone, at 12:01."), (4, "It is gone, at 12:02.")] {
        rig.prompt("again").ends_with("list mcp fs");
        let done = fails(&mut rig, outcome);
        done.does([
            format!("append request_sent 2.{n}").as_str(),
            format!("send 2.{n}").as_str(),
        ]);
        rig.on(says("hello")).completes();
    }
    rig.prompt("again").ends_with("list mcp fs");
    seen(&mut rig, Err(Trouble::Late)).does(["append request_sent 2.5", "send 2.5"]);
}

/// The server has said that its list changed, and says so once: the list that the interrupted turn asked for counts in the
/// next one, and no look answers another turn's.
#[test]
fn a_list_of_an_interrupted_turn_is_not_lost() {
    let mut rig = rig();
    rig.prompt("hi").ends_with("list mcp fs");
    offers(&mut rig, &["look"]).ends_with("send 2.1");
    rig.on(says("hello")).completes();
    rig.prompt("again").ends_with("list mcp ");
    let first = rig.machine.live.looks.newest;
    rig.give(Input::Interrupt);
    assert!(rig.machine.agent().turn.is_none());
    rig.prompt("once more").ends_with("list mcp ");
    let changed = |look: u64, tools: &[&str]| Input::McpSeen {
        look,
        seen: vec![Seen {
            server: "fs".to_owned(),
            settings: "1".to_owned(),
            outcome: Ok(offer(tools)),
        }],
    };
    // The turn still waits for its own look.
    rig.give(changed(first, &["look", "write"])).does([]);
    nothing_new(&mut rig).does([
        "append mcp_listed",
        "append context",
        "append request_sent 2.2",
        "send 2.2",
    ]);
    let with_write = ["shell", "read", "mcp__fs__look", "mcp__fs__write"];
    assert_eq!(sent_tools(&rig), with_write);
    rig.on(says("hello")).completes();
    // An older list does not replace a newer one.
    rig.give(changed(first, &["look"])).does([]);
    rig.prompt("and again").ends_with("list mcp ");
    nothing_new(&mut rig).does(["append request_sent 2.3", "send 2.3"]);
    assert_eq!(sent_tools(&rig), with_write);
}

/// The user marked `get.info`. A tool that gets its name in requests is not marked by that.
#[test]
fn a_mark_counts_for_the_tool_of_that_own_name_only() {
    for (own, runs_beside) in [("get.info", true), ("get_info", false)] {
        let mut rig = rig();
        rig.prompt("hi").ends_with("list mcp fs");
        offers(&mut rig, &[own]).ends_with("send 2.1");
        assert_eq!(sent_tools(&rig)[2], "mcp__fs__get_info");
        assert_eq!(
            rig.machine.is_parallel("mcp__fs__get_info"),
            runs_beside,
            "{own}"
        );
        assert!(!rig.machine.is_parallel("mcp__fs__other"));
    }
}
