//! Shows a notification on the user's screen, by `notify-send`. Started without a shell, and only for a short time.

use crate::daemon::Daemon;
use crate::spawn::blocking;
use agentd_process::{Child, Exit, Signal, Start, signal};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PROGRAM: &str = "notify-send";
/// Time limit of the program.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// Shows the text once. A notification that cannot be shown is not shown later: it would be out of date.
pub async fn show(daemon: &Daemon, title: &str, text: &str) -> Result<(), String> {
    let env = daemon.desktop_env.clone();
    let Some(program) = find(&env) else {
        return Err(format!("{PROGRAM} is not in PATH"));
    };
    let mut start = Start::new(program);
    start.args = ["--app-name=agentd", "--", title, text]
        .map(OsString::from)
        .into();
    start.env = env;
    blocking(move || run(start)).await
}

/// The program, in the directories of `PATH`.
fn find(env: &[(OsString, OsString)]) -> Option<PathBuf> {
    let (_, path) = env.iter().find(|(name, _)| name == "PATH")?;
    let mut files = path
        .to_str()?
        .split(':')
        .map(|dir| Path::new(dir).join(PROGRAM));
    files.find(|file| file.is_absolute() && file.is_file())
}

fn run(start: Start) -> Result<(), String> {
    let mut child = start.spawn().map_err(|error| error.to_string())?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(Exit::Code(0))) => return Ok(()),
            Ok(Some(exit)) => return Err(format!("{PROGRAM} ended with {exit:?}")),
            Ok(None) if Instant::now() >= deadline => return Err(kill(child)),
            // tidy: polls for the end of a program that takes milliseconds
            Ok(None) => std::thread::sleep(POLL),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn kill(mut child: Child) -> String {
    let killed = signal(child.identity(), Signal::KILL);
    let reaped = child.wait();
    match (killed, reaped) {
        (Ok(_), Ok(_)) => format!("{PROGRAM} took longer than {} s", PATIENCE.as_secs()),
        (Err(error), _) | (_, Err(error)) => error.to_string(),
    }
}
