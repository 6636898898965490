//! The printed report: a table of scenarios and faults, the violations, and how to repeat a run.

use super::engine::Results;
use super::spec::Spec;
use super::worker::Outcome;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Lines of a timeline that are printed; the file has all lines.
const LINES: usize = 120;

#[derive(Debug, Default)]
struct Row {
    runs: usize,
    faults: usize,
    wrong: usize,
}

/// The rows of the table, by scenario and fault. A run with several kinds of faults is in several rows.
fn rows(results: &Results) -> BTreeMap<(String, String), Row> {
    let mut rows: BTreeMap<(String, String), Row> = BTreeMap::new();
    for outcome in &results.outcomes {
        let scenario = outcome
            .spec
            .split(',')
            .next()
            .unwrap_or_default()
            .to_owned();
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for (role, _, what) in &outcome.faults {
            *kinds.entry(format!("{what} {role}")).or_default() += 1;
        }
        if kinds.is_empty() {
            kinds.insert("none".to_owned(), 0);
        }
        for (kind, faults) in kinds {
            let row = rows.entry((scenario.clone(), kind)).or_default();
            row.runs += 1;
            row.faults += faults;
            row.wrong += usize::from(!outcome.violations.is_empty());
        }
    }
    rows
}

pub fn text(results: &Results) -> String {
    let mut out = String::new();
    let _fits = writeln!(
        out,
        "{:<12} {:<14} {:>6} {:>7}  verdict",
        "scenario", "fault", "runs", "faults"
    );
    for ((scenario, fault), row) in rows(results) {
        let verdict = match row.wrong {
            0 => "held".to_owned(),
            wrong => format!("{wrong} VIOLATED"),
        };
        let _fits = writeln!(
            out,
            "{scenario:<12} {fault:<14} {:>6} {:>7}  {verdict}",
            row.runs, row.faults
        );
    }
    for outcome in results
        .outcomes
        .iter()
        .filter(|outcome| !outcome.violations.is_empty())
    {
        out.push_str(&failure(outcome));
    }
    for one in &results.failpoints {
        let missed = results.missed.iter().filter(|(of, _)| *of == one.scenario);
        let missed: Vec<_> = missed.collect();
        let (all, hit) = (one.failpoints.len(), one.failpoints.len() - missed.len());
        let _fits = writeln!(out, "failpoints of {:<12} {hit} of {all} hit", one.scenario);
        for (_, failpoint) in missed {
            let _fits = writeln!(out, "  MISSED {}@{}", failpoint.role.name(), failpoint.name);
        }
    }
    for line in &results.skipped {
        let _fits = writeln!(out, "{line}");
    }
    let wrong = results
        .outcomes
        .iter()
        .filter(|outcome| !outcome.violations.is_empty())
        .count();
    let _fits = writeln!(
        out,
        "{} runs, {} faults, {} of them SIGKILL; runs with violations: {wrong}; {:.0} s",
        results.outcomes.len(),
        results.faults(),
        results.kills(),
        results.took.as_secs_f64()
    );
    out
}

/// A run with violations: what was violated, the timeline, and how to repeat it.
pub fn failure(outcome: &Outcome) -> String {
    let mut out = format!("\nVIOLATION: {}\n", outcome.spec);
    for violation in &outcome.violations {
        let agent = violation.agent.as_deref().unwrap_or("-");
        let _fits = writeln!(
            out,
            "  {} ({agent}): {}",
            violation.promise,
            short(&violation.what)
        );
    }
    for line in outcome.timeline.lines().take(LINES) {
        let _fits = writeln!(out, "  {line}");
    }
    let more = outcome.timeline.lines().count().saturating_sub(LINES);
    if more > 0 {
        let _fits = writeln!(out, "  … and {more} more lines");
    }
    if let Ok(spec) = outcome.spec.parse::<Spec>() {
        let _fits = writeln!(out, "  repeat: {}\n", spec.repeat());
    }
    out
}

fn short(text: &str) -> String {
    const MOST: usize = 600;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

pub fn json(results: &Results) -> Value {
    let table: Vec<Value> = rows(results)
        .into_iter()
        .map(|((scenario, fault), row)| {
            json!({
                "scenario": scenario, "fault": fault, "runs": row.runs, "faults": row.faults,
                "wrong": row.wrong,
            })
        })
        .collect();
    let missed: Vec<String> = results
        .missed
        .iter()
        .map(|(of, failpoint)| format!("{of}: {}@{}", failpoint.role.name(), failpoint.name))
        .collect();
    let wrong: Vec<&Outcome> = results
        .outcomes
        .iter()
        .filter(|outcome| !outcome.violations.is_empty())
        .collect();
    json!({
        "green": results.is_green(), "runs": results.outcomes.len(), "faults": results.faults(),
        "kills": results.kills(),
        "failpoints": results.failpoints.iter().map(|one| one.failpoints.len()).sum::<usize>(), "missed": missed, "seconds": results.took.as_secs(),
        "table": table, "wrong": wrong,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::worker::Violation;

    fn results() -> Results {
        let fault = |what: &str| ("runtime".to_owned(), None, what.to_owned());
        let good = Outcome {
            spec: "standard,seed=1".to_owned(),
            faults: vec![fault("KILL"), fault("KILL"), fault("STOP")],
            ..Outcome::default()
        };
        let bad = Outcome {
            spec: "crowd,seed=2,random=1".to_owned(),
            faults: vec![fault("KILL")],
            violations: vec![Violation {
                promise: "P4".to_owned(),
                agent: Some("ada".to_owned()),
                what: "a tool ran twice".to_owned(),
            }],
            timeline: "   0.001  event    ada 1 agent_created\n".repeat(200),
            ..Outcome::default()
        };
        Results {
            outcomes: vec![good, bad],
            ..Results::default()
        }
    }

    #[test]
    fn the_table_has_a_row_for_each_scenario_and_fault() {
        let text = text(&results());
        let row = |line: &str| {
            text.lines()
                .any(|known| known.split_whitespace().collect::<Vec<_>>().join(" ") == line)
        };
        assert!(row("standard KILL runtime 1 2 held"), "{text}");
        assert!(row("standard STOP runtime 1 1 held"), "{text}");
        assert!(row("crowd KILL runtime 1 1 1 VIOLATED"), "{text}");
        assert!(
            text.contains("2 runs, 4 faults, 3 of them SIGKILL; runs with violations: 1"),
            "{text}"
        );
    }

    #[test]
    fn a_run_that_went_wrong_says_what_when_and_how_to_do_it_again() {
        let results = results();
        assert!(!results.is_green());
        let text = text(&results);
        assert!(text.contains("P4 (ada): a tool ran twice"), "{text}");
        assert!(
            text.contains("0.001  event    ada 1 agent_created"),
            "{text}"
        );
        assert!(text.contains("and 80 more lines"), "{text}");
        assert!(
            text.contains("cargo xtask lab --repeat 'crowd,seed=2,random=1'"),
            "{text}"
        );
        let json = json(&results);
        assert_eq!((&json["green"], &json["kills"]), (&false.into(), &3.into()));
        assert_eq!(json["wrong"][0]["violations"][0]["promise"], "P4");
    }
}
