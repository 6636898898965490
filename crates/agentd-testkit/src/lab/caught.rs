//! Whether the lab can fail: each injected bug must violate the promise that it is meant to violate, and the same
//! run without the bug must violate none.

use super::below;
use super::engine::{self, Progress};
use super::injected_bugs::{self, InjectedBug};
use super::options::Options;
use super::spec::Spec;
use super::worker::Outcome;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;

/// The result of one injected bug.
#[derive(Debug)]
pub struct Caught {
    pub injected_bug: InjectedBug,
    /// The promises that were violated with the injected bug.
    pub by: BTreeSet<String>,
    /// The same run without it, which should have no violations.
    pub without: Outcome,
    pub spec: Spec,
}

impl Caught {
    pub fn is_caught(&self) -> bool {
        self.by.contains(self.injected_bug.promise) && self.without.violations.is_empty()
    }
}

/// Runs each injected bug that this machine supports, with the bug and without.
pub fn run(options: &Options, progress: Progress<'_>) -> Result<Vec<Caught>, String> {
    let mut specs = Vec::new();
    for injected_bug in injected_bugs::ALL {
        let spec = injected_bug.spec()?;
        if let Some(skipped) = below::skipped(&spec.scenario) {
            let _told = writeln!(std::io::stderr(), "{}: {skipped}", injected_bug.name);
            continue;
        }
        let without = Spec {
            injected_bugs: Vec::new(),
            ..spec.clone()
        };
        specs.push((injected_bug, spec, without));
    }
    let both = specs
        .iter()
        .flat_map(|(_, spec, without)| [spec.clone(), without.clone()]);
    let outcomes = engine::all(options, both.collect(), progress);
    let of = |spec: &Spec| {
        let found = outcomes
            .iter()
            .find(|outcome| outcome.spec == spec.to_string());
        found.cloned().unwrap_or_default()
    };
    let caught = specs.into_iter().map(|(injected_bug, spec, without)| {
        let by = of(&spec).violations.into_iter();
        Caught {
            injected_bug,
            by: by.map(|violation| violation.promise).collect(),
            without: of(&without),
            spec,
        }
    });
    Ok(caught.collect())
}

pub fn text(all: &[Caught]) -> String {
    let mut out = String::new();
    let _fits = writeln!(
        out,
        "{:<20} {:<42} {:<10} caught by",
        "injected bug", "what it does", "verdict"
    );
    for one in all {
        let verdict = if one.is_caught() { "caught" } else { "MISSED" };
        let by: Vec<&str> = one.by.iter().map(String::as_str).collect();
        let (name, about) = (one.injected_bug.name, one.injected_bug.about);
        let _fits = writeln!(out, "{name:<20} {about:<42} {verdict:<10} {}", by.join(" "));
        if !one.is_caught() {
            let _fits = writeln!(
                out,
                "  expected {}; repeat: {}",
                one.injected_bug.promise,
                one.spec.repeat()
            );
        }
        for violation in &one.without.violations {
            let _fits = writeln!(
                out,
                "  without the bug: {} {}",
                violation.promise, violation.what
            );
        }
    }
    let caught = all.iter().filter(|one| one.is_caught()).count();
    let _fits = writeln!(out, "{caught} of {} injected bugs caught", all.len());
    out
}

pub fn json(all: &[Caught]) -> Value {
    let each = all.iter().map(|one| {
        json!({"injected_bug": one.injected_bug.name, "about": one.injected_bug.about, "expected": one.injected_bug.promise,
               "by": one.by, "caught": one.is_caught(), "repeat": one.spec.repeat()})
    });
    each.collect()
}
