//! The standard turn: everything that a turn can contain, then what can be done between turns.

use crate::lab::reader;
use crate::lab::testbed::{Result, Testbed};
use crate::model::script::shell;
use serde_json::json;
use std::fs;

const AGENT: &str = "worker";
const RULES: &str =
    "permissions:\n  - tool: shell\n    pattern: \"*tool asked*\"\n    decision: ask\n";

pub fn run(testbed: &Testbed) -> Result<()> {
    for (file, text) in [
        ("one.txt", "the first file\n"),
        ("two.txt", "the second file\n"),
    ] {
        fs::write(testbed.work().join(file), text)?;
    }
    testbed.create(AGENT, RULES)?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed);
        testbed.wait_idle(&[AGENT])?;
        done
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    testbed.ask(AGENT, &everything(testbed))?;
    let words = "many words ".repeat(2000);
    testbed.ask(AGENT, &format!("remember this: {words}"))?;
    // The window is full by now: it is compacted first.
    testbed.ask(AGENT, "do: say that is remembered")?;
    testbed.reset(AGENT, "reset", &testbed.op(1), &[])?;
    testbed.ask(AGENT, "do: say a new beginning")?;
    testbed.reset(AGENT, "undo", &testbed.op(2), &[])?;
    testbed.ask(AGENT, "do: say back again")?;
    Ok(())
}

/// A stream, two calls in parallel, a chain of calls, one that needs approval, one in the background.
fn everything(testbed: &Testbed) -> String {
    let read = |path: &str| format!("call read_file {}", json!({"file_path": path}));
    let write = json!({"file_path": "three.txt", "content": "the third file\n"});
    let edit = json!({"file_path": "three.txt", "old_string": "third", "new_string": "last"});
    let background = json!({"command": testbed.tool("background", 300), "run_in_background": true});
    let words = "one word after the other until there are some";
    let replies = [
        format!(
            "slowly 10 {words} | {} | {}",
            read("one.txt"),
            read("two.txt")
        ),
        format!("say first | {}", shell(&testbed.tool("chained", 20))),
        format!("call write_file {write}"),
        format!("call edit_file {edit}"),
        shell(&testbed.tool("asked", 20)),
        format!("call shell {background}"),
        "say all of it is done".to_owned(),
    ];
    format!("do: {}", replies.join(" ;; "))
}
