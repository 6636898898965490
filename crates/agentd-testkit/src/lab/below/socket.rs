//! The sockets are deleted, as cleaners of temporary directories do: the daemon creates them again.

use super::{completed, fault, watched};
use crate::lab::testbed::{Result, Testbed};
use std::fs;

const AGENT: &str = "worker";

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    watched(testbed, AGENT, || turns(testbed))
}

fn turns(testbed: &Testbed) -> Result<()> {
    completed(testbed, AGENT, "do: say before")?;
    let words = "word ".repeat(40);
    let under_way = testbed.send(AGENT, &format!("do: slowly 10 {words}"), &[])?;
    for entry in fs::read_dir(testbed.home().join("run"))? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "sock")
        {
            fs::remove_file(path)?;
        }
    }
    fault(testbed, "files", "no socket")?;
    testbed.answer(under_way)?;
    completed(testbed, AGENT, "do: say after")
}
