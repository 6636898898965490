//! Background tasks that end in mid-turn, during a reset, while the agent has no process, and because
//! a client ends them: each conversation that knows of one is told once.

use crate::lab::processes;
use crate::lab::reader;
use crate::lab::record;
use crate::lab::testbed::{Result, Testbed};
use serde_json::json;

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
    let words = "word ".repeat(20);
    leave(testbed, "in-turn", 100, &format!("slowly 10 {words}"))?;
    leave(testbed, "in-reset", 150, "say it is on its way")?;
    testbed.reset(AGENT, "reset", &testbed.op(1), &[])?;
    testbed.ask(AGENT, "do: say the new one")?;
    testbed.reset(AGENT, "undo", &testbed.op(2), &[])?;
    testbed.ask(AGENT, "do: say the old one again")?;
    leave(testbed, "alone", 300, "say no client will see it end")?;
    testbed.stop_daemon()?;
    until_ended(testbed, "alone")?;
    testbed.ask(AGENT, "do: say what became of it")?;
    leave(testbed, "endless", 60_000, "say a client has to end it")?;
    let args = ["tasks", "stop", AGENT, "--json"];
    testbed.order(AGENT, "tasks-stop", None, &args)?;
    testbed.ask(AGENT, "do: say it is over")?;
    Ok(())
}

/// A turn that leaves a task running, for this many milliseconds.
fn leave(testbed: &Testbed, word: &str, millis: u64, then: &str) -> Result<()> {
    let command = testbed.tool(word, millis);
    let background = json!({"command": command, "run_in_background": true});
    testbed
        .ask(AGENT, &format!("do: call shell {background} ;; {then}"))
        .map(drop)
}

/// Waits until a task that has begun has recorded its end.
fn until_ended(testbed: &Testbed, word: &str) -> Result<()> {
    let effects = testbed.record.dir().join("effects.jsonl");
    testbed.until("the end of a task", || {
        let effects = record::lines(&effects);
        let begun = effects.iter().find(|it| it["what"] == word);
        // A crash may have prevented its start, and a kill its record.
        let is_over = begun.is_none_or(|begun| processes::find(testbed, begun).is_none());
        is_over.then_some(())
    })
}
