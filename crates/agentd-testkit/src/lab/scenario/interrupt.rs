//! An interrupt in mid-turn: what was said is kept, and the prompt that waits is answered next.

use super::shell;
use crate::lab::reader;
use crate::lab::rest::is_quiet;
use crate::lab::world::{Result, World};
use std::sync::atomic::Ordering;

const AGENT: &str = "worker";
/// Pieces of text that are seen before it is interrupted.
const SOME: u32 = 3;

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
    // While it speaks.
    let words = "word ".repeat(200);
    let first = world.send(AGENT, &format!("do: slowly 25 {words}"), &[])?;
    let waits = world.send(AGENT, "do: say what waited is answered", &[])?;
    world.until("some words", || {
        let shown = world.look_after(AGENT)?;
        let seen = world.deltas.load(Ordering::Relaxed);
        (seen >= SOME || is_quiet(&shown)).then_some(())
    })?;
    interrupt(world)?;
    world.answer(first)?;
    world.answer(waits)?;
    // While a tool runs.
    let call = shell(&world.tool("long", 3000));
    let second = world.send(AGENT, &format!("do: {call} ;; say done"), &[])?;
    let waits = world.send(AGENT, "do: say so is this", &[])?;
    world.until_event(AGENT, "tool_started", 1)?;
    interrupt(world)?;
    world.answer(second)?;
    world.answer(waits)?;
    Ok(())
}

fn interrupt(world: &World) -> Result<()> {
    world.until_running(AGENT)?;
    let args = ["interrupt", AGENT, "--json"];
    world.order(AGENT, "interrupt", None, &args).map(drop)
}
