//! Subagents: one that the turn waits for, one in the background whose answer comes as a prompt, and both of
//! them while their parent is reset. The end of each is reported once.

use crate::lab::idle::is_idle;
use crate::lab::reader;
use crate::lab::testbed::{Result, Testbed};
use serde_json::{Value, json};

const AGENT: &str = "worker";
const KINDS: &str = "tools: [shell, agent]\nagents:\n  helper:\n    system: You help.\n    \
                     budget: {tokens: 100000}\nlimits:\n  subtree: {tokens: 1000000}\n";

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, KINDS)?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed);
        let names = children(testbed)?;
        let mut all = vec![AGENT];
        all.extend(names.iter().map(String::as_str));
        testbed.wait_idle(&all)?;
        done
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    let first = start(testbed, "front", 50, false);
    ask(testbed, &format!("do: {first} ;; say the first is done"))?;
    let second = start(testbed, "behind", 100, true);
    ask(testbed, &format!("do: {second} ;; say it works on"))?;
    until_all_ended(testbed)?;
    // One is waited for and one is not, and the conversation changes in between.
    let (third, fourth) = (
        start(testbed, "third", 1500, false),
        start(testbed, "fourth", 400, true),
    );
    let number = testbed.send(AGENT, &format!("do: {fourth} | {third} ;; say never"), &[])?;
    testbed.until("two more", || {
        let shown = testbed.look(AGENT)?;
        let known = shown["children"].as_array().map_or(0, Vec::len);
        give_keys(testbed, &shown)?;
        (known >= 4 || is_idle(&shown)).then_some(())
    })?;
    testbed.reset(AGENT, "reset", &testbed.op(1), &[])?;
    testbed.answer(number)?;
    ask(testbed, "do: say the new one")?;
    until_all_ended(testbed)
}

/// Sends a prompt and waits for its end; meanwhile a subagent may need a key.
fn ask(testbed: &Testbed, text: &str) -> Result<()> {
    let number = testbed.send(AGENT, text, &[])?;
    testbed.until("the turn", || {
        let shown = testbed.look(AGENT)?;
        give_keys(testbed, &shown)?;
        is_idle(&shown).then_some(())
    })?;
    testbed.answer(number).map(drop)
}

/// A reply that starts a subagent, which runs a command of this duration.
fn start(testbed: &Testbed, word: &str, millis: u64, background: bool) -> String {
    let command = json!({"command": testbed.tool(word, millis)});
    let prompt = format!("do: call shell {command}");
    let call = json!({"prompt": prompt, "run_in_background": background, "kind": "helper"});
    format!("call agent {call}")
}

/// Waits until all subagents have ended, and their parent has recorded it.
fn until_all_ended(testbed: &Testbed) -> Result<()> {
    testbed.until("the subagents", || {
        let shown = testbed.look(AGENT)?;
        let working = give_keys(testbed, &shown)?;
        (working == 0 && is_idle(&shown)).then_some(())
    })
}

/// Gives a key to those that wait for one: the client that had it may be dead. Returns how many subagents work.
fn give_keys(testbed: &Testbed, shown: &Value) -> Option<usize> {
    let children = shown["children"].as_array().into_iter().flatten();
    let working = children.filter(|it| it["outcome"].is_null());
    let working: Vec<&str> = working.filter_map(|it| it["name"].as_str()).collect();
    for name in &working {
        give_key(testbed, name, &testbed.look(name)?);
    }
    give_key(testbed, AGENT, shown);
    Some(working.len())
}

fn give_key(testbed: &Testbed, agent: &str, shown: &Value) {
    if shown["phase"] == "waiting" {
        let _later = testbed.order(agent, "continue", None, &["continue", agent, "--json"]);
    }
}

/// Adds the subagents to the record; returns their names.
fn children(testbed: &Testbed) -> Result<Vec<String>> {
    let shown = testbed.until("the subagents", || testbed.look(AGENT))?;
    let mut names = Vec::new();
    for child in shown["children"].as_array().into_iter().flatten() {
        let (id, name) = (child["id"].as_str(), child["name"].as_str());
        if let (Some(id), Some(name)) = (id, name) {
            testbed.know(id, name);
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
