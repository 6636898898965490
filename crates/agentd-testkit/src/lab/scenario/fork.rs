//! A fork in mid-turn, while a question waits and a task runs in the background: the fork has neither, and is
//! told; both go on.

use super::{FORK, shell};
use crate::lab::reader;
use crate::lab::rest::is_quiet;
use crate::lab::world::{Result, World};
use serde_json::json;

const AGENT: &str = "worker";
const RULES: &str =
    "permissions:\n  - tool: shell\n    pattern: \"*tool asked*\"\n    decision: ask\n";

pub fn run(world: &World) -> Result<()> {
    world.create(AGENT, RULES)?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(world, AGENT));
        let done = turns(world);
        world.rest(&[AGENT, FORK])?;
        done
    })
}

fn turns(world: &World) -> Result<()> {
    world.ask(AGENT, "do: say the trunk")?;
    let background = json!({"command": world.tool("background", 400), "run_in_background": true});
    let asked = shell(&world.tool("asked", 20));
    let text = format!("do: call shell {background} ;; {asked} ;; say done");
    let number = world.send(AGENT, &text, &[])?;
    let waits = world.send(AGENT, "do: say it has waited", &[])?;
    world.until("a question", || {
        let shown = world.look(AGENT)?;
        let asks = shown["approvals"]
            .as_array()
            .is_some_and(|it| !it.is_empty());
        (asks || is_quiet(&shown) || shown["phase"] == "waiting").then_some(())
    })?;
    let op = world.op(1);
    for _ in 0..2 {
        let args = ["fork", AGENT, FORK, "--op", &op, "--json"];
        world.order(AGENT, "fork", Some(&op), &args)?;
    }
    world.know(&op, FORK);
    let own = shell(&world.tool("own", 20));
    world.ask(FORK, &format!("do: {own} ;; say a branch"))?;
    world.answer(number)?;
    world.answer(waits)?;
    world.ask(AGENT, "do: say the trunk goes on")?;
    world.ask(FORK, "do: say so does the branch")?;
    Ok(())
}
