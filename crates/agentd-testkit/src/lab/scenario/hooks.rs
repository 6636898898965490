//! Hooks for all that a turn and a reset have: each hears of each thing once. One of them refuses a call, and
//! one has words for each conversation that begins.

use super::shell;
use crate::lab::reader;
use crate::lab::world::{Result, World};
use serde_json::json;

const AGENT: &str = "worker";
const EVENTS: [&str; 9] = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "PreCompact",
    "PreReset",
];

pub fn run(world: &World) -> Result<()> {
    world.hooks(&EVENTS)?;
    world.expect("hooks_with_traces", json!(EVENTS));
    world.create(AGENT, "")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(world, AGENT));
        let done = turns(world).and_then(|()| until_reported(world));
        world.rest(&[AGENT])?;
        done
    })
}

fn turns(world: &World) -> Result<()> {
    let fine = shell(&world.tool("fine", 20));
    let forbidden = shell(&world.tool("forbidden", 20));
    let text = format!("do: say first | {fine} ;; {forbidden} ;; say one of them was refused");
    world.ask(AGENT, &text)?;
    world.compact(AGENT, &world.op(1))?;
    world.ask(AGENT, "do: say after the summary")?;
    world.reset(AGENT, "reset", &world.op(2), &[])?;
    world.ask(AGENT, "do: say the new one")?;
    world.reset(AGENT, "undo", &world.op(3), &[])?;
    world.ask(AGENT, "do: say the old one again")?;
    Ok(())
}

/// Waits until all that were told are done: nobody waits for some of them.
fn until_reported(world: &World) -> Result<()> {
    world.until("the hooks", || {
        let Some(events) = world.events(AGENT) else {
            world.look(AGENT);
            return None;
        };
        let count = |kind: &str| events.iter().filter(|it| it["kind"] == kind).count();
        (count("hook_started") == count("hook_ended")).then_some(())
    })
}
