//! A reader on the command line that is killed repeatedly, and continues after the last event that it saw.

use crate::lab::testbed::{Result, Testbed, lock};
use crate::model::script::shell;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

const AGENT: &str = "worker";
/// Events after which the reader is killed.
const SOME: usize = 6;
const MOMENT: Duration = Duration::from_millis(20);

pub fn run(testbed: &Testbed) -> Result<()> {
    testbed.create(AGENT, "")?;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(testbed, &is_done));
        let done = turns(testbed);
        testbed.wait_idle(&[AGENT])?;
        is_done.store(true, Ordering::Relaxed);
        let watched = watching.join().unwrap_or(Ok(()));
        done.and(watched)
    })
}

fn turns(testbed: &Testbed) -> Result<()> {
    for n in 0..3 {
        let call = shell(&testbed.tool(&format!("call-{n}"), 30));
        testbed.ask(
            AGENT,
            &format!("do: {call} ;; slowly 5 and that was number {n}"),
        )?;
    }
    Ok(())
}

/// The output, line by line.
fn lines(output: Option<ChildStdout>) -> Receiver<String> {
    let (tell, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let read = output.into_iter().map(BufReader::new);
        for line in read.flat_map(BufReader::lines).map_while(|line| line.ok()) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// One reader after the other, each killed after some events; recorded in one file, as one client.
fn watch(testbed: &Testbed, is_done: &AtomicBool) -> Result<()> {
    let number = testbed.clients.fetch_add(1, Ordering::Relaxed);
    let file = format!("clients/{number}.jsonl");
    let head = json!({"client": "cli", "args": ["logs", AGENT, "-f", "--json"], "agent": AGENT, "from": 0});
    testbed.record.line(&file, &head)?;
    let mut cursor = 0;
    let mut is_last = false;
    while !is_last {
        // Once more at the end: the remaining events must arrive too.
        is_last = is_done.load(Ordering::Relaxed);
        let line = json!({"at": testbed.record.at(), "saw": "connected", "from": cursor});
        testbed.record.line(&file, &line)?;
        let since = cursor.to_string();
        let mut command = testbed.command();
        command.args(["logs", AGENT, "--json", "--all", "--since", &since]);
        if !is_last {
            command.arg("-f");
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = {
            let mut waited_for = lock(&testbed.waited_for);
            let child = command.spawn()?;
            waited_for.insert(child.id());
            child
        };
        let lines = lines(child.stdout.take());
        let most = if is_last { usize::MAX } else { SOME };
        let mut seen = 0;
        while seen < most {
            let line = match lines.recv_timeout(MOMENT) {
                Ok(line) => line,
                // Nothing more arrives: the last reader checks whether that is all.
                Err(RecvTimeoutError::Timeout) if is_last || !is_done.load(Ordering::Relaxed) => {
                    continue;
                }
                Err(_) => break,
            };
            seen += 1;
            let Ok(Value::Object(mut event)) = serde_json::from_str(&line) else {
                continue;
            };
            cursor = event.get("seq").and_then(Value::as_u64).unwrap_or(cursor);
            event.insert(
                "event_at".to_owned(),
                event.get("at").cloned().unwrap_or_default(),
            );
            event.insert("at".to_owned(), json!(testbed.record.at()));
            event.insert("saw".to_owned(), json!("event"));
            testbed.record.line(&file, &Value::Object(event))?;
        }
        if !is_last {
            let _gone = child.kill();
        }
        child.wait()?;
        lock(&testbed.waited_for).remove(&child.id());
        testbed.check_time("a reader")?;
    }
    let end = json!({"at": testbed.record.at(), "saw": "exit", "code": 0, "signal": null});
    Ok(testbed.record.line(&file, &end)?)
}
