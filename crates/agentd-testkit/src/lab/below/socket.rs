//! The sockets are deleted, as cleaners of temporary folders do: the daemon makes them anew.

use super::{completed, fault, watched};
use crate::lab::world::{Result, World};
use std::fs;

const AGENT: &str = "worker";

pub fn run(world: &World) -> Result<()> {
    world.create(AGENT, "")?;
    watched(world, AGENT, || turns(world))
}

fn turns(world: &World) -> Result<()> {
    completed(world, AGENT, "do: say before")?;
    let words = "word ".repeat(40);
    let under_way = world.send(AGENT, &format!("do: slowly 10 {words}"), &[])?;
    for entry in fs::read_dir(world.home().join("run"))? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "sock")
        {
            fs::remove_file(path)?;
        }
    }
    fault(world, "files", "no socket")?;
    world.answer(under_way)?;
    completed(world, AGENT, "do: say after")
}
