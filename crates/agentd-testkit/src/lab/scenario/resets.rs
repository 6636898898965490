//! Reset, undo and redo, with a queued prompt; each is requested twice under one op, and done once.

use crate::lab::reader;
use crate::lab::testbed::{Result, Testbed};
use crate::model::script::shell;

const AGENT: &str = "worker";

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
    testbed.ask(AGENT, "do: say the first conversation")?;
    // In mid-turn, with a queued prompt: the turn is interrupted, the prompt set aside.
    let call = shell(&testbed.tool("long", 1500));
    let under_way = testbed.send(AGENT, &format!("do: {call} ;; say done"), &[])?;
    let waits = testbed.send(AGENT, "do: say it was set aside and came back", &[])?;
    testbed.until_running(AGENT)?;
    for _ in 0..2 {
        testbed.reset(AGENT, "reset", &testbed.op(1), &[])?;
    }
    testbed.answer(under_way)?;
    testbed.ask(AGENT, "do: say the second conversation")?;
    for _ in 0..2 {
        testbed.reset(AGENT, "undo", &testbed.op(2), &[])?;
    }
    testbed.answer(waits)?;
    testbed.ask(AGENT, "do: say the first one again")?;
    for _ in 0..2 {
        testbed.reset(AGENT, "redo", &testbed.op(3), &[])?;
    }
    testbed.ask(AGENT, "do: say the second one again")?;
    Ok(())
}
