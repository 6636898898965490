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
    world.ask(AGENT, &format!("do: {first} ;; say the first is done"))?;
    let second = start(world, "behind", 100, true);
    world.ask(AGENT, &format!("do: {second} ;; say it works on"))?;
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
        give_key(world, AGENT, &shown);
        (known >= 4 || is_quiet(&shown)).then_some(())
    })?;
    world.reset(AGENT, "reset", &world.op(1), &[])?;
    world.answer(number)?;
    world.ask(AGENT, "do: say the new one")?;
    until_all_ended(world)
}

/// A reply that starts a subagent, which runs a command that takes so long.
fn start(world: &World, word: &str, millis: u64, background: bool) -> String {
    let command = json!({"command": world.tool(word, millis)});
    let prompt = format!("do: call shell {command}");
    let call = json!({"prompt": prompt, "background": background, "kind": "helper"});
    format!("call agent {call}")
}

/// Waits until all subagents are over. One that waits for a key is given it.
fn until_all_ended(world: &World) -> Result<()> {
    world.until("the subagents", || {
        let shown = world.look(AGENT)?;
        let working = shown["children"].as_array().cloned().unwrap_or_default();
        let mut is_over = is_quiet(&shown);
        for child in working.iter().filter(|it| it["outcome"].is_null()) {
            is_over = false;
            let name = child["name"].as_str().unwrap_or_default();
            give_key(world, name, &world.look(name)?);
        }
        give_key(world, AGENT, &shown);
        is_over.then_some(())
    })
}

/// Whoever had the key of one that waits may be dead.
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
