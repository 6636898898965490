//! An agent's process dies at its memory limit; the next process continues.

use super::{as_pid, completed, fault, pids, watched};
use crate::lab::testbed::{Result, Stuck, Testbed};
use rustix::process::{Resource, Rlimit, prlimit};
use serde_json::Value;
use std::fs;

const AGENT: &str = "worker";

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    watched(testbed, AGENT, || turns(testbed))
}

fn turns(testbed: &Testbed) -> Result<()> {
    completed(testbed, AGENT, "do: say before")?;
    let runtime = testbed.until("a runtime", || pids(testbed, "runtime").first().copied())?;
    let status = fs::read_to_string(format!("/proc/{runtime}/status"))?;
    let used = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let used = used.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let room = (used.unwrap_or(0) + 64) * 1024;
    let limit = Rlimit {
        current: Some(room),
        maximum: Some(room),
    };
    let limited = prlimit(as_pid(runtime), Resource::As, limit);
    limited.map_err(std::io::Error::from)?;
    fault(testbed, "runtime", "ENOMEM")?;
    let words = "many words ".repeat(10_000);
    testbed.ask(AGENT, &format!("remember this: {words}"))?;
    // It really died of it.
    let events = testbed.until("the events", || testbed.events(AGENT))?;
    let is_crash = |event: &Value| event["body"]["after"] == "crash";
    if !events.iter().any(is_crash) {
        return Err(Stuck::Wrong("no process reached the limit".to_owned()));
    }
    completed(testbed, AGENT, "do: say after")
}
