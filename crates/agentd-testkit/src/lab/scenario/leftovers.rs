//! A command that leaves processes behind, inside and outside its process group: they end with it.

use crate::lab::reader;
use crate::lab::testbed::{Result, Testbed};
use crate::model::script::shell;

const AGENT: &str = "worker";

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = turns(testbed);
        testbed.wait_idle(&[AGENT])?;
        done
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    let tool = testbed.tool("left", 20);
    let call = shell(&format!("sleep 1000 & (setsid sleep 1000 &) ; {tool}"));
    testbed.ask(AGENT, &format!("do: {call} ;; say it is done"))?;
    Ok(())
}
