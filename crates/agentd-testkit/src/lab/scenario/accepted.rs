//! Prompts that are sent and not waited for: whoever was told that one is accepted may go.

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
    for n in 1..=3 {
        world.send(AGENT, &format!("do: say this is answer number {n}"), &[])?;
    }
    Ok(())
}
