//! A command that leaves processes behind, in its own group and out of it: they end with it.

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
    let tool = world.tool("left", 20);
    let call = shell(&format!("sleep 1000 & (setsid sleep 1000 &) ; {tool}"));
    world.ask(AGENT, &format!("do: {call} ;; say it is done"))?;
    Ok(())
}
