//! Reset, undo and redo, with a prompt that waits; each is asked for twice under one id, and done once.

use super::shell;
use crate::lab::reader;
use crate::lab::world::{Result, World};

const AGENT: &str = "worker";

pub fn run(world: &World) -> Result<()> {
    world.create(AGENT, "")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(world, AGENT));
        let done = turns(world);
        world.rest(&[AGENT])?;
        done
    })
}

fn turns(world: &World) -> Result<()> {
    world.ask(AGENT, "do: say the first conversation")?;
    // In mid-turn, with one that waits: the turn is interrupted, the other set aside.
    let call = shell(&world.tool("long", 1500));
    let under_way = world.send(AGENT, &format!("do: {call} ;; say done"), &[])?;
    let waits = world.send(AGENT, "do: say it was set aside and came back", &[])?;
    world.until_running(AGENT)?;
    for _ in 0..2 {
        world.reset(AGENT, "reset", &world.op(1), &[])?;
    }
    world.answer(under_way)?;
    world.ask(AGENT, "do: say the second conversation")?;
    for _ in 0..2 {
        world.reset(AGENT, "undo", &world.op(2), &[])?;
    }
    world.answer(waits)?;
    world.ask(AGENT, "do: say the first one again")?;
    for _ in 0..2 {
        world.reset(AGENT, "redo", &world.op(3), &[])?;
    }
    world.ask(AGENT, "do: say the second one again")?;
    Ok(())
}
