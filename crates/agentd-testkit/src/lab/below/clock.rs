//! The clock jumps: back by a day, ahead by years. Order is by number, never by time; nothing else changes.
//! goose#7472, #9461: a result sorted before its request.

use super::{completed, fault, watched};
use crate::lab::testbed::{Result, Stuck, Testbed};
use crate::model::script::shell;
use std::fs;

const AGENT: &str = "worker";
const DAY_MS: i64 = 86_400_000;

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    watched(testbed, AGENT, || turns(testbed))
}

fn turns(testbed: &Testbed) -> Result<()> {
    completed(testbed, AGENT, "do: say before")?;
    for (name, days) in [
        ("a day back", -1),
        ("ten years ahead", 3650),
        ("years back", -7000),
    ] {
        // In mid-turn.
        let call = shell(&testbed.tool("jump", 200));
        let text = format!("do: {call} ;; {call} ;; say the clock was set {name}");
        let number = testbed.send(AGENT, &text, &[])?;
        testbed.until_running(AGENT)?;
        let file = agentd_failpoint::CLOCK_FILE;
        fs::write(testbed.root.join(file), (days * DAY_MS).to_string())?;
        fault(testbed, "clock", name)?;
        testbed.answer(number)?;
        completed(testbed, AGENT, "do: say so much for time")?;
    }
    // The clock really jumped.
    let events = testbed.until("the events", || testbed.events(AGENT))?;
    let times: Vec<i64> = events
        .iter()
        .filter_map(|event| event["at"].as_i64())
        .collect();
    match times.is_sorted() {
        true => Err(Stuck::Wrong("the clock did not jump".to_owned())),
        false => Ok(()),
    }
}
