//! A state folder that cannot be written: nothing begins, and whoever asks is told why.

use super::{completed, fault, kill_all, told_clearly, try_send, watched};
use crate::lab::world::{Result, Stuck, World};

const AGENT: &str = "worker";

pub fn run(world: &World) -> Result<()> {
    super::ground::small(world, "64m")?;
    world.create(AGENT, "")?;
    watched(world, AGENT, || turns(world))
}

fn turns(world: &World) -> Result<()> {
    completed(world, AGENT, "do: say before")?;
    kill_all(world)?;
    // Those who were killed may still be on their way out.
    world.until("a read-only disk", || remount(world, "remount,ro").ok())?;
    fault(world, "disk", "EROFS")?;
    let (_, refused) = try_send(world, AGENT, "do: say nothing")?;
    told_clearly(&refused, &["read-only", "readonly"])?;
    remount(world, "remount,rw")?;
    completed(world, AGENT, "do: say after")
}

fn remount(world: &World, how: &str) -> Result<()> {
    let home = world.home();
    let home = home
        .to_str()
        .ok_or_else(|| Stuck::Wrong("no text".to_owned()))?;
    super::ground::run(world, "mount", &["-o", how, home])
}
