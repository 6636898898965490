//! The state directory is copied while a command runs, and the copy opened; and it is moved away under a daemon.

use super::ground::{spawn, wait};
use super::{completed, fault, pids, watched};
use crate::lab::scenario::shell;
use crate::lab::world::{Result, Stuck, World};
use std::fs;
use std::path::Path;
use std::process::Stdio;

const AGENT: &str = "worker";

/// Whoever opens the copy neither ends the original's command nor runs its turn.
pub fn copied(world: &World) -> Result<()> {
    world.create(AGENT, "")?;
    watched(world, AGENT, || {
        completed(world, AGENT, "do: say before")?;
        let call = shell(&world.tool("copied", 12_000));
        let under_way = world.send(AGENT, &format!("do: {call} ;; say done"), &[])?;
        world.until_event(AGENT, "tool_started", 1)?;
        world.until("the command", || {
            let effects = world.record.folder().join("effects.jsonl");
            fs::read_to_string(effects).ok().filter(|it| !it.is_empty())
        })?;
        let copy = world.root.join("copy");
        let (from, to) = (
            world.home().display().to_string(),
            copy.display().to_string(),
        );
        super::ground::run(world, "cp", &["-a", &from, &to])?;
        fault(world, "disk", "a copied home")?;
        at(world, &copy, &["list", "--json"])?;
        at(world, &copy, &["show", AGENT, "--json"])?;
        refused(world, &copy, &["send", AGENT, "do: say twice"])?;
        world.answer(under_way)?;
        at(world, &copy, &["daemon", "stop", "--json"])?;
        completed(world, AGENT, "do: say after")
    })
}

/// A command in another home; it has to work.
fn at(world: &World, home: &Path, args: &[&str]) -> Result<()> {
    expect(world, home, args, 0)
}

/// A command in another home; it has to be refused.
fn refused(world: &World, home: &Path, args: &[&str]) -> Result<()> {
    expect(world, home, args, 3)
}

fn expect(world: &World, home: &Path, args: &[&str], code: i32) -> Result<()> {
    let mut command = world.command();
    command.args(args).env("AGENTD_HOME", home);
    let output = wait(world, spawn(world, command.stderr(Stdio::piped()))?)?;
    match output.status.code() {
        Some(got) if got == code => Ok(()),
        got => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(Stuck::Wrong(format!(
                "{args:?} in the copy: exit {got:?} instead of {code}: {said}"
            )))
        }
    }
}

/// The daemon and its runtimes end, and make nothing anew; back in its place, the home is whole.
pub fn lost(world: &World) -> Result<()> {
    world.create(AGENT, "")?;
    watched(world, AGENT, || {
        completed(world, AGENT, "do: say before")?;
        let words = "word ".repeat(100);
        let under_way = world.send(AGENT, &format!("do: slowly 20 {words}"), &[])?;
        world.until_event(AGENT, "request_sent", 2)?;
        let away = world.root.join("away");
        fs::rename(world.home(), &away)?;
        fault(world, "disk", "no home")?;
        world.until("the end of daemon and runtimes", || {
            let left = pids(world, "daemon").len() + pids(world, "runtime").len();
            (left == 0).then_some(())
        })?;
        if world.home().exists() {
            return Err(Stuck::Wrong(
                "a home that was gone was made anew".to_owned(),
            ));
        }
        fs::rename(&away, world.home())?;
        world.answer(under_way)?;
        completed(world, AGENT, "do: say after")
    })
}
