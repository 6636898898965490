//! The daemon has no descriptor left: who comes waits, and is served when there are some again.

use super::{completed, daemon, fault, watched};
use crate::lab::world::{Result, Stuck, World};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::fs;
use std::time::Duration;

const AGENT: &str = "worker";

pub fn run(world: &World) -> Result<()> {
    world.create(AGENT, "")?;
    watched(world, AGENT, || turns(world))
}

fn turns(world: &World) -> Result<()> {
    completed(world, AGENT, "do: say before")?;
    let words = "word ".repeat(60);
    let under_way = world.send(AGENT, &format!("do: slowly 10 {words}"), &[])?;
    let daemon = daemon(world)?;
    let open = fs::read_dir(format!("/proc/{}/fd", daemon.as_raw_nonzero()))?.count();
    let before = limit(daemon, Some(open as u64))?;
    fault(world, "daemon", "EMFILE")?;
    std::thread::scope(|scope| {
        let sent = scope.spawn(|| world.ask(AGENT, "do: say meanwhile"));
        // tidy: polls nothing; it lasts so long
        std::thread::sleep(Duration::from_millis(700));
        limit(daemon, before)?;
        let sent = sent
            .join()
            .map_err(|_| Stuck::Wrong("a client panicked".to_owned()))?;
        sent.map(drop)
    })?;
    world.answer(under_way)?;
    completed(world, AGENT, "do: say after")
}

/// Sets how many descriptors a process may have; says how many it could have before.
fn limit(pid: Pid, descriptors: Option<u64>) -> Result<Option<u64>> {
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: descriptors,
        maximum,
    };
    let before = prlimit(Some(pid), Resource::Nofile, limit);
    Ok(before.map_err(std::io::Error::from)?.current)
}
