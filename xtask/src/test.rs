//! `cargo xtask test`: the suites, each within its budget, and a table of results.

use std::env;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::builder::PossibleValuesParser;

use crate::child::{self, Outcome, Verdict};
use crate::machine_time::{self, Took};
use crate::suite::{self, Setting, Suite};
use crate::{need, npm, tree};

#[derive(clap::Args)]
pub struct Args {
    /// Also run the slow parts of tests
    #[arg(long)]
    long: bool,
    /// Run this suite only; may be given more than once
    #[arg(long, value_name = "SUITE", value_parser = PossibleValuesParser::new(suite::NAMES))]
    only: Vec<String>,
    /// Multiply every budget [default: in CI how much slower this machine is than the one they are written for, and 4 elsewhere: a slow machine gives a slow run, not a failed one]
    #[arg(long, value_name = "FACTOR")]
    slack: Option<f64>,
}

/// Runs the suites until one fails. `false`: one failed.
pub fn run(args: &Args) -> Result<bool> {
    let slack = args.slack.unwrap_or_else(usual_slack);
    ensure!(
        slack.is_finite() && slack > 0.0 && slack <= 1000.0,
        "--slack must be above 0 and at most 1000"
    );
    let root = tree::root()?;
    need::install_missing()?;
    npm::install_missing(&root)?;

    let setting = Setting {
        long: args.long,
        nextest: tree::has_cargo_command(&root, "nextest"),
    };
    let mut suites = suite::all(&setting);
    if !args.only.is_empty() {
        suites.retain(|suite| args.only.iter().any(|name| name == suite.name));
    }

    run_all(suites, &root, slack)
}

/// A budget is kept in CI. It is written for one machine, and counts as much work on a slower one.
pub fn usual_slack() -> f64 {
    if env::var_os("CI").is_none() {
        return 4.0;
    }
    let slowness = machine_time::slowness();
    println!(
        "This machine is {slowness:.2} times slower than the one that budgets are written for."
    );
    slowness
}

/// Runs the suites until one fails, and prints a table. `false`: one failed.
pub fn run_all(suites: Vec<Suite>, root: &Path, slack: f64) -> Result<bool> {
    let mut rows: Vec<Row> = Vec::new();
    let mut failed = false;
    for suite in suites {
        let budget = Duration::from_secs_f64(f64::from(suite.budget_minutes) * 60.0 * slack);
        let outcome = if failed {
            None
        } else {
            let outcome = run_suite(&suite, root, budget)?;
            failed = outcome.verdict != Verdict::Passed;
            Some(outcome)
        };
        rows.push(Row {
            suite,
            budget,
            outcome,
        });
    }

    println!("\n{}", table(&rows));
    println!("{}", last_lines(&rows));
    Ok(!failed)
}

struct Row {
    suite: Suite,
    budget: Duration,
    /// None: an earlier suite failed, and this one was not run.
    outcome: Option<Outcome>,
}

fn run_suite(suite: &Suite, root: &Path, budget: Duration) -> Result<Outcome> {
    println!(
        "\n== {}, at most {} min: {}",
        suite.name,
        minutes(budget),
        suite.shown()
    );
    let mut command = suite.command(root);
    if env::var_os("CI").is_some() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    // The output goes through a pipe; keep the colours that it would have in a terminal.
    if suite.runner.is_some() && io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let outcome = child::run_within(command, budget, suite.runner)?;
    match &outcome.verdict {
        Verdict::Passed => {}
        Verdict::Failed(how) => println!("== {} failed: {how}", suite.name),
        Verdict::OverBudget => println!(
            "== {} exceeded its budget of {} min and was stopped",
            suite.name,
            minutes(budget)
        ),
    }
    Ok(outcome)
}

fn table(rows: &[Row]) -> String {
    let mut lines = vec![format!(
        "{:<10} {:>8} {:>8}  verdict",
        "suite", "minutes", "budget"
    )];
    for row in rows {
        let (took, verdict) = match &row.outcome {
            None => ("-".to_string(), "not run".to_string()),
            Some(outcome) => {
                let verdict = match &outcome.verdict {
                    Verdict::Passed => "passed".to_string(),
                    Verdict::Failed(how) => format!("FAILED ({how})"),
                    Verdict::OverBudget => "OVER BUDGET".to_string(),
                };
                (minutes(outcome.took.counted()), verdict)
            }
        };
        lines.push(format!(
            "{:<10} {took:>8} {:>8}  {verdict}",
            row.suite.name,
            minutes(row.budget)
        ));
    }
    let all = rows.iter().filter_map(|row| row.outcome.as_ref());
    let all: Vec<Took> = all.map(|outcome| outcome.took).collect();
    let stolen: Duration = all.iter().map(|took| took.stolen).sum();
    let wall: Duration = all.iter().map(|took| took.wall).sum();
    let (counted, stolen) = (minutes(wall - stolen), minutes(stolen));
    lines.push(format!("{:<10} {counted:>8}", "all"));
    lines.push(format!(
        "The hypervisor took {stolen} more minutes from this machine; they count against no budget."
    ));
    lines.join("\n")
}

fn minutes(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() / 60.0)
}

/// The closing lines of the test runners, with the one of `tests` last.
fn last_lines(rows: &[Row]) -> String {
    let mut runners: Vec<&Row> = rows
        .iter()
        .filter(|row| row.suite.runner.is_some())
        .collect();
    runners.sort_by_key(|row| row.suite.name == "tests");
    if runners.is_empty() {
        return "no suite with tests was selected".to_string();
    }
    let lines: Vec<String> = runners
        .iter()
        .map(|row| {
            let name = row.suite.name;
            match &row.outcome {
                None => format!("{name}: not run"),
                Some(outcome) => match &outcome.closing {
                    None => format!("{name}: ended without the test runner's closing line"),
                    Some(line) if name == "tests" => line.clone(),
                    Some(line) => format!("{name}: {line}"),
                },
            }
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(verdict: Verdict, closing: Option<&str>) -> Vec<Row> {
        let setting = Setting {
            long: false,
            nextest: true,
        };
        let mut outcome = Some(Outcome {
            verdict,
            took: Took {
                wall: Duration::from_secs(100),
                stolen: Duration::from_secs(10),
            },
            closing: closing.map(str::to_string),
        });
        suite::all(&setting)
            .into_iter()
            .map(|suite| Row {
                budget: Duration::from_secs(u64::from(suite.budget_minutes) * 60),
                outcome: if suite.name == "tests" {
                    outcome.take()
                } else {
                    None
                },
                suite,
            })
            .collect()
    }

    #[test]
    fn the_last_line_is_that_of_the_tests() {
        let said = "Summary [ 1s] 1 test run: 1 passed";
        let lines = last_lines(&rows(Verdict::Passed, Some(said)));
        assert_eq!(lines.lines().last(), Some(said));
        let silent = last_lines(&rows(Verdict::OverBudget, None));
        assert!(silent.ends_with("tests: ended without the test runner's closing line"));
    }

    #[test]
    fn the_table_says_how_each_suite_went() {
        let table = table(&rows(Verdict::OverBudget, None));
        let tests = table.lines().find(|line| line.starts_with("tests"));
        assert_eq!(
            tests,
            Some("tests           1.5     26.0  OVER BUDGET"),
            "{table}"
        );
        assert_eq!(table.matches("not run").count(), 7);
    }
}
