//! Short writes: a file may grow by a few bytes and no further, so that a write ends in the middle, with a count and
//! no error; the next one fails. A limit on file sizes makes the system calls behave that way.

use super::{completed, daemon, fault, kill_all, told_clearly, try_send, verified, watched};
use crate::lab::dice::Dice;
use crate::lab::testbed::{Result, Stuck, Testbed};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::fs;
use std::process::Stdio;

const AGENT: &str = "worker";
/// How often, each time in the middle of another write.
const TIMES: usize = 6;
/// A page of the database's log, with its frame header.
const FRAME: u64 = 4096 + 24;
/// Prompts that are accepted before the log counts as restarted, with space left.
const MOST: usize = 20;

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    kill_all(testbed)?;
    start(testbed)?;
    watched(testbed, AGENT, || turns(testbed))?;
    verified(testbed)
}

/// A daemon that ignores the signal for files that are too large: then the write fails instead.
fn start(testbed: &Testbed) -> Result<()> {
    let mut shell = testbed.program.command_of("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" daemon start"]);
    shell.arg(testbed.program.path()).stderr(Stdio::piped());
    let output = super::ground::wait(testbed, super::ground::spawn(testbed, &mut shell)?)?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let what = format!("no daemon without that signal: {}", said.trim());
            Err(Stuck::Wrong(what))
        }
    }
}

fn turns(testbed: &Testbed) -> Result<()> {
    let mut dice = Dice::new(testbed.spec.seed);
    completed(testbed, AGENT, "do: say before")?;
    let mut told = 0;
    for round in 0..TIMES {
        let words = "word ".repeat(40);
        // No two prompts are equal: after a compaction, equal prompts would make equal requests.
        let under_way = testbed.send(AGENT, &format!("do: slowly 10 {round} {words}"), &[])?;
        let daemon = daemon(testbed)?;
        let log = fs::metadata(testbed.home().join("journal.db-wal"));
        let size = log.map_or(0, |log| log.len());
        // In the middle of the next frame, or of a later one.
        limit(daemon, Some(size + 1 + dice.below(3 * FRAME)))?;
        fault(testbed, "disk", "a short write")?;
        let mut accepted = Vec::new();
        while accepted.len() < MOST {
            let n = accepted.len();
            let text = format!("do: say {round}-{n} {}", "much ".repeat(1000));
            let (number, ran) = try_send(testbed, AGENT, &text)?;
            if ran.code != Some(0) {
                told_clearly(&ran, &["disk", "i/o", "full", "large", "input/output"])?;
                told += 1;
                break;
            }
            accepted.push(number);
        }
        limit(daemon, None)?;
        testbed.answer(under_way)?;
        for number in accepted {
            testbed.answer(number)?;
        }
        completed(testbed, AGENT, &format!("do: say after {round}"))?;
    }
    match told {
        0 => Err(Stuck::Wrong("no write was short".to_owned())),
        _ => Ok(()),
    }
}

/// Sets the file size limit of a process.
fn limit(pid: Pid, bytes: Option<u64>) -> Result<()> {
    let maximum = rustix::process::getrlimit(Resource::Fsize).maximum;
    let limit = Rlimit {
        current: bytes,
        maximum,
    };
    prlimit(Some(pid), Resource::Fsize, limit).map_err(std::io::Error::from)?;
    Ok(())
}
