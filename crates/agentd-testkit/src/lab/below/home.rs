//! The state directory is copied while a command runs, and the copy opened; and it is moved away under a daemon.

use super::ground::{spawn, wait};
use super::{completed, fault, pids, watched};
use crate::lab::testbed::{Result, Stuck, Testbed};
use crate::model::script::shell;
use std::fs;
use std::path::Path;
use std::process::Stdio;

const AGENT: &str = "worker";

/// A daemon on the copy neither ends the original's command nor runs its turn.
pub fn copied(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    watched(testbed, AGENT, || {
        completed(testbed, AGENT, "do: say before")?;
        let call = shell(&testbed.tool("copied", 12_000));
        let under_way = testbed.send(AGENT, &format!("do: {call} ;; say done"), &[])?;
        testbed.until_event(AGENT, "tool_started", 1)?;
        testbed.until("the command", || {
            let effects = testbed.record.dir().join("effects.jsonl");
            fs::read_to_string(effects).ok().filter(|it| !it.is_empty())
        })?;
        let copy = testbed.root.join("copy");
        let (from, to) = (
            testbed.home().display().to_string(),
            copy.display().to_string(),
        );
        // A new file gets its name while the directory is copied: `cp` then misses the old name, and is repeated.
        testbed.until("a copy", || {
            let _partly = fs::remove_dir_all(&copy);
            super::ground::run(testbed, "cp", &["-a", &from, &to]).ok()
        })?;
        fault(testbed, "disk", "a copied home")?;
        at(testbed, &copy, &["list", "--json"])?;
        at(testbed, &copy, &["show", AGENT, "--json"])?;
        refused(testbed, &copy, &["send", AGENT, "do: say twice"])?;
        testbed.answer(under_way)?;
        at(testbed, &copy, &["daemon", "stop", "--json"])?;
        completed(testbed, AGENT, "do: say after")
    })
}

/// A command in another home; it must succeed.
fn at(testbed: &Testbed, home: &Path, args: &[&str]) -> Result<()> {
    expect(testbed, home, args, 0)
}

/// A command in another home; it must be refused.
fn refused(testbed: &Testbed, home: &Path, args: &[&str]) -> Result<()> {
    expect(testbed, home, args, 3)
}

fn expect(testbed: &Testbed, home: &Path, args: &[&str], code: i32) -> Result<()> {
    let mut command = testbed.command();
    command.args(args).env("AGENTD_HOME", home);
    let output = wait(testbed, spawn(testbed, command.stderr(Stdio::piped()))?)?;
    match output.status.code() {
        Some(got) if got == code => Ok(()),
        got => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(Stuck::Wrong(format!(
                "{args:?} in the copy: exit {got:?} instead of {code}: {said}"
            )))
        }
    }
}

/// The daemon and its runtimes end and create nothing; once it is moved back, the home is intact.
pub fn lost(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    watched(testbed, AGENT, || {
        completed(testbed, AGENT, "do: say before")?;
        let words = "word ".repeat(100);
        let under_way = testbed.send(AGENT, &format!("do: slowly 20 {words}"), &[])?;
        testbed.until_event(AGENT, "request_sent", 2)?;
        let away = testbed.root.join("away");
        fs::rename(testbed.home(), &away)?;
        fault(testbed, "disk", "no home")?;
        testbed.until("the end of daemon and runtimes", || {
            let left = pids(testbed, "daemon").len() + pids(testbed, "runtime").len();
            (left == 0).then_some(())
        })?;
        if testbed.home().exists() {
            return Err(Stuck::Wrong(
                "a home that was moved away was created again".to_owned(),
            ));
        }
        fs::rename(&away, testbed.home())?;
        testbed.answer(under_way)?;
        completed(testbed, AGENT, "do: say after")
    })
}
