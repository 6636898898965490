//! Faults below the process: a disk that is full, fails, is slow or loses power; a clock that
//! jumps; files, descriptors and memory that run out. For each: the client gets a clear error, nothing that
//! was acknowledged is lost, and everything continues when the fault is over. The same checker checks these runs.
//!
//! - [`ground`]: a separate disk for the state directory, and what a run needs from the machine.
//! - The others: one fault each.

mod clock;
mod descriptors;
mod full;
pub mod ground;
mod home;
mod memory;
mod power;
mod readonly;
mod short;
mod socket;
mod syscalls;
mod torn;

use super::clients::{PromptNumber, Ran};
use super::processes;
use super::reader;
use super::spec::Spec;
use super::testbed::{Heard, Prompted, Result, Stuck, Testbed, lock};
use ground::Need;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// One fault, as a scenario.
pub struct Below {
    pub name: &'static str,
    pub about: &'static str,
    need: Need,
    pub run: fn(&Testbed) -> Result<()>,
}

pub const ALL: [Below; 12] = [
    Below {
        name: "disk-full",
        about: "no space left for some seconds, for the journal and the log",
        need: Need::LoopDevices,
        run: full::run,
    },
    Below {
        name: "read-only",
        about: "a state directory that is read-only",
        need: Need::Mounts,
        run: readonly::run,
    },
    Below {
        name: "syscalls",
        about: "writes and syncs that fail, are interrupted or are slow",
        need: Need::Strace,
        run: syscalls::run,
    },
    Below {
        name: "short-writes",
        about: "writes that end in their middle",
        need: Need::Nothing,
        run: short::run,
    },
    Below {
        name: "torn-tail",
        about: "half a frame at the end of the database's write-ahead log",
        need: Need::Nothing,
        run: torn::run,
    },
    Below {
        name: "no-socket",
        about: "the sockets are deleted",
        need: Need::Nothing,
        run: socket::run,
    },
    Below {
        name: "descriptors",
        about: "the daemon has no descriptor left",
        need: Need::Nothing,
        run: descriptors::run,
    },
    Below {
        name: "memory",
        about: "an agent's process is at its memory limit",
        need: Need::Nothing,
        run: memory::run,
    },
    Below {
        name: "clock",
        about: "the clock jumps back and ahead",
        need: Need::Nothing,
        run: clock::run,
    },
    Below {
        name: "home-copied",
        about: "a copy of the state directory is opened while a command runs",
        need: Need::Nothing,
        run: home::copied,
    },
    Below {
        name: "home-lost",
        about: "the state directory is moved away under a running daemon",
        need: Need::Nothing,
        run: home::lost,
    },
    Below {
        name: "power",
        about: "power failure: whatever is not on disk is lost",
        need: Need::LoopDevices,
        run: power::run,
    },
];

