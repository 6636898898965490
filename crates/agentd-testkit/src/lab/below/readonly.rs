//! A read-only state directory: nothing begins, and the client is told why.

use super::{completed, fault, kill_all, told_clearly, try_send, watched};
use crate::lab::testbed::{Result, Stuck, Testbed};

const AGENT: &str = "worker";

pub fn run(testbed: &Testbed) -> Result<()> {
    super::ground::small(testbed, "64m")?;
    testbed.create(AGENT, "")?;
    watched(testbed, AGENT, || turns(testbed))
}

fn turns(testbed: &Testbed) -> Result<()> {
    completed(testbed, AGENT, "do: say before")?;
    kill_all(testbed)?;
    // Killed processes may not have ended yet.
    testbed.until("a read-only disk", || remount(testbed, "remount,ro").ok())?;
    fault(testbed, "disk", "EROFS")?;
    let (_, refused) = try_send(testbed, AGENT, "do: say nothing")?;
    told_clearly(&refused, &["read-only", "readonly"])?;
    remount(testbed, "remount,rw")?;
    completed(testbed, AGENT, "do: say after")
}

fn remount(testbed: &Testbed, how: &str) -> Result<()> {
    let home = testbed.home();
    let home = home
        .to_str()
        .ok_or_else(|| Stuck::Wrong("the path is not UTF-8".to_owned()))?;
    super::ground::run(testbed, "mount", &["-o", how, home])
}
