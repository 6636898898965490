//! Half a frame at the end of the database's log, as a crash of the machine leaves it: it was never
//! acknowledged, and must be ignored.

use super::{completed, fault, kill_all, verified, watched};
use crate::lab::dice::Dice;
use crate::lab::testbed::{Result, Testbed};
use std::fs::{self, File};
use std::io::Write as _;

const AGENT: &str = "worker";
/// A page and its frame header.
const FRAME: usize = 8192 + 24;

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    watched(testbed, AGENT, || turns(testbed))?;
    verified(testbed)
}

fn turns(testbed: &Testbed) -> Result<()> {
    let mut dice = Dice::new(testbed.spec.seed);
    for round in 0..4 {
        completed(testbed, AGENT, &format!("do: say before number {round}"))?;
        let words = "word ".repeat(40);
        let under_way = testbed.send(AGENT, &format!("do: slowly 10 {words}"), &[])?;
        kill_all(testbed)?;
        for name in ["journal.db-wal", "derived.db-wal"] {
            let path = testbed.home().join(name);
            let log = fs::read(&path).unwrap_or_default();
            let mut torn = match round % 2 {
                // The beginning of what looks like the last frame, written again.
                0 => log[log.len().saturating_sub(FRAME)..].to_vec(),
                // What happened to be on the disk.
                _ => (0..FRAME * 2).map(|_| dice.below(256) as u8).collect(),
            };
            torn.truncate(1 + dice.below(FRAME as u64 - 1) as usize);
            File::options()
                .append(true)
                .create(true)
                .open(&path)?
                .write_all(&torn)?;
        }
        fault(testbed, "disk", "a torn tail")?;
        testbed.answer(under_way)?;
    }
    completed(testbed, AGENT, "do: say after")
}
