//! The standard turn: everything that a turn can hold, then what can be done between turns.

use super::shell;
use crate::lab::reader;
use crate::lab::world::{Result, World};
use serde_json::json;
use std::fs;

const AGENT: &str = "worker";
const RULES: &str =
    "permissions:\n  - tool: shell\n    pattern: \"*tool asked*\"\n    decision: ask\n";

pub fn run(world: &World) -> Result<()> {
    for (file, text) in [
        ("one.txt", "the first file\n"),
        ("two.txt", "the second file\n"),
    ] {
        fs::write(world.work().join(file), text)?;
    }
    world.create(AGENT, RULES)?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(world, AGENT));
        let done = turns(world);
        world.rest(&[AGENT])?;
        done
    })
}

fn turns(world: &World) -> Result<()> {
    world.ask(AGENT, &everything(world))?;
    let words = "many words ".repeat(2000);
    world.ask(AGENT, &format!("remember this: {words}"))?;
    // The window is full by now: what was said is summed up first.
    world.ask(AGENT, "do: say that is remembered")?;
    world.reset(AGENT, "reset", &world.op(1), &[])?;
    world.ask(AGENT, "do: say a new beginning")?;
    world.reset(AGENT, "undo", &world.op(2), &[])?;
    world.ask(AGENT, "do: say back again")?;
    Ok(())
}

/// A stream, two calls side by side, a chain of calls, one that is asked about, one that goes on.
fn everything(world: &World) -> String {
    let read = |path: &str| format!("call read_file {}", json!({"file_path": path}));
    let write = json!({"file_path": "three.txt", "content": "the third file\n"});
    let edit = json!({"file_path": "three.txt", "old_string": "third", "new_string": "last"});
    let background = json!({"command": world.tool("background", 300), "run_in_background": true});
    let words = "one word after the other until there are some";
    let replies = [
        format!(
            "slowly 10 {words} | {} | {}",
            read("one.txt"),
            read("two.txt")
        ),
        format!("say first | {}", shell(&world.tool("chained", 20))),
        format!("call write_file {write}"),
        format!("call edit_file {edit}"),
        shell(&world.tool("asked", 20)),
        format!("call shell {background}"),
        "say all of it is done".to_owned(),
    ];
    format!("do: {}", replies.join(" ;; "))
}
