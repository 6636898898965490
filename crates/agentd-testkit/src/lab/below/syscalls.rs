//! Writes and syncs of the daemon that fail (once as on a disk that has just become read-only), are interrupted by
//! signals, or take long. `strace` does it to the running daemon.

use super::ground::{spawn, wait};
use super::{completed, daemon, fault, told_clearly, try_send, verified, watched};
use crate::lab::testbed::{Result, Stuck, Testbed};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Command, Stdio};

const AGENT: &str = "worker";

/// The disk fault, and whether it makes the daemon refuse a prompt.
const FAULTS: [(&str, &str, Answer); 6] = [
    (
        "EIO of a sync",
        "fdatasync,fsync:error=EIO",
        Answer::Refused,
    ),
    ("EIO of a write", "pwrite64:error=EIO", Answer::Refused),
    (
        "ENOSPC of a write",
        "pwrite64:error=ENOSPC",
        Answer::Refused,
    ),
    (
        "EROFS in mid-turn",
        "pwrite64,fdatasync,fsync,ftruncate:error=EROFS",
        Answer::Refused,
    ),
    (
        "EINTR",
        "pwrite64,openat:error=EINTR:when=1+3",
        Answer::Accepted,
    ),
    (
        "a slow sync",
        "fdatasync,fsync:delay_enter=200000",
        Answer::Accepted,
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Refused,
    Accepted,
}

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    watched(testbed, AGENT, || turns(testbed))?;
    verified(testbed)
}

fn turns(testbed: &Testbed) -> Result<()> {
    completed(testbed, AGENT, "do: say before")?;
    for (name, inject, expected) in FAULTS {
        // One turn is in progress.
        let words = "word ".repeat(40);
        let under_way = testbed.send(AGENT, &format!("do: slowly 10 {words}"), &[])?;
        let daemon = daemon(testbed)?;
        fault(testbed, "disk", name)?;
        let tracing = Tracing::start(testbed, daemon, inject)?;
        let (number, ran) = try_send(testbed, AGENT, "do: say meanwhile")?;
        match expected {
            Answer::Refused => told_clearly(&ran, &["disk", "i/o", "full", "input/output"])?,
            Answer::Accepted if ran.code == Some(0) => {}
            Answer::Accepted => return Err(Stuck::Wrong(format!("{name}: {}", ran.stderr))),
        }
        tracing.stop(testbed)?;
        testbed.answer(under_way)?;
        if ran.code == Some(0) {
            testbed.answer(number)?;
        }
        completed(testbed, AGENT, "do: say after")?;
    }
    Ok(())
}

/// A daemon whose system calls are tampered with.
struct Tracing {
    strace: Child,
}

impl Tracing {
    fn start(testbed: &Testbed, daemon: Pid, inject: &str) -> Result<Self> {
        let pid = daemon.as_raw_nonzero().to_string();
        let inject = format!("inject={inject}");
        let mut command = Command::new("strace");
        command.args(["-f", "-o", "/dev/null", "-e", &inject, "-p", &pid]);
        let strace = spawn(testbed, command.stderr(Stdio::null()))?;
        let mut tracing = Self { strace };
        let attached = testbed.until("strace", || {
            let is_over = tracing.strace.try_wait().ok()?.is_some();
            (is_over || all_traced(&pid)).then_some(is_over)
        })?;
        match attached {
            false => Ok(tracing),
            true => Err(Stuck::Wrong("strace cannot trace the daemon".to_owned())),
        }
    }

    fn stop(self, testbed: &Testbed) -> Result<()> {
        if let Some(pid) = super::as_pid(self.strace.id()) {
            // It detaches from the daemon, which continues.
            let _gone = kill_process(pid, Signal::INT);
        }
        wait(testbed, self.strace).map(drop)
    }
}

/// Whether each thread of a process is traced.
fn all_traced(pid: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let mut threads = threads.into_iter().flatten().flatten();
    threads.all(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let mut lines = status.lines();
        lines.any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
    })
}
