//! Hooks for all events of a turn and a reset: each runs once per event. One of them denies a call, and
//! one adds text to each conversation that begins.

use crate::lab::reader;
use crate::lab::testbed::{Result, Testbed};
use crate::model::script::shell;
use serde_json::json;

const AGENT: &str = "worker";
const EVENTS: [&str; 9] = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "PreCompact",
    "PreReset",
];

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.hooks(&EVENTS)?;
    testbed.expect("hooks_with_traces", json!(EVENTS));
    testbed.create(AGENT, "")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed).and_then(|()| until_reported(testbed));
        testbed.wait_idle(&[AGENT])?;
        done
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    let fine = shell(&testbed.tool("fine", 20));
    let forbidden = shell(&testbed.tool("forbidden", 20));
    let text = format!("do: say first | {fine} ;; {forbidden} ;; say one of them was refused");
    testbed.ask(AGENT, &text)?;
    testbed.compact(AGENT, &testbed.op(1))?;
    testbed.ask(AGENT, "do: say after the summary")?;
    testbed.reset(AGENT, "reset", &testbed.op(2), &[])?;
    testbed.ask(AGENT, "do: say the new one")?;
    testbed.reset(AGENT, "undo", &testbed.op(3), &[])?;
    testbed.ask(AGENT, "do: say the old one again")?;
    Ok(())
}

/// Waits until all hooks are done: agentd does not wait for some of them.
fn until_reported(testbed: &Testbed) -> Result<()> {
    testbed.until("the hooks", || {
        let Some(events) = testbed.events(AGENT) else {
            testbed.look(AGENT);
            return None;
        };
        let count = |kind: &str| events.iter().filter(|it| it["kind"] == kind).count();
        (count("hook_started") == count("hook_ended")).then_some(())
    })
}
