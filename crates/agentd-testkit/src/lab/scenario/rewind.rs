//! Rewind to before a compaction, then undo and redo, each requested twice under one op; and again in
//! mid-turn, with a queued prompt.

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
    testbed.ask(AGENT, "do: say the first words")?;
    let call = shell(&testbed.tool("second", 20));
    testbed.ask(AGENT, &format!("do: {call} ;; say the second words"))?;
    testbed.compact(AGENT, &testbed.op(1))?;
    testbed.ask(AGENT, "do: say after the summary")?;
    back(testbed, "2", 2)?;
    testbed.ask(AGENT, "do: say another way on from the second words")?;
    for (verb, op) in [("undo", 3), ("redo", 4)] {
        for _ in 0..2 {
            testbed.reset(AGENT, verb, &testbed.op(op), &[])?;
        }
        testbed.ask(AGENT, &format!("do: say after {verb}"))?;
    }
    let call = shell(&testbed.tool("long", 1500));
    let under_way = testbed.send(AGENT, &format!("do: {call} ;; say done"), &[])?;
    let waits = testbed.send(AGENT, "do: say it was set aside and came back", &[])?;
    testbed.until_running(AGENT)?;
    back(testbed, "init", 5)?;
    testbed.answer(under_way)?;
    testbed.ask(AGENT, "do: say from the beginning")?;
    testbed.reset(AGENT, "undo", &testbed.op(6), &[])?;
    testbed.answer(waits)?;
    Ok(())
}

/// Rewinds to a branch point, twice under one op.
fn back(testbed: &Testbed, place: &str, op: u64) -> Result<()> {
    let op = testbed.op(op);
    for _ in 0..2 {
        let args = ["rewind", AGENT, "--to", place, "--op", &op, "--json"];
        testbed.order(AGENT, "rewind", Some(&op), &args)?;
    }
    Ok(())
}
