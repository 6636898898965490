//! A turn whose process dies after each request to the model: given up after three attempts, and reported.

use crate::lab::reader;
use crate::lab::testbed::{Result, Testbed};
use serde_json::json;

const AGENT: &str = "worker";

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.expect("crash_loop", json!(true));
    testbed.create(AGENT, "")?;
    std::thread::scope(|scope| {
        scope.spawn(|| reader::follow(testbed, AGENT));
        let done = testbed.ask(AGENT, "do: say never").map(drop);
        testbed.wait_idle(&[AGENT])?;
        done
    })
}
