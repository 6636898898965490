//! Thousands of commands: what they leave in the home, and in the processes of the daemon and of the agents.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use agentd_client::api::Reset;
use agentd_core::spec::AgentSpec;
use anyhow::{Context as _, Result, ensure};

use super::bench_daemon::BenchDaemon;
use super::{Bed, line};
use crate::proc;
use crate::report::{Aim, Line, Unit};

/// They work at once.
const AGENTS: usize = 4;
/// Commands of a turn.
const IN_A_TURN: usize = 25;
/// Turns before a reset, which keeps the requests small.
const TURNS: usize = 8;
/// Before the first measurement, so that caches and pools are filled.
const FIRST: usize = 4 * AGENTS * IN_A_TURN;
/// An agent's process stays, so that its memory can be compared.
const IDLE_MS: u64 = 600_000;
/// An agent keeps at most some hundred directories, and a command leaves a directory and four files.
const ENTRIES: f64 = (AGENTS * 340 * 5) as f64;

/// What there is at one moment.
struct State {
    entries: f64,
    agents_mib: f64,
    home_mib: f64,
    open_files: f64,
    daemon_mib: f64,
    agents_memory_mib: f64,
}

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let mut daemon = BenchDaemon::new(bed)?;
    daemon.start()?;
    let spec = AgentSpec {
        idle_ms: IDLE_MS,
        ..daemon.spec()
    };
    for name in names() {
        let mut create = daemon.create(&name);
        create.spec = spec.clone();
        daemon.block(daemon.client().create(&create))?;
    }
    commands(&daemon, FIRST)?;
    let before = State::now(&daemon)?;
    let count = bed.commands.max(FIRST);
    commands(&daemon, count)?;
    let after = State::now(&daemon)?;
    let new = |what: &str, unit, aim, get: fn(&State) -> f64| {
        let what = format!("{what} after {count} commands");
        let mut line = line(what, format!("after {FIRST}"), unit, aim);
        line.ours.push(get(&after));
        line.floor.push(get(&before));
        line
    };
    let excess = |most| Some(Aim::ExcessAtMost(most));
    Ok(vec![
        new("entries of the home", Unit::Count, excess(ENTRIES), |it| {
            it.entries
        }),
        new("agents/ on disk", Unit::Mebibytes, excess(64.0), |it| {
            it.agents_mib
        }),
        new("the home on disk", Unit::Mebibytes, None, |it| it.home_mib),
        new(
            "open files of all processes",
            Unit::Count,
            excess(32.0),
            |it| it.open_files,
        ),
        new(
            "memory of the daemon",
            Unit::Mebibytes,
            excess(32.0),
            |it| it.daemon_mib,
        ),
        new(
            "memory of the agents",
            Unit::Mebibytes,
            excess(64.0),
            |it| it.agents_memory_mib,
        ),
    ])
}

fn names() -> impl Iterator<Item = String> {
    (0..AGENTS).map(|number| format!("soak-{number}"))
}

/// At least so many commands, by all agents at once.
fn commands(daemon: &BenchDaemon<'_>, count: usize) -> Result<()> {
    let call = r#"call shell {"command":"echo done"}"#;
    let prompt = format!("do: {} ;; say done", vec![call; IN_A_TURN].join(" | "));
    for round in 0..count.div_ceil(AGENTS * IN_A_TURN) {
        let failed = daemon.prompt_all(names(), &prompt, AGENTS)?;
        ensure!(failed.is_empty(), "not all turns completed: {failed:?}");
        if round % TURNS == TURNS - 1 {
            for name in names() {
                daemon.block(daemon.client().reset(&name, &Reset::default()))?;
            }
            eprintln!("  {} commands", (round + 1) * AGENTS * IN_A_TURN);
        }
    }
    Ok(())
}

impl State {
    fn now(daemon: &BenchDaemon<'_>) -> Result<Self> {
        let pid = daemon.pid()?;
        let mut agents = Vec::new();
        for name in names() {
            let agent = daemon.block(daemon.client().agent(&name))?;
            agents.push(agent.process.pid.context("an agent has no process")?);
        }
        let memory = |pid: &u32| Ok::<_, anyhow::Error>(proc::memory(*pid)?.now);
        let agents_memory: Result<Vec<f64>> = agents.iter().map(memory).collect();
        let (entries, home_bytes) = size(daemon.home());
        let (_, agents_bytes) = size(&daemon.home().join("agents"));
        let processes = agents.iter().chain([&pid]);
        Ok(Self {
            entries: entries as f64,
            agents_mib: mib(agents_bytes),
            home_mib: mib(home_bytes),
            open_files: processes.map(|pid| proc::open_files(*pid)).sum::<usize>() as f64,
            daemon_mib: proc::memory(pid)?.now,
            agents_memory_mib: agents_memory?.iter().sum(),
        })
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}

/// How many entries a directory has, with those of its directories, and their bytes on the disk.
fn size(dir: &Path) -> (u64, u64) {
    let (mut entries, mut bytes) = (0, 0);
    // It may be gone by now.
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        entries += 1;
        bytes += metadata.blocks() * 512;
        if metadata.is_dir() {
            let (inside, large) = size(&entry.path());
            entries += inside;
            bytes += large;
        }
    }
    (entries, bytes)
}
