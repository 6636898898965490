//! Subagents: one that the turn waits for, one in the background whose answer comes as a prompt, and both of
//! them while their parent is reset. How each ended is told once.

use crate::lab::reader;
use crate::lab::rest::is_quiet;
use crate::lab::world::{Result, World};
use serde_json::{Value, json};

const AGENT: &str = "worker";
const KINDS: &str = "tools: [shell, agent]\nagents:\n  helper:\n    system: You help.\n    \
                     budget: {tokens: 100000}\nlimits:\n  subtree: {tokens: 1000000}\n";

pub fn run(world: &World) -> Result<()> {
    world.create(AGENT, KINDS)?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(world, AGENT));
        let done = turns(world);
        let names = children(world)?;
        let mut all = vec![AGENT];
        all.extend(names.iter().map(String::as_str));
        world.rest(&all)?;
        done
    })
}

fn turns(world: &World) -> Result<()> {
    let first = start(world, "front", 50, false);
    ask(world, &format!("do: {first} ;; say the first is done"))?;
    let second = start(world, "behind", 100, true);
    ask(world, &format!("do: {second} ;; say it works on"))?;
    until_all_ended(world)?;
    // One is waited for and one is not, and the conversation is another one meanwhile.
    let (third, fourth) = (
        start(world, "third", 1500, false),
        start(world, "fourth", 400, true),
    );
    let number = world.send(AGENT, &format!("do: {fourth} | {third} ;; say never"), &[])?;
    world.until("two more", || {
        let shown = world.look(AGENT)?;
        let known = shown["children"].as_array().map_or(0, Vec::len);
        give_keys(world, &shown)?;
        (known >= 4 || is_quiet(&shown)).then_some(())
    })?;
    world.reset(AGENT, "reset", &world.op(1), &[])?;
    world.answer(number)?;
    ask(world, "do: say the new one")?;
    until_all_ended(world)
}

/// Sends a prompt and waits for its end, which may take that one of the subagents is given a key.
fn ask(world: &World, text: &str) -> Result<()> {
    let number = world.send(AGENT, text, &[])?;
    world.until("the turn", || {
        let shown = world.look(AGENT)?;
        give_keys(world, &shown)?;
        is_quiet(&shown).then_some(())
    })?;
    world.answer(number).map(drop)
}

/// A reply that starts a subagent, which runs a command that takes so long.
fn start(world: &World, word: &str, millis: u64, background: bool) -> String {
    let command = json!({"command": world.tool(word, millis)});
    let prompt = format!("do: call shell {command}");
    let call = json!({"prompt": prompt, "run_in_background": background, "kind": "helper"});
    format!("call agent {call}")
}

/// Waits until all subagents are over, and their parent has heard of it.
fn until_all_ended(world: &World) -> Result<()> {
    world.until("the subagents", || {
        let shown = world.look(AGENT)?;
        let working = give_keys(world, &shown)?;
        (working == 0 && is_quiet(&shown)).then_some(())
    })
}

/// Gives those that wait for a key one: whoever had it may be dead. How many subagents work.
fn give_keys(world: &World, shown: &Value) -> Option<usize> {
    let children = shown["children"].as_array().into_iter().flatten();
    let working = children.filter(|it| it["outcome"].is_null());
    let working: Vec<&str> = working.filter_map(|it| it["name"].as_str()).collect();
    for name in &working {
        give_key(world, name, &world.look(name)?);
    }
    give_key(world, AGENT, shown);
    Some(working.len())
}

fn give_key(world: &World, agent: &str, shown: &Value) {
    if shown["phase"] == "waiting" {
        let _later = world.order(agent, "continue", None, &["continue", agent, "--json"]);
    }
}

/// Takes the subagents into the record; their names.
fn children(world: &World) -> Result<Vec<String>> {
    let shown = world.until("the subagents", || world.look(AGENT))?;
    let mut names = Vec::new();
    for child in shown["children"].as_array().into_iter().flatten() {
        let (id, name) = (child["id"].as_str(), child["name"].as_str());
        if let (Some(id), Some(name)) = (id, name) {
            world.know(id, name);
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
