//! The daemon has no descriptor left: a new client waits, and is served when descriptors are available again.

use super::{completed, daemon, fault, told_clearly, try_send, watched};
use crate::lab::testbed::{Result, Stuck, Testbed};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::fs;

const AGENT: &str = "worker";

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    watched(testbed, AGENT, || turns(testbed))
}

fn turns(testbed: &Testbed) -> Result<()> {
    completed(testbed, AGENT, "do: say before")?;
    let words = "word ".repeat(60);
    let under_way = testbed.send(AGENT, &format!("do: slowly 10 {words}"), &[])?;
    let daemon = daemon(testbed)?;
    let open = fs::read_dir(format!("/proc/{}/fd", daemon.as_raw_nonzero()))?.count();
    let before = limit(daemon, Some(open as u64))?;
    fault(testbed, "daemon", "EMFILE")?;
    std::thread::scope(|scope| {
        let sent = scope.spawn(|| try_send(testbed, AGENT, "do: say meanwhile"));
        // Until the daemon logs that it cannot accept connections, or the client is told.
        let log = testbed.home().join("daemon.log");
        testbed.until("a refusal", || {
            let said = fs::read_to_string(&log).unwrap_or_default();
            (said.contains("os error 24") || sent.is_finished()).then_some(())
        })?;
        limit(daemon, before)?;
        let sent = sent.join();
        let sent = sent.map_err(|_| Stuck::Wrong("a client panicked".to_owned()))?;
        // The client waited and was served, or was told why not.
        let (number, ran) = sent?;
        match ran.code {
            Some(0) => testbed.answer(number).map(drop),
            _ => told_clearly(&ran, &["open files", "descriptor"]),
        }
    })?;
    testbed.answer(under_way)?;
    completed(testbed, AGENT, "do: say after")
}

/// Sets the descriptor limit of a process; returns the previous limit.
fn limit(pid: Pid, descriptors: Option<u64>) -> Result<Option<u64>> {
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: descriptors,
        maximum,
    };
    let before = prlimit(Some(pid), Resource::Nofile, limit);
    Ok(before.map_err(std::io::Error::from)?.current)
}
