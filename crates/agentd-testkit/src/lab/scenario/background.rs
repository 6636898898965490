//! Tasks in the background that end in mid-turn, during a reset, while nobody is there to see it, and because
//! somebody ends them: each conversation that knows of one is told once.

use crate::lab::processes;
use crate::lab::reader;
use crate::lab::record;
use crate::lab::world::{Result, World};
use serde_json::json;

const AGENT: &str = "worker";

pub fn run(world: &World) -> Result<()> {
    world.create(AGENT, "")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(world, AGENT));
        let done = turns(world);
        world.rest(&[AGENT])?;
        done
    })
}

fn turns(world: &World) -> Result<()> {
    let words = "word ".repeat(20);
    leave(world, "in-turn", 100, &format!("slowly 10 {words}"))?;
    leave(world, "in-reset", 150, "say it is on its way")?;
    world.reset(AGENT, "reset", &world.op(1), &[])?;
    world.ask(AGENT, "do: say the new one")?;
    world.reset(AGENT, "undo", &world.op(2), &[])?;
    world.ask(AGENT, "do: say the old one again")?;
    leave(world, "alone", 300, "say nobody will see it end")?;
    world.stop_daemon()?;
    until_ended(world, "alone")?;
    world.ask(AGENT, "do: say what became of it")?;
    leave(world, "endless", 60_000, "say somebody has to end it")?;
    let args = ["tasks", "stop", AGENT, "--json"];
    world.order(AGENT, "tasks-stop", None, &args)?;
    world.ask(AGENT, "do: say it is over")?;
    Ok(())
}

/// A turn that leaves a task behind, which takes so long.
fn leave(world: &World, word: &str, millis: u64, then: &str) -> Result<()> {
    let command = world.tool(word, millis);
    let background = json!({"command": command, "run_in_background": true});
    world
        .ask(AGENT, &format!("do: call shell {background} ;; {then}"))
        .map(drop)
}

/// Until one that has begun has ended, as it says itself.
fn until_ended(world: &World, word: &str) -> Result<()> {
    let effects = world.record.folder().join("effects.jsonl");
    world.until("the end of a task", || {
        let effects = record::lines(&effects);
        let begun = effects.iter().find(|it| it["what"] == word);
        // A crash may have kept it from beginning, and a kill from saying that it ends.
        let is_over = begun.is_none_or(|begun| processes::find(world, begun).is_none());
        is_over.then_some(())
    })
}
