//! Prompts that are sent and not waited for: a client may exit once its prompt is accepted.

use crate::lab::reader;
use crate::lab::testbed::{Result, Testbed};

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
    for n in 1..=3 {
        testbed.send(AGENT, &format!("do: say this is answer number {n}"), &[])?;
    }
    // The client that had the agent's key may be dead: then the agent waits for a client that brings it.
    testbed.until("the answers", || {
        let shown = testbed.look(AGENT)?;
        if shown["phase"] == "waiting" {
            let args = ["continue", AGENT, "--json"];
            testbed.order(AGENT, "continue", None, &args).ok()?;
        }
        (shown["phase"] == "idle").then_some(())
    })
}
