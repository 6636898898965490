//! What is left of the processes.

use super::{breaks, is_fine};
use serde_json::{Value, json};

fn process(when: &str, pid: u64, ppid: u64, role: &str) -> Value {
    json!({"when": when, "pid": pid, "ppid": ppid, "state": "S", "cmdline": ["sh", "-c", "x"],
           "environ_mark": true, "role": role})
}

#[test]
fn a_tool_without_a_shim() {
    for when in ["rest", "end"] {
        breaks("P9", "has no shim", |run_dir| {
            run_dir.processes.push(process(when, 70, 1, "tool"))
        });
    }
    is_fine(|run_dir| run_dir.processes.push(process("end", 70, 61, "tool")));
}

#[test]
fn a_shim_whose_task_is_over() {
    breaks("P9", "for a task that has ended", |run_dir| {
        let mut shim = process("end", 70, 1, "shim");
        shim["cmdline"] = json!("agentd --agentd-shim tasks/k-1");
        run_dir.processes.push(shim);
    });
}

#[test]
fn a_zombie() {
    breaks("P9", "is a zombie", |run_dir| {
        let mut zombie = process("rest", 70, 40, "shim");
        zombie["state"] = json!("Z");
        run_dir.processes.push(zombie);
    });
}

#[test]
fn who_is_left_when_all_was_stopped() {
    breaks("P9", "was not stopped", |run_dir| {
        run_dir.processes.push(process("end", 70, 1, "daemon"))
    });
    breaks("P9", "was not stopped", |run_dir| {
        run_dir.processes.push(process("end", 70, 1, "runtime"))
    });
    breaks("P9", "was left behind", |run_dir| {
        run_dir.processes.push(process("end", 70, 1, "other"))
    });
    is_fine(|run_dir| run_dir.processes.push(process("rest", 70, 1, "other")));
}

#[test]
fn a_runtime_without_a_daemon_and_two_of_one() {
    breaks("P9", "has no daemon", |run_dir| {
        run_dir
            .processes
            .retain(|process| process["role"] != "daemon");
    });
    breaks("P9", "several processes run it", |run_dir| {
        let runtime = run_dir
            .processes
            .iter()
            .find(|process| process["role"] == "runtime");
        let mut second = runtime.unwrap().clone();
        second["pid"] = json!(51);
        run_dir.processes.push(second);
    });
    breaks("P9", "several daemons", |run_dir| {
        run_dir.processes.push(process("rest", 41, 1, "daemon"));
    });
}
