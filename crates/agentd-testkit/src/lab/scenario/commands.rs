//! Commands that the user runs in the sandbox of the tools: alone, while a turn runs, and while a reset clears the
//! conversation. None runs twice, and the model is told of each that its conversation still has.

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
    testbed.ask(AGENT, "do: say hello")?;
    execute(testbed, 1, "user-alone", 50)?;
    testbed.ask(AGENT, "do: say I have seen it")?;
    let call = shell(&testbed.tool("slow", 400));
    let turn = testbed.send(AGENT, &format!("do: {call} ;; say both are done"), &[])?;
    execute(testbed, 2, "user-meanwhile", 50)?;
    testbed.answer(turn)?;
    std::thread::scope(|scope| {
        let command = scope.spawn(|| execute(testbed, 3, "user-reset", 300));
        let reset = testbed.reset(AGENT, "reset", &testbed.op(4), &[]);
        let command = command.join().unwrap_or(Ok(()));
        reset.map(drop).and(command)
    })?;
    testbed.ask(AGENT, "do: say the new one")?;
    Ok(())
}

/// Runs a command, and waits for its end. A client that gets no answer asks again under the same op.
fn execute(testbed: &Testbed, n: u64, word: &str, millis: u64) -> Result<()> {
    let (op, command) = (testbed.op(n), testbed.tool(word, millis));
    let args = ["exec", AGENT, "--json", "--op", &op, "--", &command];
    testbed.order(AGENT, "exec", Some(&op), &args).map(drop)
}
