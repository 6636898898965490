//! `agentd-bench sandbox`: the time that a sandbox adds to the start and the end of a program, compared with the same
//! program without one. Network namespaces have a line of their own: creating and removing them takes the kernel long.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use agentd_sandbox::{
    Caches, Network, Policy, Program, Started, start, start_without_namespaces, support,
};
use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::bench_dir::BenchDir;
use crate::measure::{Samples, median_micros};
use crate::report::{self, Aim, Line, Unit};

#[derive(clap::Args)]
pub struct Args {
    /// More rounds
    #[arg(long)]
    long: bool,
    /// Print JSON, with every round in it
    #[arg(long)]
    json: bool,
    /// Keep the directories here, on the disk to be measured [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    bench_dir: Option<PathBuf>,
}

/// The caches that every agent has.
const CACHES: &[&str] = &[".cargo/registry", ".cargo/git", ".npm", ".cache"];
const TRUE: &str = "/bin/true";
const TIMES: usize = 40;
/// The target: at most this much more than a program without a sandbox.
const MOST: Aim = Aim::ExcessAtMost(3_000.0);

/// A way to run the program.
struct Way {
    what: &'static str,
    aim: Option<Aim>,
    run: Box<dyn Fn() -> Result<()>>,
}

pub fn run(args: &Args) -> Result<()> {
    if let Err(missing) = support().namespaces {
        bail!("there is no sandbox to measure: {missing}");
    }
    let bench_dir = BenchDir::new(args.bench_dir.as_deref())?;
    bench_dir.announce();
    let begin = Instant::now();
    let dir = bench_dir.fresh()?;
    let dir = dir.path();
    let ways = ways(policy(dir)?);
    let mut floor = Samples::default();
    let mut ours: Vec<Samples> = ways.iter().map(|_| Samples::default()).collect();
    for _ in 0..if args.long { 20 } else { 7 } {
        // Alternately, so that other load on the machine affects all of them.
        floor.push(median_micros(TIMES, plain)?);
        for (way, samples) in ways.iter().zip(&mut ours) {
            samples.push(median_micros(TIMES, || (way.run)())?);
        }
    }
    open_up(dir);
    let lines = ways.into_iter().zip(ours).map(|(way, ours)| Line {
        what: format!("`true`, {}", way.what),
        floor_is: "`true` without a sandbox".to_owned(),
        unit: Unit::Microseconds,
        ours,
        floor: floor.clone(),
        aim: way.aim,
    });
    let lines: Vec<Line> = lines.collect();
    report::Run {
        bench: "sandbox",
        long: args.long,
        file_system: &bench_dir.file_system,
        took: begin.elapsed(),
    }
    .print(args.json, &lines);
    Ok(())
}

fn ways(policy: Policy) -> Vec<Way> {
    let way = |what, aim, policy: Policy| Way {
        what,
        aim,
        run: Box::new(move || wait(&start(&policy, program()?, ok, ok)?)),
    };
    let listed = policy.clone();
    vec![
        way("in the default sandbox", Some(MOST), policy.clone()),
        way(
            "the same without caches",
            Some(MOST),
            Policy {
                caches: Vec::new(),
                ..policy.clone()
            },
        ),
        way(
            "with the network off",
            None,
            Policy {
                network: Network::Off,
                ..policy
            },
        ),
        Way {
            what: "read-only, without namespaces",
            aim: None,
            run: Box::new(move || wait(&start_without_namespaces(&listed, program()?, ok)?)),
        },
    ]
}

fn ok() -> io::Result<()> {
    Ok(())
}

/// What an agent has: a work tree with a repository, a home of its own, caches and a temporary directory.
fn policy(dir: &Path) -> Result<Policy> {
    for name in [
        "home/.cargo/bin",
        "state/work",
        "own",
        "tmp",
        "tree/.git/hooks",
    ] {
        let made = fs::create_dir_all(dir.join(name));
        made.with_context(|| format!("cannot create {name}"))?;
    }
    for name in CACHES {
        for dir in ["home", "state/upper"].map(|side| dir.join(side)) {
            let made = fs::create_dir_all(dir.join(name));
            made.with_context(|| format!("cannot create {name}"))?;
        }
    }
    for name in ["home/.gitconfig", "tree/.git/config"] {
        fs::write(dir.join(name), "").with_context(|| format!("cannot write {name}"))?;
    }
    Ok(Policy {
        writable: vec![dir.join("tree")],
        home: dir.join("home"),
        closed: vec![dir.join("state")],
        own_home: dir.join("own"),
        tmp: dir.join("tmp"),
        caches: vec![Caches {
            lower: dir.join("home"),
            names: CACHES.iter().map(Into::into).collect(),
            upper: dir.join("state/upper"),
            work: dir.join("state/work"),
        }],
        foreground: true,
        ..Policy::default()
    })
}

/// Overlayfs leaves directories without permissions, which an ordinary user cannot remove.
fn open_up(dir: &Path) {
    for left in ["work", "work/incompat", "work/incompat/volatile"] {
        let left = dir.join("state/work").join(left);
        let _ = fs::set_permissions(left, fs::Permissions::from_mode(0o700));
    }
}

fn program() -> Result<Program> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    Ok(Program {
        path: TRUE.into(),
        args: Vec::new(),
        env: BTreeMap::new(),
        cwd: "/".into(),
        stdin: null.try_clone()?.into(),
        stdout: null.try_clone()?.into(),
        stderr: null.into(),
    })
}

fn plain() -> Result<()> {
    let mut command = Command::new(TRUE);
    command.env_clear().current_dir("/").stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status()?;
    Ok(())
}

fn wait(started: &Started) -> Result<()> {
    let pid = i32::try_from(started.pid()).ok().and_then(Pid::from_raw);
    waitpid(pid, WaitOptions::empty())?;
    Ok(())
}
