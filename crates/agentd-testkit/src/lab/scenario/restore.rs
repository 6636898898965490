//! Restores of files and their undo, each requested twice under one op, after edits of several turns, while a reader looks
//! at the files all the time.

use super::files::watch;
use crate::lab::testbed::{Result, Stuck, Testbed};
use serde_json::json;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

const AGENT: &str = "worker";
const FILES: [&str; 2] = ["restored-a", "restored-b"];

pub fn run(testbed: &Testbed) -> Result<()> {
    let work = fs::canonicalize(testbed.work())?;
    testbed.create(AGENT, "")?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(testbed, &work, &FILES, &is_over));
        let done = turns(testbed).and_then(|()| testbed.wait_idle(&[AGENT]));
        is_over.store(true, Ordering::Relaxed);
        let watched = watcher.join().unwrap_or_else(|_| {
            let what = "the watcher of files panicked".to_owned();
            Err(Stuck::Wrong(what))
        });
        done.and(watched)
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    for (n, name) in [(1, "a"), (2, "b"), (3, "a")] {
        // Long enough that a write takes a moment.
        let content = format!("{n} line\n").repeat(2_000);
        let call = json!({ "file_path": format!("restored-{name}"), "content": content });
        testbed.ask(AGENT, &format!("do: call write_file {call} ;; say written"))?;
    }
    twice(testbed, 1, &["files", "restore", AGENT, "--to", "2"])?;
    twice(testbed, 2, &["files", "restore", AGENT, "--to", "init"])?;
    twice(testbed, 3, &["files", "undo", AGENT])?;
    testbed.ask(AGENT, "do: say between the two")?;
    twice(testbed, 4, &["files", "undo", AGENT])
}

/// The same request twice, under one op.
fn twice(testbed: &Testbed, op: u64, args: &[&str]) -> Result<()> {
    let op = testbed.op(op);
    for _ in 0..2 {
        let mut args = args.to_vec();
        args.extend(["--op", &op, "--json"]);
        testbed.order(AGENT, "files", Some(&op), &args)?;
    }
    Ok(())
}
