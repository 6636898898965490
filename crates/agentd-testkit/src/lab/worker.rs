//! One run, in its own process. The process is a child subreaper, so it sees every orphan of the run.

use super::scenario;
use super::spec::Spec;
use super::testbed::{Result, Testbed, lock};
use super::watch;
use super::{processes, record, timeline};
use agentd_failpoint::Passed;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The outcome of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub spec: String,
    pub violations: Vec<Violation>,
    /// Faults that happened: role, failpoint (none at a random time), signal.
    pub faults: Vec<(String, Option<String>, String)>,
    pub took_ms: u64,
    /// Failpoints that were passed, if the spec requests them.
    pub trace: Vec<Passed>,
    /// The timeline, if there are violations.
    pub timeline: String,
}

impl Outcome {
    pub fn is_of(&self, scenario: &str) -> bool {
        self.spec.split(',').next() == Some(scenario)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    pub promise: String,
    pub agent: Option<String>,
    pub what: String,
}

/// Executes a run in this directory.
pub fn run(root: &Path, spec: &Spec) -> Result<Outcome> {
    let begin = Instant::now();
    agentd_process::adopt_orphans()?;
    let testbed = Testbed::new(root, spec.clone())?;
    // If this process is killed, the directory has what is needed to see what happened.
    write_run(&testbed)?;
    let done = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch::watch(&testbed));
        scope.spawn(|| end_in_time(&testbed));
        let done = scenario::run(&testbed).and_then(|()| testbed.finish());
        if done.is_err() {
            // Record what is left, then end all processes.
            salvage(&testbed);
        }
        testbed.is_at_rest.store(true, Ordering::Relaxed);
        testbed.is_over.store(true, Ordering::Relaxed);
        let watched = watching.join().unwrap_or(Ok(()));
        end_all(&testbed);
        done.and(watched.map_err(Into::into))
    });
    testbed.write_prompts()?;
    testbed.write_requests()?;
    write_run(&testbed)?;
    let mut violations = Vec::new();
    if let Err(stuck) = &done {
        violations.push(Violation {
            promise: "stuck".to_owned(),
            agent: None,
            what: stuck.to_string(),
        });
    } else {
        violations.extend(check(testbed.record.dir())?);
    }
    let faults = record::lines(&testbed.record.dir().join("faults.jsonl"));
    let trace = if spec.trace {
        Passed::read_all(&testbed.root)?
    } else {
        Vec::new()
    };
    let timeline = match violations.is_empty() {
        true => String::new(),
        false => timeline::of(testbed.record.dir(), testbed.record.began_unix()),
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
    let failpoint = line["failpoint"].as_str().map(str::to_owned);
    Some((
        line["role"].as_str()?.to_owned(),
        failpoint,
        what.to_owned(),
    ))
}

/// The promises that were violated.
fn check(run: &Path) -> std::io::Result<Vec<Violation>> {
    let found = super::check::check(run)?.into_iter();
    let violations = found.map(|found| Violation {
        promise: found.promise.to_owned(),
        what: found.to_string(),
        agent: found.agent,
    });
    Ok(violations.collect())
}

/// The facts about the run that the checker needs.
fn write_run(testbed: &Testbed) -> Result<()> {
    let faults: Vec<Value> = testbed.spec.faults.iter().map(|it| json!({
        "role": it.role.name(), "failpoint": it.failpoint, "nth": it.nth, "action": it.action.name(),
    })).collect();
    let agents: Vec<Value> = lock(&testbed.agents)
        .iter()
        .map(|(id, name)| {
            json!({
                "id": id, "name": name,
            })
        })
        .collect();
    let run = json!({
        "scenario": testbed.spec.scenario, "seed": testbed.spec.seed, "fault": faults.first(),
        "faults": faults, "random": testbed.spec.random, "repeat": testbed.spec.repeat(),
        "agents": agents, "expects": *lock(&testbed.expects), "began_unix_us": testbed.record.began_unix(),
    });
    Ok(testbed.record.whole("run.json", &run)?)
}

/// Ends all processes when the time is over, so that no caller waits forever.
fn end_in_time(testbed: &Testbed) {
    while !testbed.is_over.load(Ordering::Relaxed) {
        if testbed.left().is_zero() {
            // Time to record what is left.
            // tidy: polls nothing
            std::thread::sleep(Duration::from_secs(10));
            while !testbed.is_over.load(Ordering::Relaxed) {
                end_all(testbed);
                super::testbed::pause();
            }
        }
        super::testbed::pause();
    }
}

fn end_all(testbed: &Testbed) {
    for _ in 0..200 {
        let all = processes::descendants(&testbed.root);
        let alive: Vec<_> = all.iter().filter(|it| it.is_alive()).collect();
        if alive.is_empty() {
            break;
        }
        let _some_left = agentd_process::kill_descendants();
        super::testbed::pause();
    }
    processes::reap(testbed);
    // Claims of shims that were killed and whose tasks were not checked again.
    agentd_process::remove_stale_cgroups();
}

/// The readable events, for the timeline.
fn salvage(testbed: &Testbed) {
    for (_, agent) in lock(&testbed.agents).clone() {
        let events = testbed.events(&agent).unwrap_or_default();
        let lines: Vec<String> = events.iter().map(ToString::to_string).collect();
        let path = testbed.record.dir().join(format!("export/{agent}.jsonl"));
        let _nothing = fs::write(path, lines.join("\n"));
    }
    let _nothing = processes::write(testbed, "stuck");
    let logs = fs::read(testbed.home().join("daemon.log")).unwrap_or_default();
    let _nothing = fs::write(testbed.record.dir().join("daemon.log"), logs);
}
