//! Runs the plan, several runs at a time, and collects the results.

use super::dice::Dice;
use super::failpoints::{self, Failpoint};
use super::options::Options;
use super::plan::{self, Traced};
use super::scenario;
use super::spec::Spec;
use super::timeline;
use super::worker::{Outcome, Violation};
use crate::harness::Poll;
use agentd_failpoint::plan::Action;
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A worker ends itself before that.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Poll = Poll::new(Duration::from_millis(5), PATIENCE);

/// All runs, and the failpoints.
#[derive(Debug, Default)]
pub struct Results {
    pub outcomes: Vec<Outcome>,
    /// The failpoints of each scenario that should be hit.
    pub failpoints: Vec<Traced>,
    pub missed: Vec<(&'static str, Failpoint)>,
    pub took: Duration,
    /// What this machine could not run, one line each.
    pub skipped: Vec<String>,
}

impl Results {
    pub fn faults(&self) -> usize {
        self.outcomes
            .iter()
            .map(|outcome| outcome.faults.len())
            .sum()
    }

    /// The number of SIGKILLs among them.
    pub fn kills(&self) -> usize {
        let faults = self.outcomes.iter().flat_map(|outcome| &outcome.faults);
        faults.filter(|(_, _, what)| what == "KILL").count()
    }

    pub fn is_green(&self) -> bool {
        self.outcomes
            .iter()
            .all(|outcome| outcome.violations.is_empty())
            && self.missed.is_empty()
    }

