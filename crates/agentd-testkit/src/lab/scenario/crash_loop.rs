//! A turn whose process dies each time that it has asked the model: given up after three tries, and told.

use crate::lab::reader;
use crate::lab::world::{Result, World};
use serde_json::json;

const AGENT: &str = "worker";

pub fn run(world: &World) -> Result<()> {
    world.expect("crash_loop", json!(true));
    world.create(AGENT, "")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(world, AGENT));
        let done = world.ask(AGENT, "do: say never").map(drop);
        world.rest(&[AGENT])?;
        done
    })
}
