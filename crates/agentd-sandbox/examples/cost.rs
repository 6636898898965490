//! Prints what a sandbox costs: the median time of `true`, started plainly and sandboxed.

use agentd_sandbox::{
    Cache, Network, Policy, Program, Started, start, start_without_namespaces, support,
};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TIMES: usize = 200;
const TRUE: &str = "/bin/true";

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    let begin = Instant::now();
    let support = support();
    writeln!(out, "support() {:>24.2?}", begin.elapsed())?;
    if let Err(missing) = &support.namespaces {
        writeln!(out, "{missing}")?;
        return Ok(());
    }
    let dir = tempfile::tempdir_in("/var/tmp")?;
    let policy = policy(dir.path())?;
    let offline = Policy {
        network: Network::Off,
        ..policy.clone()
    };
    let bare = Policy {
        caches: Vec::new(),
        ..policy.clone()
    };
    let mut times: [Vec<Duration>; 5] = Default::default();
    // In turns, so that what else the machine does falls on all of them.
    for _ in 0..TIMES {
        times[0].push(timed(plain)?);
        times[1].push(timed(|| wait(start(&policy, program()?, ok, ok)?))?);
        times[2].push(timed(|| wait(start(&bare, program()?, ok, ok)?))?);
        times[3].push(timed(|| wait(start(&offline, program()?, ok, ok)?))?);
        times[4].push(timed(|| {
            wait(start_without_namespaces(&policy, program()?, ok)?)
        })?);
    }
    // Overlayfs leaves directories that nobody may enter, which keeps an ordinary user from removing them.
    for left in ["work", "work/incompat", "work/incompat/volatile"] {
        let left = dir.path().join("state/work").join(left);
        let _ = fs::set_permissions(left, fs::Permissions::from_mode(0o700));
    }
    let names = [
        "plain",
        "sandboxed, network on",
        "the same without a cache",
        "sandboxed, network off",
        "without namespaces",
    ];
    for (name, mut times) in names.into_iter().zip(times) {
        times.sort_unstable();
        let (median, most) = (times[TIMES / 2], times[TIMES * 95 / 100]);
        writeln!(out, "{name:<26} {median:>10.2?}  (95 %: {most:.2?})")?;
    }
    Ok(())
}

fn ok() -> io::Result<()> {
    Ok(())
}

/// What an agent has: a work tree with a repository, a cache and a temporary directory.
fn policy(dir: &Path) -> io::Result<Policy> {
    for name in [
        "home/.cargo/bin",
        "home/.cache",
        "state/upper",
        "state/work",
        "own",
        "tmp",
        "tree/.git/hooks",
    ] {
        fs::create_dir_all(dir.join(name))?;
    }
    fs::write(dir.join("home/.gitconfig"), "")?;
    fs::write(dir.join("tree/.git/config"), "")?;
    Ok(Policy {
        writable: vec![dir.join("tree")],
        home: dir.join("home"),
        closed: vec![dir.join("state")],
        own_home: dir.join("own"),
        tmp: dir.join("tmp"),
        caches: vec![Cache {
            at: dir.join("home/.cache"),
            upper: dir.join("state/upper"),
            work: dir.join("state/work"),
        }],
        foreground: true,
        ..Policy::default()
    })
}

fn program() -> io::Result<Program> {
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

fn timed(run: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let begin = Instant::now();
    run()?;
    Ok(begin.elapsed())
}

fn plain() -> Result<(), Box<dyn Error>> {
    let mut command = Command::new(TRUE);
    command.env_clear().current_dir("/").stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status()?;
    Ok(())
}

fn wait(started: Started) -> Result<(), Box<dyn Error>> {
    let pid = i32::try_from(started.pid()).ok().and_then(Pid::from_raw);
    waitpid(pid, WaitOptions::empty())?;
    Ok(())
}
