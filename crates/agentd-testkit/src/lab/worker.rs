//! One run, in a process of its own. Whoever loses its parent comes to it, so it sees who was left behind.

use super::scenario;
use super::spec::Spec;
use super::watch;
use super::world::{Result, World, lock};
use super::{processes, record, timeline};
use agentd_process::failpoint::Passed;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How a run went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub spec: String,
    pub violations: Vec<Violation>,
    /// Faults that happened: role, point (none at a random time), signal.
    pub faults: Vec<(String, Option<String>, String)>,
    pub took_ms: u64,
    /// Points that were passed, where that was asked for.
    pub trace: Vec<Passed>,
    /// What happened, where something was wrong.
    pub timeline: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    pub promise: String,
    pub agent: Option<String>,
    pub what: String,
}

/// Carries a run out in this folder.
pub fn run(root: &Path, spec: &Spec) -> Result<Outcome> {
    let begin = Instant::now();
    agentd_process::adopt_orphans()?;
    let world = World::new(root, spec.clone())?;
    // Whoever ends this process finds what is needed to see what happened.
    write_run(&world)?;
    let done = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch::watch(&world));
        scope.spawn(|| end_in_time(&world));
        let done = scenario::run(&world).and_then(|()| world.finish());
        if done.is_err() {
            // What can still be seen; then nobody is left behind.
            salvage(&world);
        }
        world.is_at_rest.store(true, Ordering::Relaxed);
        world.is_over.store(true, Ordering::Relaxed);
        let watched = watching.join().unwrap_or(Ok(()));
        end_all(&world);
        done.and(watched.map_err(Into::into))
    });
    world.write_prompts()?;
    world.write_requests()?;
    write_run(&world)?;
    let mut violations = Vec::new();
    if let Err(stuck) = &done {
        violations.push(Violation {
            promise: "stuck".to_owned(),
            agent: None,
            what: stuck.to_string(),
        });
    } else {
        violations.extend(check(world.record.folder())?);
    }
    let faults = record::lines(&world.record.folder().join("faults.jsonl"));
    let trace = if spec.trace {
        Passed::read_all(&world.root)?
    } else {
        Vec::new()
    };
    let timeline = match violations.is_empty() {
        true => String::new(),
        false => timeline::of(world.record.folder(), world.record.began_unix()),
    };
    Ok(Outcome {
        spec: spec.to_string(),
        violations,
        faults: faults.iter().filter_map(fault).collect(),
        took_ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
        trace,
        timeline,
    })
}

fn fault(line: &Value) -> Option<(String, Option<String>, String)> {
    let what = line["what"].as_str().filter(|what| *what != "CONT")?;
    let point = line["point"].as_str().map(str::to_owned);
    Some((line["role"].as_str()?.to_owned(), point, what.to_owned()))
}

/// What was promised and did not hold.
fn check(run: &Path) -> std::io::Result<Vec<Violation>> {
    let found = super::check::check(run)?.into_iter();
    let violations = found.map(|found| Violation {
        promise: found.promise.to_owned(),
        what: found.to_string(),
        agent: found.agent,
    });
    Ok(violations.collect())
}

/// What the checker is told about the run itself.
fn write_run(world: &World) -> Result<()> {
    let faults: Vec<Value> = world.spec.faults.iter().map(|it| json!({
        "role": it.role.name(), "point": it.point, "nth": it.nth, "action": it.action.name(),
    })).collect();
    let agents: Vec<Value> = lock(&world.agents)
        .iter()
        .map(|(id, name)| {
            json!({
                "id": id, "name": name,
            })
        })
        .collect();
    let run = json!({
        "scenario": world.spec.scenario, "seed": world.spec.seed, "fault": faults.first(),
        "faults": faults, "random": world.spec.random, "repeat": world.spec.repeat(),
        "agents": agents, "expects": *lock(&world.expects), "began_unix_us": world.record.began_unix(),
    });
    Ok(world.record.whole("run.json", &run)?)
}

/// Ends everybody when the time is over: whoever waits for them is not to wait for ever.
fn end_in_time(world: &World) {
    while !world.is_over.load(Ordering::Relaxed) {
        if world.left().is_zero() {
            // A moment for what can still be seen.
            // tidy: polls nothing
            std::thread::sleep(Duration::from_secs(10));
            while !world.is_over.load(Ordering::Relaxed) {
                end_all(world);
                super::world::pause();
            }
        }
        super::world::pause();
    }
}

fn end_all(world: &World) {
    for _ in 0..200 {
        let all = processes::descendants(&world.root);
        let alive: Vec<_> = all.iter().filter(|it| it.is_alive()).collect();
        if alive.is_empty() {
            break;
        }
        let _some_left = agentd_process::kill_descendants();
        super::world::pause();
    }
    processes::reap(world);
    // Those of shims that were killed, and whose tasks nobody looked for again.
    agentd_process::remove_stale_cgroups();
}

/// The events as far as they can be read, for the timeline.
fn salvage(world: &World) {
    for (_, agent) in lock(&world.agents).clone() {
        let events = world.events(&agent).unwrap_or_default();
        let lines: Vec<String> = events.iter().map(ToString::to_string).collect();
        let path = world.record.folder().join(format!("export/{agent}.jsonl"));
        let _nothing = fs::write(path, lines.join("\n"));
    }
    let _nothing = processes::write(world, "stuck");
    let logs = fs::read(world.home().join("daemon.log")).unwrap_or_default();
    let _nothing = fs::write(world.record.folder().join("daemon.log"), logs);
}
