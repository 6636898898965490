//! Failpoints: positions in the code at which the lab can observe, hold or end a process.
//!
//! They are in every build and are switched on at run time. Outside the lab a failpoint costs one check of a flag.
//! Only a process whose files are all inside a directory that the lab has marked can enter the lab ([`enter`]). In
//! that directory, [`plan`] says what happens at which failpoint, and the failpoints that were passed are recorded.
//!
//! Injected bugs are compiled only with the feature `lab`. The test kit has it; a build of the program alone has not.

mod door;
pub mod plan;
mod record;

pub use door::{Refused, TOKEN, TOKEN_FILE, VARIABLE};
pub use record::{Fired, Passed, pid_namespace};

use plan::{Action, Plan, Role, Rule};
use rustix::process::{Signal, getpid, kill_process};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(2);

/// A file with an offset in milliseconds for the clock of all processes in the lab.
pub const CLOCK_FILE: &str = "clock";

static LAB: OnceLock<Lab> = OnceLock::new();

#[derive(Debug)]
struct Lab {
    dir: PathBuf,
    /// The path that the process works on.
    inside: PathBuf,
    role: Role,
    /// The number of the process among those of its role, in the order of their start.
    process: u32,
    plan: Plan,
    record: record::Record,
    /// How often each failpoint was passed.
    passed: Mutex<HashMap<String, u32>>,
}

/// Makes this process follow the plan in the lab's directory. Everything that it works on must be `inside` that
/// directory. Only the first call has an effect.
pub fn enter(dir: &Path, inside: &Path, role: Role) -> Result<(), Refused> {
    let dir = door::open(dir, inside)?;
    let plan = Plan::read(&dir).map_err(|error| door::refused(&dir, error))?;
    if !cfg!(feature = "lab") && !plan.injected_bugs.is_empty() {
        return Err(door::refused(&dir, "this build has no injected bugs"));
    }
    let record = record::Record::open(&dir, plan.trace);
    let record = record.map_err(|error| door::refused(&dir, error))?;
    let process = record::number(&dir, role);
    let process = process.map_err(|error| door::refused(&dir, error))?;
    let _entered_before = LAB.set(Lab {
        dir,
        inside: inside.to_owned(),
        role,
        process,
        plan,
        record,
        passed: Mutex::default(),
    });
    Ok(())
}

/// The lab's directory, if this process is in the lab: to pass on to child processes.
pub fn dir() -> Option<&'static Path> {
    LAB.get().map(|lab| lab.dir.as_path())
}

/// The failpoint `when-what`.
pub fn hit(when: &str, what: &str) {
    if let Some(lab) = LAB.get() {
        lab.pass(format!("{when}-{what}"));
    }
}

/// The failpoint `when-what.which`.
pub fn hit_of(when: &str, what: &str, which: &str) {
    if let Some(lab) = LAB.get() {
        lab.pass(format!("{when}-{what}.{which}"));
    }
}

/// Whether this process has that injected bug, which the lab must detect.
#[cfg(feature = "lab")]
pub fn injected_bug(name: &str) -> bool {
    let lab = LAB.get();
    lab.is_some_and(|lab| lab.plan.injected_bugs.iter().any(|known| known == name))
}

/// This build has no injected bugs.
#[cfg(not(feature = "lab"))]
pub const fn injected_bug(_name: &str) -> bool {
    false
}

/// In every program that has injected bugs, and in no other: `cargo xtask bench` looks for it.
pub const MARKER: &str = concat!("agentd-failpoint: ", "injected bugs are compiled in");

#[cfg(feature = "lab")]
#[used]
static MARKED: &str = MARKER;

/// The offset of this process's clock in milliseconds, from the file [`CLOCK_FILE`] in the lab's directory.
pub fn clock_off_ms() -> i64 {
    let off = LAB.get().and_then(|lab| {
        let text = std::fs::read_to_string(lab.dir.join(CLOCK_FILE)).ok()?;
        text.trim().parse().ok()
    });
    off.unwrap_or(0)
}

impl Lab {
    fn pass(&self, failpoint: String) {
        let nth = {
            let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
            let nth = passed.entry(failpoint.clone()).or_default();
            *nth += 1;
            *nth
        };
        let passed = Passed {
            at: record::now(),
            role: self.role,
            process: self.process,
            pid: std::process::id(),
            failpoint,
            nth,
        };
        self.record.passed(&passed);
        for rule in &self.plan.rules {
            if passed.matches(rule) {
                self.act(rule, &passed);
            }
        }
    }

    fn act(&self, rule: &Rule, passed: &Passed) {
        // If it cannot be recorded, it is not done.
        if !matches!(
            record::fire(&self.dir, &self.inside, rule, passed),
            Ok(Fired::Now)
        ) {
            return;
        }
        match rule.action {
            Action::Kill => to_itself(Signal::KILL),
            Action::Term => to_itself(Signal::TERM),
            Action::Int => to_itself(Signal::INT),
            Action::Stop => to_itself(Signal::STOP),
            Action::Hold => self.hold(rule),
            Action::Panic => panic_at(rule),
        }
    }

    fn hold(&self, rule: &Rule) {
        let go = record::go(&self.dir, &rule.name);
        while !go.exists() && self.dir.exists() {
            // tidy: polls for the file that releases it
            std::thread::sleep(POLL);
        }
    }
}

#[expect(clippy::panic, reason = "the lab asks for it")]
fn panic_at(rule: &Rule) {
    panic!("the lab's, at {}", rule.failpoint);
}

fn to_itself(signal: Signal) {
    // Our own process certainly exists.
    let _sent = kill_process(getpid(), signal);
}

#[cfg(test)]
mod tests;