/// The runs that this machine supports, and a line for each that it does not.
pub fn specs(seed: u64, rounds: u32) -> (Vec<Spec>, Vec<(&'static str, String)>) {
    let (mut specs, mut skipped) = (Vec::new(), Vec::new());
    for below in ALL {
        match skipped_because(below.name, below.need) {
            None => {
                // Only for power failures does the random moment matter.
                let times = if below.name == "power" { rounds } else { 1 };
                let runs = (0..u64::from(times)).map(|n| Spec::new(below.name, seed + n));
                specs.extend(runs);
            }
            Some(line) => skipped.push((below.name, line)),
        }
    }
    (specs, skipped)
}

/// A line that says why this machine cannot run this scenario; none if it can.
pub fn skipped(scenario: &str) -> Option<String> {
    skipped_because(scenario, need(scenario))
}

fn skipped_because(scenario: &str, need: Need) -> Option<String> {
    let why = need.missing()?;
    Some(format!("skipped: {scenario} ({why})"))
}

/// Whether a run of this scenario mounts a file over a part of /proc. No sandbox can mount its own /proc then, so its
/// commands run without one.
pub fn masks_proc(scenario: &str) -> bool {
    scenario == "power"
}

/// The number of power failures in a run of this scenario.
pub fn cuts(scenario: &str) -> usize {
    if scenario == "power" { power::CUTS } else { 0 }
}

/// What a run of this scenario needs from the machine.
pub fn need(scenario: &str) -> Need {
    let found = ALL.into_iter().find(|below| below.name == scenario);
    found.map_or(Need::Nothing, |below| below.need)
}

/// Records that a fault begins or is over.
fn fault(testbed: &Testbed, whose: &str, what: &str) -> Result<()> {
    let line = json!({"at": testbed.record.at(), "role": whose, "pid": 0, "what": what,
                      "failpoint": null, "nth": null});
    Ok(testbed.record.line("faults.jsonl", &line)?)
}

/// Sends a prompt once, whatever the result.
fn try_send(testbed: &Testbed, agent: &str, text: &str) -> Result<(PromptNumber, Ran)> {
    let number = {
        let mut prompts = lock(&testbed.prompts);
        let number = prompts.len();
        prompts.push(Prompted {
            at: testbed.record.at(),
            agent: agent.to_owned(),
            key: format!("key-{number}"),
            text: text.to_owned(),
            ..Prompted::default()
        });
        number
    };
    let key = format!("key-{number}");
    let args = ["send", agent, "--no-wait", "--json", "--key", &key, text];
    let heard = Heard::from(testbed);
    let ran = testbed.cli(agent, &args)?;
    if !heard.counts() {
        return Ok((number, ran));
    }
    let sent = ran.json().unwrap_or_default();
    if let (Some(prompt), Some(known)) = (
        sent["prompt"].as_str(),
        lock(&testbed.prompts).get_mut(number),
    ) {
        known.prompt = Some(prompt.to_owned());
    }
    Ok((number, ran))
}

/// Checks that the client got a clear error: unavailable, with text that names the cause.
fn told_clearly(ran: &Ran, words: &[&str]) -> Result<()> {
    let said = ran.stderr.to_lowercase();
    let is_clear = words.iter().any(|word| said.contains(word));
    match ran.code == Some(4) && is_clear {
        true => Ok(()),
        false => Err(Stuck::Wrong(format!(
            "exit {:?}, and none of {words:?} in: {}",
            ran.code, ran.stderr
        ))),
    }
}

/// Checks that a prompt is answered as expected.
fn completed(testbed: &Testbed, agent: &str, text: &str) -> Result<()> {
    let status = testbed.ask(agent, text)?;
    match status.as_str() {
        "completed" => Ok(()),
        other => Err(Stuck::Wrong(format!("`{text}` ended as {other}"))),
    }
}

/// Checks that the journal is intact, according to the product itself.
fn verified(testbed: &Testbed) -> Result<()> {
    let ran = testbed.cli("", &["verify", "--json"])?;
    match ran.code {
        Some(0) => Ok(()),
        _ => Err(Stuck::Wrong(format!(
            "verify: {} {}",
            ran.stdout, ran.stderr
        ))),
    }
}

/// Runs `work` while a reader watches the agent, then waits until all is idle.
fn watched(testbed: &Testbed, agent: &str, what: impl FnOnce() -> Result<()>) -> Result<()> {
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, agent));
        let done = what().and_then(|()| testbed.wait_idle(&[agent]));
        testbed.is_at_rest.store(true, Ordering::Relaxed);
        done
    })
}

/// The processes of this role.
fn pids(testbed: &Testbed, role: &str) -> Vec<u32> {
    let all = processes::descendants(&testbed.root);
    let own = all.iter().filter(|it| it.role == role && it.is_alive());
    own.map(|it| it.pid).collect()
}

/// The daemon's pid, as soon as there is one.
fn daemon(testbed: &Testbed) -> Result<Pid> {
    testbed.wake()?;
    testbed.until("a daemon", || as_pid(*pids(testbed, "daemon").first()?))
}

fn as_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Kills the daemon and all runtimes, and waits until they have ended.
fn kill_all(testbed: &Testbed) -> Result<()> {
    for role in ["daemon", "runtime"] {
        for pid in pids(testbed, role) {
            let line = json!({"at": testbed.record.at(), "role": role, "pid": pid, "what": "KILL",
                              "failpoint": Value::Null, "nth": Value::Null});
            testbed.record.line("faults.jsonl", &line)?;
            if let Some(pid) = as_pid(pid) {
                let _gone = kill_process(pid, Signal::KILL);
            }
        }
    }
    testbed.until("the end of all", || {
        let left = pids(testbed, "daemon").len() + pids(testbed, "runtime").len();
        (left == 0).then_some(())
    })
}
