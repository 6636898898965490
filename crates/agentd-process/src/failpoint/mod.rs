//! Points: places that the lab can see a process pass, hold it at, or end it at.
//!
//! A switch at run time of the same build. A process that nobody took into the lab pays for one look at a
//! flag; and only a process whose files are all inside a directory that the lab has marked as its own can be
//! taken in ([`enter`]). In that directory, [`plan`] says what is to happen where, and what was passed or has
//! happened is written down beside it.

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

/// Sets the clock of everybody in the lab off, by so many milliseconds.
pub const CLOCK_FILE: &str = "clock";

static LAB: OnceLock<Lab> = OnceLock::new();

#[derive(Debug)]
struct Lab {
    dir: PathBuf,
    /// What the process works on.
    inside: PathBuf,
    role: Role,
    /// Which one of its role it is, in the order in which they came.
    process: u32,
    plan: Plan,
    record: record::Record,
    /// How often each failpoint was passed.
    passed: Mutex<HashMap<String, u32>>,
}

/// From now on this process does what the plan in the lab's directory says. Everything that it works on must
/// be `inside` that directory. The first call counts.
pub fn enter(dir: &Path, inside: &Path, role: Role) -> Result<(), Refused> {
    let dir = door::open(dir, inside)?;
    let plan = Plan::read(&dir).map_err(|error| door::refused(&dir, error))?;
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

/// The lab's directory, where this process is in the lab: for those that it starts.
pub fn dir() -> Option<&'static Path> {
    LAB.get().map(|lab| lab.dir.as_path())
}

/// This is the failpoint `when-what`.
pub fn hit(when: &str, what: &str) {
    if let Some(lab) = LAB.get() {
        lab.pass(format!("{when}-{what}"));
    }
}

/// This is the failpoint `when-what.which`.
pub fn hit_of(when: &str, what: &str, which: &str) {
    if let Some(lab) = LAB.get() {
        lab.pass(format!("{when}-{what}.{which}"));
    }
}

/// Whether this process is to make that mistake on purpose, for the lab to find.
pub fn injected_bug(name: &str) -> bool {
    let lab = LAB.get();
    lab.is_some_and(|lab| lab.plan.injected_bugs.iter().any(|known| known == name))
}

/// By how many milliseconds the lab has set the clock of this process off: what the file
/// [`CLOCK_FILE`] in its directory says.
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
            if rule.is_for(&passed) {
                self.act(rule, &passed);
            }
        }
    }

    fn act(&self, rule: &Rule, passed: &Passed) {
        // Where it cannot be said that it happened, it does not.
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
            // tidy: polls for the file that lets it go on
            std::thread::sleep(POLL);
        }
    }
}

#[expect(clippy::panic, reason = "the lab asks for it")]
fn panic_at(rule: &Rule) {
    panic!("the lab's, at {}", rule.failpoint);
}

fn to_itself(signal: Signal) {
    // Nobody is more certain to be there.
    let _sent = kill_process(getpid(), signal);
}

#[cfg(test)]
mod tests;
