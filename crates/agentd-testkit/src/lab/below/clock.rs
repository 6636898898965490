//! The clock jumps: back by a day, ahead by years. Order is by number, never by time; nothing else changes.
//! goose#7472, #9461: a result sorted before its request.

use super::{completed, fault, watched};
use crate::lab::scenario::shell;
use crate::lab::world::{Result, Stuck, World};
use std::fs;

const AGENT: &str = "worker";
const DAY_MS: i64 = 86_400_000;

pub fn run(world: &World) -> Result<()> {
    world.create(AGENT, "")?;
    watched(world, AGENT, || turns(world))
}

fn turns(world: &World) -> Result<()> {
    completed(world, AGENT, "do: say before")?;
    for (name, days) in [
        ("a day back", -1),
        ("ten years ahead", 3650),
        ("years back", -7000),
    ] {
        // In mid-turn.
        let call = shell(&world.tool("jump", 200));
        let text = format!("do: {call} ;; {call} ;; say the clock was set {name}");
        let number = world.send(AGENT, &text, &[])?;
        world.until_running(AGENT)?;
        let file = agentd_process::failpoint::CLOCK_FILE;
        fs::write(world.root.join(file), (days * DAY_MS).to_string())?;
        fault(world, "clock", name)?;
        world.answer(number)?;
        completed(world, AGENT, "do: say so much for time")?;
    }
    // It did jump.
    let events = world.until("the events", || world.events(AGENT))?;
    let times: Vec<i64> = events
        .iter()
        .filter_map(|event| event["at"].as_i64())
        .collect();
    match times.is_sorted() {
        true => Err(Stuck::Wrong("the clock did not jump".to_owned())),
        false => Ok(()),
    }
}
