//! The records for the lab: which failpoints were passed, and which rules were applied.

use super::plan::{Role, Rule};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const TRACE: &str = "trace.jsonl";
const FIRED: &str = "fired";
const FIRED_LOG: &str = "fired.jsonl";
const PROCESSES: &str = "processes";

/// A failpoint that was passed: a line of `trace.jsonl`, or the content of `fired/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Microseconds since 1970.
    pub at: u64,
    pub role: Role,
    pub process: u32,
    pub pid: u32,
    pub failpoint: String,
    pub nth: u32,
}

/// Whether a rule is to be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fired {
    Now,
    Before,
}

impl Passed {
    /// All failpoints that were passed in this directory.
    pub fn read_all(dir: &Path) -> io::Result<Vec<Self>> {
        let text = match fs::read_to_string(dir.join(TRACE)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let lines = text.lines().map(serde_json::from_str);
        Ok(lines.collect::<Result<_, _>>()?)
    }

    /// The failpoint at which the rule with this name was applied, if it was; for a repeated rule, the first one.
    pub fn of_rule(dir: &Path, name: &str) -> io::Result<Option<Self>> {
        match fs::read(dir.join(FIRED).join(name)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the rule is for this pass.
    pub(super) fn matches(&self, rule: &Rule) -> bool {
        self.role == rule.role
            && self.failpoint == rule.failpoint
            && rule.process.is_none_or(|process| process == self.process)
            && rule.nth.is_none_or(|nth| nth == self.nth)
    }

    /// Releases the process that a rule holds.
    pub fn release(dir: &Path, name: &str) -> io::Result<()> {
        fs::write(go(dir, name), "")
    }
}

#[derive(Debug)]
pub(super) struct Record {
    trace: Option<File>,
}

impl Record {
    pub fn open(dir: &Path, trace: bool) -> io::Result<Self> {
        fs::create_dir_all(dir.join(FIRED))?;
        // A tool in a sandbox may append to it, but cannot create it.
        append(dir.join(FIRED_LOG))?;
        let trace = trace.then(|| append(dir.join(TRACE))).transpose()?;
        Ok(Self { trace })
    }

    /// In one write, because several processes append to the file.
    pub fn passed(&self, passed: &Passed) {
        if let Some(mut trace) = self.trace.as_ref()
            && let Ok(line) = serde_json::to_string(passed)
        {
            // If the lab is gone, no trace is needed.
            let _gone = trace.write_all(format!("{line}\n").as_bytes());
        }
    }
}

/// The number of this process among those of its role.
pub(super) fn number(dir: &Path, role: Role) -> io::Result<u32> {
    let dir = dir.join(PROCESSES);
    fs::create_dir_all(&dir)?;
    let mut number = 1;
    loop {
        let own = dir.join(format!("{}.{number}", role.name()));
        match File::create_new(own) {
            Ok(mut file) => {
                write!(file, "{}", std::process::id())?;
                return Ok(number);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Records that the rule is applied. Of several processes only one applies it, unless the rule is for each pass.
/// `inside` is the path that the process works on.
pub(super) fn fire(dir: &Path, inside: &Path, rule: &Rule, passed: &Passed) -> io::Result<Fired> {
    let fired = mark(&dir.join(FIRED), rule, passed)?;
    if fired == Fired::Now {
        let mut line = serde_json::to_value(passed)?;
        line["pid_ns"] = pid_namespace().into();
        line["inside"] = inside.display().to_string().into();
        line["rule"] = rule.name.clone().into();
        line["action"] = rule.action.name().into();
        append(dir.join(FIRED_LOG))?.write_all(format!("{line}\n").as_bytes())?;
    }
    Ok(fired)
}

/// The PID namespace to which this process's pid belongs.
pub fn pid_namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid");
    link.map_or_else(|_| String::new(), |link| link.display().to_string())
}

fn append(path: PathBuf) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

fn mark(dir: &Path, rule: &Rule, passed: &Passed) -> io::Result<Fired> {
    let unready = dir.join(format!(".{}.{}", rule.name, passed.pid));
    fs::write(&unready, serde_json::to_vec(passed)?)?;
    let linked = fs::hard_link(&unready, dir.join(&rule.name));
    fs::remove_file(&unready)?;
    match linked {
        Ok(()) => Ok(Fired::Now),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(match rule.each {
            true => Fired::Now,
            false => Fired::Before,
        }),
        Err(error) => Err(error),
    }
}

pub(super) fn go(dir: &Path, name: &str) -> PathBuf {
    dir.join(FIRED).join(format!("{name}.go"))
}

pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}
