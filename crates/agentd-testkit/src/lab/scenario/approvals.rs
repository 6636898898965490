//! A question that two clients answer at the same time, one approves and one denies: the first answer counts. A tool
//! that tries to answer is refused.

use crate::lab::idle::is_idle;
use crate::lab::testbed::{Result, Testbed};
use crate::lab::{processes, reader};
use crate::model::script::shell;
use serde_json::json;
use std::fs;

const AGENT: &str = "worker";
/// How each attempt of the tool ended.
const TRIES: &str = "tries";
const RULES: &str =
    "permissions:\n  - tool: shell\n    pattern: \"*tool asked*\"\n    decision: ask\n";

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, RULES)?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed);
        testbed.wait_idle(&[AGENT])?;
        done
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    let asked = shell(&testbed.tool("asked", 20));
    let number = testbed.send(AGENT, &format!("do: {asked} ;; say done"), &[])?;
    testbed.answer_with(number, |testbed, agent, approval| {
        std::thread::scope(|scope| {
            let no = scope.spawn(|| testbed.decide(agent, approval, "deny"));
            let yes = testbed.decide(agent, approval, "approve");
            no.join().map_or(Ok(()), |no| no.map(drop))?;
            yes.map(drop)
        })
    })?;
    from_within(testbed)
}

/// The first call starts a process that tries to answer the question about the second one.
fn from_within(testbed: &Testbed) -> Result<()> {
    let program = testbed.program.path().display();
    let home = testbed.home().display().to_string();
    // The tool itself records the result of each attempt.
    let tries = format!(
        "for i in 1 2 3 4 5 6; do AGENTD_HOME='{home}' '{program}' approve {AGENT} > /dev/null 2>&1; \
         echo $? >> {TRIES}; sleep 0.1; done; : > tried"
    );
    let background = json!({"command": tries, "run_in_background": true});
    let asked = shell(&testbed.tool("asked", 20));
    let text = format!("do: call shell {background} ;; {asked} ;; say done");
    let number = testbed.send(AGENT, &text, &[])?;
    let tried = testbed.work().join("tried");
    testbed.until("the tool's tries", || {
        let shown = testbed.look(AGENT)?;
        let asks = shown["approvals"]
            .as_array()
            .is_some_and(|it| !it.is_empty());
        let all = processes::descendants(&testbed.root);
        let tries = all.iter().any(|it| it.role == "shim" && it.is_alive());
        // A crash may have prevented or ended them.
        (tried.exists() || asks && !tries || is_idle(&shown)).then_some(())
    })?;
    let codes = fs::read_to_string(testbed.work().join(TRIES)).unwrap_or_default();
    for code in codes.lines().filter_map(|line| line.parse::<i32>().ok()) {
        let line = json!({"at": testbed.record.at(), "agent": AGENT, "verb": "approve", "op": null,
                          "acknowledged": code == 0, "answer": null, "error": {"exit": code},
                          "from_tool": true});
        testbed.record.line("orders.jsonl", &line)?;
    }
    testbed.answer(number)?;
    Ok(())
}
