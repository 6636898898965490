//! Which runs there are, several at a time, and how they went.

use super::below;
use super::dice::Dice;
use super::points::{self, Point};
use super::spec::{Fault, Spec};
use super::worker::{Outcome, Violation};
use agentd_process::failpoint::plan::{Action, Role};
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A worker ends itself before that.
const PATIENCE: Duration = Duration::from_secs(120);
/// Faults in one run of the standard turn.
const IN_ONE_RUN: usize = 3;

#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    pub long: bool,
    pub only: Option<String>,
    /// Runs at the same time; most of their time is waiting.
    pub width: usize,
    /// Where runs take place; those that went wrong stay.
    pub folder: PathBuf,
}

/// All runs, and the points there are.
#[derive(Debug, Default)]
pub struct Results {
    pub outcomes: Vec<Outcome>,
    pub points: Vec<(Point, u32)>,
    pub missed: Vec<Point>,
    pub took: Duration,
    /// What this machine could not do, a line each.
    pub skipped: Vec<String>,
}

impl Results {
    pub fn faults(&self) -> usize {
        self.outcomes
            .iter()
            .map(|outcome| outcome.faults.len())
            .sum()
    }

    /// Those of them that nobody can hear.
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

    fn hit(&self) -> BTreeSet<(String, String)> {
        let standard = self
            .outcomes
            .iter()
            .filter(|outcome| outcome.spec.starts_with("standard,"));
        let faults = standard.flat_map(|outcome| &outcome.faults);
        faults
            .filter_map(|(role, point, _)| Some((role.clone(), point.clone()?)))
            .collect()
    }
}

/// Tells how far it is.
pub type Progress<'a> = &'a (dyn Fn(&Outcome, usize, usize) + Sync);

/// Runs everything that there is to run.
pub fn run(options: &Options, progress: Progress<'_>) -> io::Result<Results> {
    let begin = Instant::now();
    let mut dice = Dice::new(options.seed);
    let mut results = Results::default();
    let wants = |name: &str| options.only.as_ref().is_none_or(|only| only == name);
    if wants("standard") {
        let dry = Spec {
            trace: true,
            ..Spec::new("standard", options.seed)
        };
        let mut outcome = one(options, &dry, 0);
        results.points = points::of(&std::mem::take(&mut outcome.trace));
        results.outcomes.push(outcome);
    }
    let mut specs = Vec::new();
    if wants("standard") {
        specs.extend(standard(options, &results.points, &mut dice));
    }
    specs.extend(
        small(options, &mut dice)
            .into_iter()
            .filter(|spec| wants(&spec.scenario)),
    );
    let (below, skipped) = below::specs(options.seed, if options.long { 60 } else { 1 });
    specs.extend(below.into_iter().filter(|spec| wants(&spec.scenario)));
    results.skipped = skipped;
    dice.shuffle(&mut specs);
    results.outcomes.extend(all(options, specs, progress));
    // A fault may have come to nothing because of one before it: then it has a run of its own.
    for _ in 0..3 {
        let missed = points::missed(&results.points, &results.hit());
        if missed.is_empty() {
            break;
        }
        let first: Vec<(Point, u32)> = missed.into_iter().map(|(point, _)| (point, 1)).collect();
        let specs = points::hit_each("standard", &first, &[Action::Kill], 1, &mut dice);
        results.outcomes.extend(all(options, specs, progress));
    }
    let missed = points::missed(&results.points, &results.hit());
    results.missed = missed.into_iter().map(|(point, _)| point).collect();
    results.took = begin.elapsed();
    Ok(results)
}

/// Each point of the standard turn is hit by SIGKILL, and by one of the signals that can be heard or that
/// stop a process for a while.
fn standard(options: &Options, points: &[(Point, u32)], dice: &mut Dice) -> Vec<Spec> {
    let gentle = [Action::Term, Action::Int, Action::Stop];
    let (kills, others) = if options.long { (16, 2) } else { (2, 0) };
    let mut specs = Vec::new();
    let mut hit = |actions: &[Action], in_one_run| {
        specs.extend(points::hit_each(
            "standard", points, actions, in_one_run, dice,
        ));
    };
    for _ in 0..kills {
        hit(&[Action::Kill], IN_ONE_RUN);
    }
    hit(&gentle, IN_ONE_RUN);
    for _ in 0..others {
        gentle.iter().for_each(|action| hit(&[*action], 2));
    }
    specs
}

/// What the standard turn cannot show.
fn small(options: &Options, dice: &mut Dice) -> Vec<Spec> {
    let rounds = if options.long { 60 } else { 3 };
    let mut specs = Vec::new();
    let mut seed = || dice.below(1 << 20);
    for _ in 0..rounds {
        for (scenario, random) in [
            ("interrupt", 2),
            ("resets", 3),
            ("approvals", 2),
            ("sleep", 3),
            ("reader", 3),
            ("crowd", 10),
            ("accepted", 2),
            ("leftovers", 1),
        ] {
            specs.push(Spec {
                random,
                ..Spec::new(scenario, seed())
            });
        }
        specs.push(crash_loop(seed()));
    }
    specs
}

fn crash_loop(seed: u64) -> Spec {
    Spec::new("crash_loop", seed).with([Fault {
        role: Role::Runtime,
        point: "at-barrier.2".to_owned(),
        nth: None,
        action: Action::Kill,
        each: true,
    }])
}

/// Carries the runs out, as many at a time as there may be.
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

/// One run, in a process of its own.
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
        .tempdir_in(&options.folder)?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("worker")
        .arg(root.path())
        .arg(spec.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let begin = Instant::now();
    let output = child.stdout.take();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        let read = output.map(|mut output| io::Read::read_to_string(&mut output, &mut text));
        read.transpose().map(|_| text)
    });
    while !reading.is_finished() {
        if begin.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other(format!("no end after {PATIENCE:?}")));
        }
        // tidy: polls
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait()?;
    let text = reading
        .join()
        .map_err(|_| io::Error::other("a reader panicked"))??;
    let outcome: Outcome = serde_json::from_str(&text)
        .map_err(|error| io::Error::other(format!("the worker said `{text}`: {error}")))?;
    if !outcome.violations.is_empty() {
        keep(root, &outcome)?;
    }
    Ok(outcome)
}

/// The folder of a run that went wrong stays, with its timeline.
fn keep(root: tempfile::TempDir, outcome: &Outcome) -> io::Result<()> {
    let path = root.keep();
    let mut file = std::fs::File::create(path.join("timeline.txt"))?;
    writeln!(file, "{}\n{}", outcome.spec, outcome.timeline)
}

/// Where runs take place: short, as the paths of sockets must be.
pub fn folder() -> io::Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("agentd-lab-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Removes it, unless a run that went wrong is in there.
pub fn clear(folder: &Path) {
    let _not_empty = std::fs::remove_dir(folder);
}
