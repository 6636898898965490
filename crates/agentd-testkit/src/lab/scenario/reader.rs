//! A reader on the command line that is killed again and again, and goes on behind what it saw last.

use super::shell;
use crate::lab::world::{Result, World, lock};
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

pub fn run(world: &World) -> Result<()> {
    world.create(AGENT, "")?;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(world, &is_done));
        let done = turns(world);
        world.rest(&[AGENT])?;
        is_done.store(true, Ordering::Relaxed);
        let watched = watching.join().unwrap_or(Ok(()));
        done.and(watched)
    })
}

fn turns(world: &World) -> Result<()> {
    for n in 0..3 {
        let call = shell(&world.tool(&format!("call-{n}"), 30));
        world.ask(
            AGENT,
            &format!("do: {call} ;; slowly 5 and that was number {n}"),
        )?;
    }
    Ok(())
}

/// What comes, line by line.
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

/// One reader after the other, each killed after some events; in one file, as of one client.
fn watch(world: &World, is_done: &AtomicBool) -> Result<()> {
    let number = world.clients.fetch_add(1, Ordering::Relaxed);
    let file = format!("clients/{number}.jsonl");
    let head = json!({"client": "cli", "args": ["logs", AGENT, "-f", "--json"], "agent": AGENT, "from": 0});
    world.record.line(&file, &head)?;
    let mut cursor = 0;
    let mut is_last = false;
    while !is_last {
        // Once more after all is done: what is left must come too.
        is_last = is_done.load(Ordering::Relaxed);
        let line = json!({"at": world.record.at(), "saw": "connected", "from": cursor});
        world.record.line(&file, &line)?;
        let since = cursor.to_string();
        let mut command = world.command();
        command.args(["logs", AGENT, "--json", "--all", "--since", &since]);
        if !is_last {
            command.arg("-f");
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = {
            let mut waited_for = lock(&world.waited_for);
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
                // Nothing comes any more: the last reader looks whether that is all.
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
            event.insert("at".to_owned(), json!(world.record.at()));
            event.insert("saw".to_owned(), json!("event"));
            world.record.line(&file, &Value::Object(event))?;
        }
        if !is_last {
            let _gone = child.kill();
        }
        child.wait()?;
        lock(&world.waited_for).remove(&child.id());
        world.check_time("a reader")?;
    }
    let end = json!({"at": world.record.at(), "saw": "exit", "code": 0, "signal": null});
    Ok(world.record.line(&file, &end)?)
}
