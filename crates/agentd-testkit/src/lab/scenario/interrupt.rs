//! An interrupt in mid-turn: the streamed text is kept, and the queued prompt is answered next.

use crate::lab::idle::is_idle;
use crate::lab::reader;
use crate::lab::testbed::{Result, Testbed};
use crate::model::script::shell;
use std::sync::atomic::Ordering;

const AGENT: &str = "worker";
/// Pieces of text that readers see before the interrupt.
const SOME: u32 = 3;

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed);
        testbed.wait_idle(&[AGENT])?;
        done
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    // While it streams.
    let words = "word ".repeat(200);
    let first = testbed.send(AGENT, &format!("do: slowly 25 {words}"), &[])?;
    let waits = testbed.send(AGENT, "do: say what waited is answered", &[])?;
    testbed.until("some words", || {
        let shown = testbed.look_after(AGENT)?;
        let seen = testbed.deltas.load(Ordering::Relaxed);
        (seen >= SOME || is_idle(&shown)).then_some(())
    })?;
    interrupt(testbed)?;
    testbed.answer(first)?;
    testbed.answer(waits)?;
    // While a tool runs.
    let call = shell(&testbed.tool("long", 3000));
    let second = testbed.send(AGENT, &format!("do: {call} ;; say done"), &[])?;
    let waits = testbed.send(AGENT, "do: say so is this", &[])?;
    testbed.until_event(AGENT, "tool_started", 1)?;
    interrupt(testbed)?;
    testbed.answer(second)?;
    testbed.answer(waits)?;
    Ok(())
}

fn interrupt(testbed: &Testbed) -> Result<()> {
    testbed.until_running(AGENT)?;
    let args = ["interrupt", AGENT, "--json"];
    testbed.order(AGENT, "interrupt", None, &args).map(drop)
}
