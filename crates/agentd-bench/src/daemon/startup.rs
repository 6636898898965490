//! How long the CLI takes to start, to ask, and to print.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::bench_daemon::BenchDaemon;
use super::{Bed, line};
use crate::report::{Line, Unit};

const AGENTS: usize = 10;

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let mut daemon = BenchDaemon::new(bed)?;
    daemon.start()?;
    daemon.create_all((0..AGENTS).map(|number| format!("agent-{number}")))?;
    let agentd = |arguments: &[&str]| {
        let mut command = daemon.command();
        command.args(arguments);
        command
    };
    let new = |what: &str, floor: &str| {
        let (what, floor) = (what.to_owned(), floor.to_owned());
        line(what, floor, Unit::Milliseconds, None)
    };
    let mut list = new("agentd list --json", "agentd --version");
    let mut version = new("agentd --version", "true");
    for _ in 0..bed.size(41, 101) {
        let listed = millis(agentd(&["list", "--json"]))?;
        let told = millis(agentd(&["--version"]))?;
        let nothing = millis(Command::new("true"))?;
        list.ours.push(listed);
        list.floor.push(told);
        version.ours.push(told);
        version.floor.push(nothing);
    }
    Ok(vec![list, version])
}

fn millis(mut command: Command) -> Result<f64> {
    command.stdout(Stdio::null());
    let start = Instant::now();
    let status = command.status().context("cannot start a program")?;
    let took = start.elapsed().as_secs_f64() * 1e3;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(took)
}
