//! The standard turn: everything that a turn can contain, then what can be done between turns.

use crate::lab::reader;
use crate::lab::testbed::{Result, Testbed};
use crate::model::script::shell;
use serde_json::json;
use std::fs;

const AGENT: &str = "worker";
const CHART: &str = "chart.png";
const NOTES: &str = "notes.md";
const INSTRUCTIONS: &str = "Say what you do before you do it.";
const RULES: &str =
    "permissions:\n  - tool: shell\n    pattern: \"*tool asked*\"\n    decision: ask\n";

pub fn run(testbed: &Testbed) -> Result<()> {
    for (file, text) in [
        ("one.txt", "the first file\n"),
        ("two.txt", "the second file\n"),
    ] {
        fs::write(testbed.work().join(file), text)?;
    }
    fs::write(testbed.work().join(NOTES), "some notes of the user\n")?;
    fs::write(testbed.work().join(CHART), chart())?;
    fs::write(testbed.work().join("AGENTS.md"), INSTRUCTIONS)?;
    testbed.expect("instructions", json!(INSTRUCTIONS));
    testbed.create(AGENT, RULES)?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed);
        testbed.wait_idle(&[AGENT])?;
        done
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    let files = ["--attach", CHART, "--attach", NOTES];
    let first = testbed.send(AGENT, &everything(testbed), &files)?;
    testbed.answer(first)?;
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

/// An image that is stored apart from its event, like every long string.
fn chart() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x02\0\0\0".to_vec();
    bytes.extend((0..9000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8));
    bytes
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
