//! P9: no process that the system started is alive without an owner, and none is a zombie.
//!
//! A tool's processes belong to their shim, a shim to a call or task that has not ended, a runtime to the
//! daemon. After everything was stopped, only background tasks are left.

use super::evidence::Process;
use super::{Case, Found, p04_commands};
use crate::lab::processes::ends_with_runtime;
use std::collections::BTreeMap;

const P: &str = "P9";

pub fn check(case: &Case<'_>, found: &mut Found) {
    for when in ["rest", "end"] {
        let there = case
            .evidence
            .processes
            .iter()
            .filter(|process| process.when == when);
        let there: Vec<&Process> = there.collect();
        for process in &there {
            if process.is_zombie() {
                wrong(process, when, "is a zombie", found);
            }
        }
        let alive: Vec<&Process> = there
            .into_iter()
            .filter(|process| !process.is_zombie())
            .collect();
        owners(case, when, &alive, found);
        one_of_each(case, when, &alive, found);
    }
}

fn wrong(process: &Process, when: &str, what: &str, found: &mut Found) {
    let (pid, role, command) = (process.pid, &process.role, process.command());
    found.add_of_run(P, format!("at {when}, {role} {pid} {what}: {command}"));
}

fn owners(case: &Case<'_>, when: &str, alive: &[&Process], found: &mut Found) {
    let running: Vec<&str> = case
        .stories
        .iter()
        .flat_map(|story| {
            let tasks = story.running_tasks().into_iter();
            tasks.chain(p04_commands::running(story))
        })
        .collect();
    let by_pid: BTreeMap<u64, &Process> = alive.iter().map(|it| (it.pid, *it)).collect();
    let has_daemon = alive.iter().any(|process| process.role == "daemon");
    for process in alive {
        match process.role.as_str() {
            "daemon" if when == "end" => wrong(process, when, "was not stopped", found),
            "runtime" if when == "end" => wrong(process, when, "was not stopped", found),
            "runtime" if !has_daemon => wrong(process, when, "has no daemon", found),
            // The shim of an MCP server, or of a process of the file tools: it ends with its runtime.
            "shim" if ends_with_runtime(&process.command()) => {
                let has_owner = alive.iter().any(|it| it.role == "runtime");
                if when == "end" || !has_owner {
                    wrong(process, when, "exists without its runtime", found);
                }
            }
            "shim" => {
                let command = process.command();
                if !running.iter().any(|task| command.contains(task)) {
                    wrong(process, when, "exists for a task that has ended", found);
                }
            }
            "tool" if !has_shim(process, &by_pid) => wrong(process, when, "has no shim", found),
            "other" if when == "end" && process.environ_mark && !has_shim(process, &by_pid) => {
                wrong(process, when, "was left behind", found);
            }
            _ => {}
        }
    }
}

/// Whether one of its ancestors is a live shim.
fn has_shim(process: &Process, by_pid: &BTreeMap<u64, &Process>) -> bool {
    let mut at = by_pid.get(&process.ppid);
    // A list that was read while processes came and went may contain a cycle.
    for _ in 0..by_pid.len() {
        match at {
            Some(parent) if parent.role == "shim" => return true,
            Some(parent) => at = by_pid.get(&parent.ppid),
            None => return false,
        }
    }
    false
}

fn one_of_each(case: &Case<'_>, when: &str, alive: &[&Process], found: &mut Found) {
    let of = |role: &str| {
        alive
            .iter()
            .filter(|it| it.role == role)
            .copied()
            .collect::<Vec<_>>()
    };
    let daemons = of("daemon");
    if daemons.len() > 1 {
        let pids: Vec<u64> = daemons.iter().map(|it| it.pid).collect();
        found.add_of_run(P, format!("at {when}, there are several daemons: {pids:?}"));
    }
    for story in &case.stories {
        let runtimes = of("runtime");
        let own = runtimes
            .iter()
            .filter(|process| process.command().contains(story.agent));
        let pids: Vec<u64> = own.map(|process| process.pid).collect();
        if pids.len() > 1 {
            let what = format!("at {when}, several processes run it: {pids:?}");
            found.add(P, story.agent, what, &[]);
        }
    }
}
