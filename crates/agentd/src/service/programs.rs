//! Runs `systemctl`, `loginctl` and `crontab`, and reads what they print.

use agentd_process::{Child, Exit, Ownership, Signal, Start, signal};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(10);

/// How a program ended, and what it printed.
#[derive(Debug)]
pub struct Ran {
    pub is_ok: bool,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// What the program said about its failure, in one line.
    pub fn why(&self) -> String {
        let lines = self.err.lines().chain(self.out.lines());
        let mut lines = lines.map(str::trim).filter(|line| !line.is_empty());
        lines.next().unwrap_or("no error message").to_owned()
    }
}

/// Runs a program of the search path to its end. `NotFound` if it is not installed.
pub fn run(program: &str, args: &[&str], input: &str) -> io::Result<Ran> {
    run_within(program, args, input, None)
}

/// The same. A program that takes longer than the limit is killed; the error is `TimedOut`.
pub fn run_within(
    program: &str,
    args: &[&str],
    input: &str,
    limit: Option<Duration>,
) -> io::Result<Ran> {
    let path = in_path(program).ok_or(io::ErrorKind::NotFound)?;
    // Files, because a pipe that nothing reads could block the program.
    let (mut out, mut err, mut from) = (
        tempfile::tempfile()?,
        tempfile::tempfile()?,
        tempfile::tempfile()?,
    );
    from.write_all(input.as_bytes())?;
    from.rewind()?;
    let mut start = Start::new(path);
    start.args = args.iter().map(OsString::from).collect();
    start.env = environment();
    start.stdin = from.into();
    start.stdout = out.try_clone()?.into();
    start.stderr = err.try_clone()?.into();
    // A password that `systemctl` asks for is typed at our terminal.
    start.own = Ownership::Nothing;
    let mut child = start.spawn().map_err(io::Error::other)?;
    let exit = match limit {
        Some(limit) => wait_within(&mut child, limit)?,
        None => child.wait().map_err(io::Error::other)?,
    };
    Ok(Ran {
        is_ok: exit == Exit::Code(0),
        out: text(&mut out)?,
        err: text(&mut err)?,
    })
}

fn wait_within(child: &mut Child, limit: Duration) -> io::Result<Exit> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(exit) = child.try_wait().map_err(io::Error::other)? {
            return Ok(exit);
        }
        if Instant::now() >= deadline {
            // An error means that it has ended already.
            let _gone = signal(child.identity(), Signal::KILL);
            let _reaped = child.wait();
            return Err(io::ErrorKind::TimedOut.into());
        }
        // tidy: polls for the end of the program
        std::thread::sleep(POLL);
    }
}

fn text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A program in the directories of `PATH`.
pub fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|dir| dir.join(program));
    files.find(|file| file.is_absolute() && file.is_file())
}

/// Our own variables. A shell without a session (`su`, `cron`) lacks the directory of the user's manager.
fn environment() -> Vec<(OsString, OsString)> {
    const RUNTIME: &str = "XDG_RUNTIME_DIR";
    let mut env: Vec<_> = std::env::vars_os().collect();
    let uid = rustix::process::getuid().as_raw();
    let usual = PathBuf::from(format!("/run/user/{uid}"));
    if std::env::var_os(RUNTIME).is_none() && usual.is_dir() {
        env.push((RUNTIME.into(), usual.into()));
    }
    env
}
