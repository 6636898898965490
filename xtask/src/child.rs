//! A child process with a time budget; its output is passed through and parsed.
//!
//! The child leads its own process group, so that all of it can be stopped at once. A terminal's
//! Ctrl-C does not reach that group, hence the [`Leash`].

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::closing::{Closing, Runner};
use crate::machine_time::{Stopwatch, Took};

/// How long a stopped group may take to end by itself. nextest gives its tests ten seconds.
const GRACE: Duration = Duration::from_secs(15);
/// A machine that hardly runs does not keep a suite for ever.
const MOST_WALL: u32 = 2;
/// How long to wait for output after the child ended: a process that it left behind may hold the pipe.
const DRAIN: Duration = Duration::from_secs(5);

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    /// How it ended, as text.
    Failed(String),
    OverBudget,
}

pub struct Outcome {
    pub verdict: Verdict,
    pub took: Took,
    /// The closing line of the test runner, if it printed one.
    pub closing: Option<String>,
}

/// Runs `command` to its end or to the end of its budget.
pub fn run_within(
    mut command: Command,
    budget: Duration,
    runner: Option<Runner>,
) -> Result<Outcome> {
    command.stdin(Stdio::null()).process_group(0);
    if runner.is_some() {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    let stopwatch = Stopwatch::start();
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let group = Pid::from_child(&child);
    let _leash = Leash::tie(group)?;
    let listener = runner.map(|runner| Listener::attach(&mut child, runner));

    let (tell, ended) = mpsc::channel();
    thread::spawn(move || tell.send(child.wait()));
    let verdict = loop {
        let took = stopwatch.took();
        let left = budget.saturating_sub(took.counted());
        if left.is_zero() || took.wall > budget * MOST_WALL {
            stop(group, GRACE);
            break Verdict::OverBudget;
        }
        // When that time has passed, some of it may have been stolen.
        if let Ok(status) = ended.recv_timeout(left) {
            let status = status.context("cannot wait for the child")?;
            break if status.success() {
                Verdict::Passed
            } else {
                Verdict::Failed(status.to_string())
            };
        }
    };
    let took = stopwatch.took();
    let passed = verdict == Verdict::Passed;
    Ok(Outcome {
        verdict,
        took,
        closing: listener.and_then(|listener| listener.finish(passed)),
    })
}

/// Sends SIGTERM to the group, and SIGKILL if it does not end. SIGTERM comes first because nextest puts each
/// test in its own group, and ends those only on SIGTERM.
fn stop(group: Pid, grace: Duration) {
    // An error means that the group is already empty.
    let _ = kill_process_group(group, Signal::TERM);
    let deadline = Instant::now() + grace;
    while Instant::now() < deadline {
        if test_kill_process_group(group).is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    let _ = kill_process_group(group, Signal::KILL);
}

/// Ends the group if this process ends first, however that happens: a small shell waits for the end
/// of a pipe that only this process holds open.
struct Leash(Child);

impl Leash {
    fn tie(group: Pid) -> Result<Self> {
        let shell = Command::new("sh")
            .args(["-c", "read -r _; kill -s TERM -- \"-$0\""])
            .arg(group.as_raw_nonzero().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start sh")?;
        Ok(Self(shell))
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        // The pipe is still open here, so the shell ends without sending a signal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Passes both streams of a child through, and parses their lines.
struct Listener {
    closing: Arc<Mutex<Closing>>,
    done: Receiver<()>,
}

impl Listener {
    fn attach(child: &mut Child, runner: Runner) -> Self {
        let closing = Arc::new(Mutex::new(Closing::new(runner)));
        let (tell, done) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            let (closing, tell) = (Arc::clone(&closing), tell.clone());
            thread::spawn(move || {
                pass_on(stdout, io::stdout(), &closing);
                tell.send(())
            });
        }
        if let Some(stderr) = child.stderr.take() {
            let closing = Arc::clone(&closing);
            thread::spawn(move || {
                pass_on(stderr, io::stderr(), &closing);
                tell.send(())
            });
        }
        Self { closing, done }
    }

    fn finish(self, passed: bool) -> Option<String> {
        let deadline = Instant::now() + DRAIN;
        for _stream in 0..2 {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.done.recv_timeout(left).is_err() {
                break;
            }
        }
        self.closing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .line(passed)
    }
}

fn pass_on(from: impl Read, mut to: impl Write, closing: &Mutex<Closing>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        match from.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // Keep parsing even if the terminal is gone.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        closing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .hear(&String::from_utf8_lossy(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_child_passes_or_fails_by_its_exit_code() {
        let passed = run_within(shell("exit 0"), LONG, None).unwrap();
        assert_eq!(passed.verdict, Verdict::Passed);
        let failed = run_within(shell("exit 3"), LONG, None).unwrap();
        assert_eq!(failed.verdict, Verdict::Failed("exit status: 3".into()));
    }

    #[test]
    fn the_closing_line_is_heard_on_either_stream() {
        for stream in ["1", "2"] {
            let script = format!("echo '     Summary [ 1s] 1 test run: 1 passed' >&{stream}");
            let outcome = run_within(shell(&script), LONG, Some(Runner::Nextest)).unwrap();
            assert_eq!(
                outcome.closing.as_deref(),
                Some("Summary [ 1s] 1 test run: 1 passed")
            );
        }
    }

    #[test]
    fn a_child_over_its_budget_is_stopped_with_its_own_children() {
        let dir = std::env::temp_dir().join(format!("xtask-child-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("pid");
        let script = format!("sleep 600 & echo $! > '{}'; wait", file.display());
        let budget = Duration::from_millis(500);
        let outcome = run_within(shell(&script), budget, Some(Runner::Nextest)).unwrap();
        assert_eq!(outcome.verdict, Verdict::OverBudget);
        assert!(outcome.took.wall < LONG, "took {:?}", outcome.took);

        let pid = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(
            !is_running(pid.trim()),
            "the grandchild {pid} still runs after its group was stopped"
        );
    }

    #[test]
    fn a_child_that_will_not_end_is_ended() {
        let mut child = shell("trap '' TERM; while :; do sleep 1; done")
            .process_group(0)
            .spawn()
            .unwrap();
        stop(Pid::from_child(&child), Duration::from_millis(200));
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_leash_let_go_ends_the_group() {
        let mut child = shell("sleep 600").process_group(0).spawn().unwrap();
        let mut leash = Leash::tie(Pid::from_child(&child)).unwrap();
        drop(leash.0.stdin.take());
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_leash_dropped_leaves_the_group_alone() {
        let mut child = shell("sleep 600").process_group(0).spawn().unwrap();
        drop(Leash::tie(Pid::from_child(&child)).unwrap());
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Whether a process has this id and is not just waiting to be reaped.
    fn is_running(pid: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
    }
}
