//! Back to before a compaction, then undo and redo, each asked for twice under one id; and once more in
//! mid-turn, with a prompt that waits.

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
    world.ask(AGENT, "do: say the first words")?;
    let call = shell(&world.tool("second", 20));
    world.ask(AGENT, &format!("do: {call} ;; say the second words"))?;
    world.compact(AGENT, &world.op(1))?;
    world.ask(AGENT, "do: say after the summary")?;
    back(world, "2", 2)?;
    world.ask(AGENT, "do: say another way on from the second words")?;
    for (verb, op) in [("undo", 3), ("redo", 4)] {
        for _ in 0..2 {
            world.reset(AGENT, verb, &world.op(op), &[])?;
        }
        world.ask(AGENT, &format!("do: say after {verb}"))?;
    }
    let call = shell(&world.tool("long", 1500));
    let under_way = world.send(AGENT, &format!("do: {call} ;; say done"), &[])?;
    let waits = world.send(AGENT, "do: say it was set aside and came back", &[])?;
    world.until_running(AGENT)?;
    back(world, "init", 5)?;
    world.answer(under_way)?;
    world.ask(AGENT, "do: say from the beginning")?;
    world.reset(AGENT, "undo", &world.op(6), &[])?;
    world.answer(waits)?;
    Ok(())
}

/// To a place, twice under one id.
fn back(world: &World, place: &str, op: u64) -> Result<()> {
    let op = world.op(op);
    for _ in 0..2 {
        let args = ["rewind", AGENT, "--to", place, "--op", &op, "--json"];
        world.order(AGENT, "rewind", Some(&op), &args)?;
    }
    Ok(())
}
