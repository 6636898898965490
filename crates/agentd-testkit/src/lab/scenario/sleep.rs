//! An agent whose process is stopped as soon as it is idle, and started by the next prompt.

use crate::lab::reader;
use crate::lab::testbed::{Result, Testbed};
use crate::model::script::shell;

const AGENT: &str = "worker";

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "idle_ms: 50\n")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed);
        testbed.wait_idle(&[AGENT])?;
        done
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    for n in 0..4 {
        let call = shell(&testbed.tool(&format!("call-{n}"), 10));
        testbed.ask(
            AGENT,
            &format!("do: {call} ;; slowly 5 awake for the time number {n}"),
        )?;
        testbed.until("sleep", || {
            let shown = testbed.look(AGENT)?;
            (shown["process"]["state"] == "asleep").then_some(())
        })?;
    }
    Ok(())
}
