//! An agent that is put to sleep as soon as it has nothing to do, and wakes with the next prompt.

use super::shell;
use crate::lab::reader;
use crate::lab::world::{Result, World};

const AGENT: &str = "worker";

pub fn run(world: &World) -> Result<()> {
    world.create(AGENT, "idle_ms: 50\n")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(world, AGENT));
        let done = turns(world);
        world.rest(&[AGENT])?;
        done
    })
}

fn turns(world: &World) -> Result<()> {
    for n in 0..4 {
        let call = shell(&world.tool(&format!("call-{n}"), 10));
        world.ask(
            AGENT,
            &format!("do: {call} ;; slowly 5 awake for the time number {n}"),
        )?;
        world.until("sleep", || {
            let shown = world.look(AGENT)?;
            (shown["process"]["state"] == "asleep").then_some(())
        })?;
    }
    Ok(())
}
