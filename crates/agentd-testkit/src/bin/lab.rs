//! The lab as a program: `agentd-lab [--quick|--long] [--seed N] [--only SCENARIO] [--repeat SPEC]
//! [--injected-bugs] [--plan] [--width N] [--json]`. It finds `agentd` beside itself. `cargo xtask lab` builds both
//! and runs it. `agentd-lab check DIR` checks again a run with violations.

use agentd_testkit::lab::dice::Dice;
use agentd_testkit::lab::engine::{self, Results};
use agentd_testkit::lab::options::Options;
use agentd_testkit::lab::plan::{self, Sizes};
use agentd_testkit::lab::spec::Spec;
use agentd_testkit::lab::worker::Outcome;
use agentd_testkit::lab::{self, below, caught, hook, report, scenario, tool, worker};
use agentd_testkit::siege;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "use: agentd-lab [--quick|--long] [--seed N] [--only SCENARIO] [--repeat SPEC] \
                     [--injected-bugs] [--plan] [--width N] [--json], or agentd-lab --siege [--long] [--only NAME] [--json]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.first().map(String::as_str) {
        Some("tool") => tool::run(&args[1..]).map(|()| true),
        Some("hook") => match hook::run() {
            Ok(false) => {
                let _unheard = writeln!(io::stderr(), "not this one");
                return ExitCode::from(2);
            }
            // Another exit code: 2 would block the event.
            Err(_) => Ok(false),
            Ok(true) => Ok(true),
        },
        Some("worker") => work(&args[1..]),
        Some("check") => check(&args[1..]),
        Some("--siege") => lay_siege(&args[1..]),
        Some("siege-worker") => attack(&args[1..]),
        _ => lab(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _unheard = writeln!(io::stderr(), "agentd-lab: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the checker on the directory of a finished run.
fn check(args: &[String]) -> io::Result<bool> {
    let [run] = args else {
        return Err(io::Error::other("use: agentd-lab check DIR"));
    };
    let found = lab::check::check(&Path::new(run).join("run"))?;
    let mut out = io::stdout().lock();
    for violation in &found {
        let agent = violation.agent.as_deref().unwrap_or("-");
        writeln!(out, "{violation} ({agent})")?;
    }
    Ok(found.is_empty())
}

/// `agentd-lab --siege [--long] [--json] [--only NAME]`: runs the attacks and reports the results.
fn lay_siege(args: &[String]) -> io::Result<bool> {
    let mut options = siege::run::Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--long" => options.long = true,
            "--quick" => options.long = false,
            "--json" => options.json = true,
            "--only" => options.only = args.next().cloned(),
            _ => return Err(usage(&format!("`{arg}` is unknown"))),
        }
    }
    let progress = |run: &siege::run::Run| {
        let _unseen = writeln!(io::stderr(), "{}", siege::report::progress(run));
    };
    let laid = siege::run::siege(&options, &progress)?;
    let mut out = io::stdout().lock();
    match options.json {
        true => writeln!(out, "{}", laid.json())?,
        false => write!(out, "{}", laid.text())?,
    }
    Ok(laid.wrong().is_empty())
}

/// One run of the siege, in this process.
fn attack(args: &[String]) -> io::Result<bool> {
    let [order] = args else {
        return Err(io::Error::other("use: agentd-lab siege-worker ORDER"));
    };
    let tried = siege::worker::work(&serde_json::from_str(order)?)?;
    writeln!(io::stdout(), "{}", serde_json::to_string(&tried)?)?;
    Ok(true)
}

/// One run, in this process.
fn work(args: &[String]) -> io::Result<bool> {
    let [root, spec] = args else {
        return Err(io::Error::other("use: agentd-lab worker DIR SPEC"));
    };
    let spec: Spec = spec.parse().map_err(io::Error::other)?;
    below::ground::alone(&spec)?;
    let outcome = worker::run(Path::new(root), &spec).map_err(io::Error::other)?;
    writeln!(io::stdout(), "{}", serde_json::to_string(&outcome)?)?;
    Ok(true)
}

struct Order {
    options: Options,
    repeat: Option<Spec>,
    injected_bugs: bool,
    /// Also the ordinary runs, after the injected bugs.
    runs: bool,
    json: bool,
    /// Only print how large the plan is.
    plan: bool,
}

