//! A fork in mid-turn, while a question waits and a task runs in the background: the fork has neither, and is
//! told so; both continue.

use crate::lab::idle::is_idle;
use crate::lab::reader;
use crate::lab::testbed::{FORK, Result, Testbed};
use crate::model::script::shell;
use serde_json::json;

const AGENT: &str = "worker";
const RULES: &str =
    "permissions:\n  - tool: shell\n    pattern: \"*tool asked*\"\n    decision: ask\n";

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, RULES)?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed);
        testbed.wait_idle(&[AGENT, FORK])?;
        done
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    testbed.ask(AGENT, "do: say the trunk")?;
    let background = json!({"command": testbed.tool("background", 400), "run_in_background": true});
    let asked = shell(&testbed.tool("asked", 20));
    let text = format!("do: call shell {background} ;; {asked} ;; say done");
    let number = testbed.send(AGENT, &text, &[])?;
    let waits = testbed.send(AGENT, "do: say it has waited", &[])?;
    testbed.until("a question", || {
        let shown = testbed.look(AGENT)?;
        let asks = shown["approvals"]
            .as_array()
            .is_some_and(|it| !it.is_empty());
        (asks || is_idle(&shown) || shown["phase"] == "waiting").then_some(())
    })?;
    let op = testbed.op(1);
    for _ in 0..2 {
        let args = ["fork", AGENT, FORK, "--op", &op, "--json"];
        testbed.order(AGENT, "fork", Some(&op), &args)?;
    }
    testbed.know(&op, FORK);
    let own = shell(&testbed.tool("own", 20));
    testbed.ask(FORK, &format!("do: {own} ;; say a branch"))?;
    testbed.answer(number)?;
    testbed.answer(waits)?;
    testbed.ask(AGENT, "do: say the trunk goes on")?;
    testbed.ask(FORK, "do: say so does the branch")?;
    Ok(())
}