    fn hit(&self, scenario: &str) -> BTreeSet<(String, String)> {
        let own = self.outcomes.iter().filter(|it| it.is_of(scenario));
        let faults = own.flat_map(|outcome| &outcome.faults);
        faults
            .filter_map(|(role, failpoint, _)| Some((role.clone(), failpoint.clone()?)))
            .collect()
    }
}

/// Reports progress.
pub type Progress<'a> = &'a (dyn Fn(&Outcome, usize, usize) + Sync);

/// The failpoints of the scenarios whose failpoints are all hit, found by runs without faults; and those runs.
pub fn trace(options: &Options) -> (Vec<Traced>, Vec<Outcome>) {
    let is_wanted = |name: &str| options.only.as_ref().is_none_or(|only| only == name);
    let traced = scenario::ALL.iter().filter(|it| it.is_traced);
    let wanted: Vec<&'static str> = traced
        .map(|it| it.name)
        .filter(|it| is_wanted(it))
        .collect();
    let mut outcomes = Vec::new();
    // One after the other: which failpoints are passed may depend on the load.
    for (number, scenario) in wanted.iter().enumerate() {
        let dry = Spec {
            trace: true,
            ..Spec::new(*scenario, options.seed)
        };
        outcomes.push(one(options, &dry, number));
    }
    let traced = wanted
        .iter()
        .zip(&mut outcomes)
        .map(|(scenario, outcome)| Traced {
            scenario,
            failpoints: failpoints::of(&std::mem::take(&mut outcome.trace)),
        });
    (traced.collect(), outcomes)
}

/// Runs the whole plan.
pub fn run(options: &Options, progress: Progress<'_>) -> Results {
    let begin = Instant::now();
    let mut dice = Dice::new(options.seed);
    let (traced, outcomes) = trace(options);
    let plan = plan::of(options, &traced, &mut dice);
    // In a short run, a scenario may leave out failpoints that other scenarios also pass.
    let planned = plan.failpoints();
    let mut results = Results {
        outcomes,
        skipped: plan.skipped,
        ..Results::default()
    };
    results.outcomes.extend(all(options, plan.specs, progress));
    for one in traced {
        let due = one.failpoints.iter().filter(|(failpoint, _)| {
            planned.contains(&(one.scenario.to_owned(), failpoint.clone()))
        });
        results.failpoints.push(Traced {
            scenario: one.scenario,
            failpoints: due.cloned().collect(),
        });
    }
    // An earlier fault in the same run may have prevented a later one. It is tried again when a process passes its
    // failpoint for the first time, with others at first and then in a run of its own.
    for in_one_run in [plan::IN_ONE_RUN, 1, 1] {
        let mut specs = Vec::new();
        for one in &results.failpoints {
            let missed = failpoints::missed(&one.failpoints, &results.hit(one.scenario));
            let first: Vec<_> = missed
                .into_iter()
                .map(|(failpoint, _)| (failpoint, 1))
                .collect();
            let kill = [Action::Kill];
            let again = failpoints::hit_each(one.scenario, &first, &kill, in_one_run, &mut dice);
            specs.extend(again);
        }
        if specs.is_empty() {
            break;
        }
        results.outcomes.extend(all(options, specs, progress));
    }
    for one in &results.failpoints {
        let missed = failpoints::missed(&one.failpoints, &results.hit(one.scenario));
        let missed = missed
            .into_iter()
            .map(|(failpoint, _)| (one.scenario, failpoint));
        results.missed.extend(missed);
    }
    results.took = begin.elapsed();
    results
}

/// Executes the runs, several at a time.
pub fn all(options: &Options, specs: Vec<Spec>, progress: Progress<'_>) -> Vec<Outcome> {
    let total = specs.len();
    let queue: Mutex<VecDeque<(usize, Spec)>> = Mutex::new(specs.into_iter().enumerate().collect());
    let done: Mutex<Vec<Outcome>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..options.width.max(1) {
            scope.spawn(|| {
                loop {
                    let next = lock(&queue).pop_front();
                    let Some((number, spec)) = next else { return };
                    let outcome = one(options, &spec, number + 1);
                    let mut done = lock(&done);
                    progress(&outcome, done.len() + 1, total);
                    done.push(outcome);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One run, in its own process.
pub fn one(options: &Options, spec: &Spec, number: usize) -> Outcome {
    match worker(options, spec, number) {
        Ok(outcome) => outcome,
        Err(error) => Outcome {
            spec: spec.to_string(),
            violations: vec![Violation {
                promise: "lab".to_owned(),
                agent: None,
                what: error.to_string(),
            }],
            ..Outcome::default()
        },
    }
}

fn worker(options: &Options, spec: &Spec, number: usize) -> io::Result<Outcome> {
    let root = tempfile::Builder::new()
        .prefix(&format!("{number}-"))
        .tempdir_in(&options.dir)?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("worker")
        .arg(root.path())
        .arg(spec.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        let read = output.map(|mut output| io::Read::read_to_string(&mut output, &mut text));
        read.transpose().map(|_| text)
    });
    let is_read = || reading.is_finished().then_some(());
    if POLL.until("the worker's end", is_read).is_err() {
        child.kill()?;
        child.wait()?;
        let outcome = endless(root.path(), spec);
        keep(root, &outcome)?;
        return Ok(outcome);
    }
    child.wait()?;
    let text = reading
        .join()
        .map_err(|_| io::Error::other("a reader panicked"))??;
    let outcome: Outcome = serde_json::from_str(&text)
        .map_err(|error| io::Error::other(format!("the worker printed `{text}`: {error}")))?;
    if !outcome.violations.is_empty() {
        keep(root, &outcome)?;
    }
    Ok(outcome)
}

/// The outcome of a run that did not end itself, from what is visible.
fn endless(root: &Path, spec: &Spec) -> Outcome {
    let run = root.join("run");
    let about = std::fs::read(root.join("run/run.json")).unwrap_or_default();
    let about: serde_json::Value = serde_json::from_slice(&about).unwrap_or_default();
    let began = about["began_unix_us"].as_u64().unwrap_or_default();
    Outcome {
        spec: spec.to_string(),
        violations: vec![Violation {
            promise: "stuck".to_owned(),
            agent: None,
            what: format!("the run did not end within {PATIENCE:?}"),
        }],
        timeline: timeline::of(&run, began),
        ..Outcome::default()
    }
}

/// Keeps the directory of a run with violations, with its timeline.
fn keep(root: tempfile::TempDir, outcome: &Outcome) -> io::Result<()> {
    let path = root.keep();
    let mut file = std::fs::File::create(path.join("timeline.txt"))?;
    writeln!(file, "{}\n{}", outcome.spec, outcome.timeline)
}

/// The directory for the runs: a short path, because socket paths are limited.
pub fn dir() -> io::Result<PathBuf> {
    let dir = std::env::temp_dir().join(format!("agentd-lab-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// Removes it, unless it contains a run with violations.
pub fn clear(dir: &Path) {
    let _not_empty = std::fs::remove_dir(dir);
}