fn lab(args: &[String]) -> io::Result<bool> {
    let order = order(args)?;
    let options = order.options;
    let progress = |outcome: &Outcome, done: usize, total: usize| {
        let verdict = match outcome.violations.len() {
            0 => "held".to_owned(),
            1 => "1 VIOLATION".to_owned(),
            n => format!("{n} VIOLATIONS"),
        };
        let (spec, took) = (&outcome.spec, outcome.took_ms);
        let _unseen = writeln!(
            io::stderr(),
            "{done:>4}/{total} {took:>6} ms  {verdict:<12} {spec}"
        );
    };
    if order.injected_bugs {
        let all = caught::run(&options, &progress).map_err(io::Error::other)?;
        let is_good = all.iter().all(caught::Caught::is_caught);
        if is_good {
            // These violations were expected.
            std::fs::remove_dir_all(&options.dir)?;
            std::fs::create_dir(&options.dir)?;
        }
        let mut out = io::stdout().lock();
        match order.json {
            true => writeln!(out, "{}", caught::json(&all))?,
            false => write!(out, "{}", caught::text(&all))?,
        }
        if !order.runs || !is_good {
            engine::clear(&options.dir);
            return Ok(is_good);
        }
    }
    if order.plan {
        return sizes(&options, order.json);
    }
    let wanted = order.repeat.as_ref().map(|spec| spec.scenario.as_str());
    if let Some(skipped) = wanted.and_then(below::skipped) {
        engine::clear(&options.dir);
        writeln!(io::stdout(), "{skipped}")?;
        return Ok(true);
    }
    let results = match order.repeat {
        Some(spec) => Results {
            outcomes: engine::all(&options, vec![spec], &progress),
            ..Results::default()
        },
        None => engine::run(&options, &progress),
    };
    engine::clear(&options.dir);
    let mut out = io::stdout().lock();
    match order.json {
        true => writeln!(out, "{}", report::json(&results))?,
        false => write!(out, "{}", report::text(&results))?,
    }
    if !results.is_green() {
        writeln!(
            io::stderr(),
            "the runs with violations are in {}",
            options.dir.display()
        )?;
    }
    Ok(results.is_green())
}

/// Prints the size of the plan.
fn sizes(options: &Options, json: bool) -> io::Result<bool> {
    let (traced, _) = engine::trace(options);
    let plan = plan::of(options, &traced, &mut Dice::new(options.seed));
    let sizes = Sizes::of(&plan, &traced, options.long);
    engine::clear(&options.dir);
    let mut out = io::stdout().lock();
    match json {
        true => writeln!(out, "{}", sizes.json())?,
        false => {
            write!(out, "{}", sizes.text())?;
            for line in &plan.skipped {
                writeln!(out, "{line}")?;
            }
        }
    }
    Ok(true)
}

fn order(args: &[String]) -> io::Result<Order> {
    let mut order = Order {
        options: Options {
            seed: 1,
            long: false,
            only: None,
            width: 6,
            dir: engine::dir()?,
        },
        repeat: None,
        injected_bugs: false,
        runs: false,
        json: false,
        plan: false,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || {
            args.next()
                .ok_or_else(|| usage(&format!("`{arg}` has no value")))
        };
        let number = |text: &String| {
            text.parse::<u64>()
                .map_err(|error| usage(&error.to_string()))
        };
        match arg.as_str() {
            "--quick" => order.runs = true,
            "--long" => (order.options.long, order.runs) = (true, true),
            "--json" => order.json = true,
            "--injected-bugs" => order.injected_bugs = true,
            "--plan" => order.plan = true,
            "--seed" => order.options.seed = number(value()?)?,
            "--width" => {
                order.options.width = usize::try_from(number(value()?)?).unwrap_or(1);
            }
            "--only" => {
                let name = value()?;
                let names = scenario::names();
                if !names.contains(&name.as_str()) {
                    return Err(usage(&format!("the scenarios are {}", names.join(", "))));
                }
                order.options.only = Some(name.clone());
            }
            "--repeat" => order.repeat = Some(value()?.parse().map_err(|why: String| usage(&why))?),
            _ => return Err(usage(&format!("`{arg}` is unknown"))),
        }
    }
    Ok(order)
}

fn usage(why: &str) -> io::Error {
    io::Error::other(format!("{why}; {USAGE}"))
}
