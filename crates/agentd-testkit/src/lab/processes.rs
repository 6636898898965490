//! The processes of a run: every process below this one, and its role.

use super::testbed::{Testbed, lock};
use agentd_failpoint::plan::Role;
use rustix::process::{Pid, WaitOptions, waitpid};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub state: char,
    pub start: u64,
    pub cmdline: String,
    pub role: String,
    pub is_marked: bool,
}

impl Process {
    pub const fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

/// Whether a shim ends with its runtime: that of an MCP server, or of a process of the file tools.
pub fn ends_with_runtime(cmdline: &str) -> bool {
    let mut dirs = ["/mcp/", "/file_tools/"].into_iter();
    dirs.any(|dir| cmdline.contains(dir))
}

/// All processes below this one.
pub fn descendants(root: &Path) -> Vec<Process> {
    let roles = roles(root);
    let all: HashMap<u32, Process> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, look(pid, root, &roles)?)))
        .collect();
    let me = std::process::id();
    let is_below = |process: &Process| {
        let mut at = process.parent;
        for _ in 0..64 {
            if at == me {
                return true;
            }
            match all.get(&at) {
                Some(above) => at = above.parent,
                None => return false,
            }
        }
        false
    };
    let mut found: Vec<Process> = all.values().filter(|it| is_below(it)).cloned().collect();
    // A process that a shim has started is a tool, whatever its name.
    let parents: HashMap<u32, (u32, String)> = found
        .iter()
        .map(|it| (it.pid, (it.parent, it.role.clone())))
        .collect();
    for process in &mut found {
        let mut at = process.parent;
        while process.role == "other" {
            match parents.get(&at) {
                Some((_, role)) if role == "shim" => process.role = "tool".to_owned(),
                Some((above, _)) => at = *above,
                None => break,
            }
        }
    }
    found.sort_by_key(|process| process.pid);
    found
}

fn look(pid: u32, root: &Path, roles: &HashMap<u32, String>) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    // The name of the program, in parentheses, may contain any characters.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let cmdline = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
    let mark = root.display().to_string();
    let environ = read("environ");
    let is_marked = String::from_utf8_lossy(&environ).contains(&mark) || cmdline.contains(&mark);
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        state: fields.first()?.chars().next()?,
        start: fields.get(19)?.parse().ok()?,
        role: roles
            .get(&pid)
            .cloned()
            .unwrap_or_else(|| "other".to_owned()),
        cmdline: cmdline.trim_end().to_owned(),
        is_marked,
    })
}

/// The live process that wrote this line, by its pid in this namespace. In a sandbox it has another one.
pub fn find(testbed: &Testbed, line: &Value) -> Option<u32> {
    let (namespace, inside) = (line["pid_ns"].as_str()?, line["pid"].as_u64()?);
    let all = descendants(&testbed.root).into_iter();
    let mut alive = all.filter(Process::is_alive).map(|process| process.pid);
    alive.find(|pid| {
        let link = fs::read_link(format!("/proc/{pid}/ns/pid"));
        let is_there = link.is_ok_and(|link| link.as_os_str() == namespace);
        is_there && innermost(*pid) == Some(inside)
    })
}

/// Its pid in its own namespace.
fn innermost(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut lines = status.lines();
    let pids = lines.find_map(|line| line.strip_prefix("NSpid:"))?;
    pids.split_ascii_whitespace().next_back()?.parse().ok()
}

/// The role that each process registered at its start. Tools are found by their shim: in a sandbox their pid differs.
fn roles(root: &Path) -> HashMap<u32, String> {
    let mut roles = HashMap::new();
    for entry in fs::read_dir(root.join("processes"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = fs::read_to_string(entry.path()).unwrap_or_default();
        if let (Some((role, _)), Ok(pid)) = (name.split_once('.'), pid.parse())
            && role != Role::Tool.name()
        {
            roles.insert(pid, role.to_owned());
        }
    }
    roles
}

/// Reaps orphans that have ended, as the init process of a system does.
pub fn reap(testbed: &Testbed) {
    // Held so that no child is reaped between its start and its registration in `waited_for`.
    let waited_for = lock(&testbed.waited_for);
    let threads = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let children = threads.map(|thread| fs::read_to_string(thread.path().join("children")));
    let text = children.flatten().collect::<Vec<String>>().join(" ");
    for pid in text
        .split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
    {
        let is_ours = i32::try_from(pid)
            .ok()
            .filter(|_| !waited_for.contains(&pid));
        if let Some(pid) = is_ours.and_then(Pid::from_raw) {
            let _alive = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Records the processes.
pub fn write(testbed: &Testbed, when: &str) -> std::io::Result<()> {
    let at = testbed.record.at();
    for it in descendants(&testbed.root) {
        testbed
            .record
            .line("processes.jsonl", &line(at, when, &it))?;
    }
    Ok(())
}

fn line(at: u64, when: &str, it: &Process) -> Value {
    json!({"at": at, "when": when, "pid": it.pid, "ppid": it.parent, "state": it.state.to_string(),
           "start": it.start, "cmdline": it.cmdline, "environ_mark": it.is_marked, "role": it.role})
}
