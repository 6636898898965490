//! The results of a siege.

use super::THEMES;
use super::layers;
use super::run::{Run, Siege, Tried};
use serde_json::{Value, json};
use std::fmt::Write as _;

impl Siege {
    /// The violations, one line each: an attack that succeeded against the product, one that cannot succeed at all, one
    /// that could not be tried.
    pub fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for run in &self.runs {
            for tried in &run.tried {
                let name = format!("{} ({}, {})", tried.attack, run.ground.name(), run.mode);
                match (&tried.error, run.mode.as_str(), &tried.evidence) {
                    (Some(error), "defended" | "control", _) => {
                        wrong.push(format!("{name} could not be tried: {error}"));
                    }
                    (None, "defended", Some(evidence)) if known(&tried.attack).is_none() => {
                        wrong.push(format!("{name} SUCCEEDED: {evidence}"));
                    }
                    (None, "control", None) => {
                        wrong.push(format!("{name} fails although no layer is active"));
                    }
                    _ => {}
                }
            }
        }
        wrong
    }

    /// Attacks that are known to succeed, with their reason.
    fn known(&self) -> Vec<String> {
        let defended = self.runs.iter().filter(|run| run.mode == "defended");
        let found = defended.flat_map(|run| run.tried.iter().map(move |tried| (run, tried)));
        let found = found.filter(|(_, tried)| tried.evidence.is_some());
        let lines = found.filter_map(|(run, tried)| {
            let why = known(&tried.attack)?;
            Some(format!(
                "known: {} ({}): {why}",
                tried.attack,
                run.ground.name()
            ))
        });
        lines.collect()
    }

    /// The layers that stop an attack alone, if each was tried alone.
    fn stopped_by(&self, attack: &str) -> Vec<&str> {
        let alone = self.runs.iter().filter(|run| {
            let mode = run.mode.as_str();
            mode != "defended" && mode != "control"
        });
        let stops = |run: &&Run| {
            let mut tried = run.tried.iter().filter(|tried| tried.attack == attack);
            tried.any(|tried| tried.evidence.is_none() && tried.error.is_none())
        };
        let mut names: Vec<&str> = alone.filter(stops).map(|run| run.mode.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    pub fn text(&self) -> String {
        let mut out = String::new();
        for line in &self.skipped {
            let _written = writeln!(out, "{line}");
        }
        for run in &self.runs {
            let seconds = run.took_ms as f64 / 1000.0;
            let _written = writeln!(out, "{}, {seconds:.1} s", line(run));
        }
        if self.has_matrix() {
            let _written = writeln!(out, "\nlayers that stop an attack alone:");
            for attack in THEMES.iter().flat_map(|theme| theme.attacks) {
                let layers = self.stopped_by(attack.name);
                let shown = match layers.is_empty() {
                    true => "none alone".to_owned(),
                    false => layers.join(", "),
                };
                let _written = writeln!(out, "  {:<24} {shown}", attack.name);
            }
        }
        for line in self.known().iter().chain(&self.wrong()) {
            let _written = writeln!(out, "{line}");
        }
        let attacks = THEMES.iter().flat_map(|theme| theme.attacks).count();
        let verdict = match self.wrong().is_empty() {
            true => "held",
            false => "FAILED",
        };
        let (layers, seconds) = (layers::ALL.len(), self.took_ms as f64 / 1000.0);
        let _written = writeln!(
            out,
            "the siege {verdict}: {attacks} attacks, {layers} layers, {} runs, {seconds:.0} s",
            self.runs.len()
        );
        out
    }

    fn has_matrix(&self) -> bool {
        self.runs
            .iter()
            .any(|run| run.mode != "defended" && run.mode != "control")
    }

    pub fn json(&self) -> Value {
        let attacks = THEMES.iter().flat_map(|theme| {
            let attacks = theme.attacks.iter();
            attacks.map(|attack| {
                let stopped_by = self.stopped_by(attack.name);
                json!({"theme": theme.name, "name": attack.name, "about": attack.about,
                       "known": attack.known, "stopped_by": stopped_by})
            })
        });
        let attacks: Vec<Value> = attacks.collect();
        let layers: Vec<Value> = layers::ALL
            .iter()
            .map(|layer| json!({"bug": layer.bug, "about": layer.about}))
            .collect();
        json!({"held": self.wrong().is_empty(), "wrong": self.wrong(), "known": self.known(),
               "skipped": self.skipped, "attacks": attacks, "layers": layers, "runs": self.runs,
               "took_ms": self.took_ms})
    }
}

/// A run in one line, with its unexpected results.
pub fn progress(run: &Run) -> String {
    let unexpected = run.tried.iter().filter(|tried| match run.mode.as_str() {
        "defended" => tried.evidence.is_some() || tried.error.is_some(),
        "control" => tried.evidence.is_none(),
        _ => false,
    });
    let mut out = line(run);
    for tried in unexpected {
        let what = tried.evidence.as_ref().or(tried.error.as_ref());
        let what = what.map_or("no evidence", String::as_str);
        let _written = write!(out, "\n    {}: {what}", tried.attack);
    }
    out
}

/// A run in one line.
pub fn line(run: &Run) -> String {
    let succeeded = |tried: &&Tried| tried.evidence.is_some();
    let (all, won) = (run.tried.len(), run.tried.iter().filter(succeeded).count());
    format!(
        "{:<30} {:<20} {won:>3} of {all:>3} attacks succeed",
        run.ground.name(),
        run.mode
    )
}

fn known(attack: &str) -> Option<&'static str> {
    let mut attacks = THEMES.iter().flat_map(|theme| theme.attacks);
    attacks.find(|it| it.name == attack)?.known
}
