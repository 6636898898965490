//! Calls of an MCP server, before and after a reset. No call is made twice, whatever dies in between.

use crate::lab::reader;
use crate::lab::testbed::{Result, Stuck, Testbed};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;

const AGENT: &str = "worker";
/// Where the server records what it did.
const EFFECTS: &str = "mcp-effects";

pub fn run(testbed: &Testbed) -> Result<()> {
    // In the work tree: the sandbox shows it.
    let server = testbed.work().join("server");
    let built = std::env::current_exe()?.with_file_name("agentd-fake-mcp");
    fs::copy(built, &server)?;
    testbed.create(AGENT, "mcp:\n  fake:\n    command: ./server\n")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed);
        testbed.wait_idle(&[AGENT])?;
        done
    })?;
    once(testbed)
}

fn append(text: &str) -> String {
    format!("call mcp__fake__append {}", json!({ "text": text }))
}

fn turns(testbed: &Testbed) -> Result<()> {
    let echo = format!("call mcp__fake__echo {}", json!({"text": "hello"}));
    let first = [
        append("one"),
        format!("{echo} | {}", append("two")),
        "say it is done".to_owned(),
    ];
    testbed.ask(AGENT, &format!("do: {}", first.join(" ;; ")))?;
    let change = "call mcp__fake__change {}";
    testbed.ask(AGENT, &format!("do: {change} ;; say it has changed"))?;
    testbed.ask(AGENT, "do: call mcp__fake__extra {} ;; say the new tool")?;
    testbed.reset(AGENT, "reset", &testbed.op(1), &[])?;
    testbed.ask(AGENT, &format!("do: {} ;; say again", append("three")))?;
    Ok(())
}

fn once(testbed: &Testbed) -> Result<()> {
    let text = fs::read_to_string(testbed.work().join(EFFECTS)).unwrap_or_default();
    let mut seen = BTreeSet::new();
    match text.lines().find(|line| !seen.insert(*line)) {
        None => Ok(()),
        Some(line) => Err(Stuck::Wrong(format!(
            "the MCP call `{line}` was made twice"
        ))),
    }
}
