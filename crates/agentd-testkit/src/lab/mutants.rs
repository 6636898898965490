//! Mistakes that the product can make on purpose, in the lab alone: proof that the lab can fail. Each has a
//! run in which it shows, and the promise that is then broken.

use super::engine::{self, Options, Progress};
use super::spec::Spec;
use super::worker::Outcome;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;

#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    pub name: &'static str,
    pub about: &'static str,
    /// The run that shows it, without the mutant's own name.
    run: &'static str,
    /// The promise that catches it, among others perhaps.
    pub promise: &'static str,
}

pub const ALL: [Mutant; 9] = [
    Mutant {
        name: "acknowledged_early",
        about: "an acknowledgement before the commit",
        run: "accepted,seed=1,fault=daemon@before-commit.prompt_queued=KILL",
        promise: "P1",
    },
    Mutant {
        name: "result_not_kept",
        about: "a result that is not persisted",
        run: "leftovers,seed=1",
        promise: "P4",
    },
    Mutant {
        name: "no_fence",
        about: "no check of who may write",
        run: "accepted,seed=1,fault=runtime@after-send.append#5=KILL",
        promise: "P3",
    },
    Mutant {
        name: "tool_run_again",
        about: "a started tool that is run again",
        run: "leftovers,seed=1,fault=runtime@before-result=KILL",
        promise: "P4",
    },
    Mutant {
        name: "notice_twice",
        about: "a notice that is written twice",
        run: "interrupt,seed=1",
        promise: "P11",
    },
    Mutant {
        name: "kill_misses_group",
        about: "a kill that misses the group",
        run: "leftovers,seed=1",
        promise: "P9",
    },
    Mutant {
        name: "draft_not_flushed",
        about: "a draft that is shown and not flushed",
        run: "standard,seed=1,fault=runtime@after-draft=KILL",
        promise: "P5",
    },
    Mutant {
        name: "claim_not_taken",
        about: "a claim that recovery does not take",
        run: "leftovers,seed=1,fault=runtime@after-hand=KILL",
        promise: "P4",
    },
    Mutant {
        name: "reset_in_two",
        about: "a reset that is not one transaction",
        run: "resets,seed=1,fault=daemon@after-commit.conversation_sealed=KILL",
        promise: "P12",
    },
];

impl Mutant {
    /// The run that shows it.
    pub fn spec(&self) -> Result<Spec, String> {
        let mut spec: Spec = self.run.parse()?;
        spec.mutants.push(self.name.to_owned());
        Ok(spec)
    }
}

/// What the lab made of a mutant.
#[derive(Debug)]
pub struct Finding {
    pub mutant: Mutant,
    /// The promises that it broke.
    pub caught_by: Vec<String>,
    /// What the same run broke without it: nothing.
    pub without: Vec<String>,
    /// The first thing that was said about it.
    pub what: String,
}

impl Finding {
    pub fn is_caught(&self) -> bool {
        let is_expected = |promise: &String| promise == self.mutant.promise;
        self.caught_by.iter().any(is_expected) && self.without.is_empty()
    }
}

/// Runs each mutant, and each of their runs without it.
pub fn run(options: &Options, progress: Progress<'_>) -> io::Result<Vec<Finding>> {
    let mut specs = Vec::new();
    for mutant in ALL {
        for spec in [mutant.spec(), mutant.run.parse()] {
            let spec = spec.map_err(io::Error::other)?;
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        }
    }
    let outcomes = engine::all(options, specs, progress);
    // What these runs leave behind is as it should be.
    let _gone = std::fs::remove_dir_all(&options.folder);
    let broken = |spec: &Spec| {
        let spec = spec.to_string();
        let outcome = outcomes.iter().find(|outcome| outcome.spec == spec);
        outcome.ok_or_else(|| io::Error::other(format!("{spec} was not run")))
    };
    let mut findings = Vec::new();
    for mutant in ALL {
        let with = broken(&mutant.spec().map_err(io::Error::other)?)?;
        let without = broken(&mutant.run.parse().map_err(io::Error::other)?)?;
        findings.push(Finding {
            mutant,
            caught_by: promises(with),
            without: promises(without),
            what: said(with, mutant.promise),
        });
    }
    Ok(findings)
}

fn promises(outcome: &Outcome) -> Vec<String> {
    let promises = outcome.violations.iter();
    let mut promises: Vec<String> = promises.map(|found| found.promise.clone()).collect();
    promises.sort();
    promises.dedup();
    promises
}

/// What was said of this promise, or of any.
fn said(outcome: &Outcome, promise: &str) -> String {
    let mut violations = outcome.violations.iter();
    let found = violations.find(|found| found.promise == promise);
    let found = found.or(outcome.violations.first());
    found.map_or_else(String::new, |found| found.what.clone())
}

/// Which promise caught which.
pub fn text(findings: &[Finding]) -> String {
    let mut out = String::new();
    let _fits = writeln!(out, "{:<20} {:<40} caught by", "mutant", "the mistake");
    for finding in findings {
        let Mutant { name, about, .. } = finding.mutant;
        let verdict = match (finding.is_caught(), finding.without.is_empty()) {
            (true, _) => finding.caught_by.join(", "),
            (false, true) => format!("NOT by {}: {:?}", finding.mutant.promise, finding.caught_by),
            (false, false) => format!("and WRONG without it: {:?}", finding.without),
        };
        let _fits = writeln!(out, "{name:<20} {about:<40} {verdict}");
        let _fits = writeln!(out, "{:<20}   {}", "", finding.what);
    }
    let caught = findings
        .iter()
        .filter(|finding| finding.is_caught())
        .count();
    let _fits = writeln!(out, "{caught} of {} mutants caught", findings.len());
    out
}

pub fn json(findings: &[Finding]) -> Value {
    let each = findings.iter().map(|finding| {
        json!({"mutant": finding.mutant.name, "about": finding.mutant.about,
               "expected": finding.mutant.promise, "caught_by": finding.caught_by,
               "without": finding.without, "what": finding.what, "caught": finding.is_caught()})
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::lab::scenario;

    #[test]
    fn each_has_a_run_of_a_scenario_that_there_is() {
        for mutant in ALL {
            let spec = mutant.spec().unwrap();
            let mut scenarios = scenario::ALL.iter();
            assert!(scenarios.any(|known| known.name == spec.scenario), "{spec}");
            assert_eq!(spec.mutants, [mutant.name]);
        }
    }
}
