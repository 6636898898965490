//! A client that watches an agent's events, and reconnects with its cursor whenever the daemon goes away.

use super::testbed::{Heard, Testbed, pause};
use agentd_client::api::{EventQuery, Item};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// Follows an agent's events until the run is over. Runs on its own thread.
pub fn follow(testbed: &Testbed, agent: &str) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let number = testbed.clients.fetch_add(1, Ordering::Relaxed);
    let file = format!("clients/{number}.jsonl");
    let head = json!({"client": "sse", "args": [], "agent": agent, "from": 0});
    testbed.record.line(&file, &head)?;
    let mut cursor = 0;
    while !testbed.is_at_rest.load(Ordering::Relaxed) {
        runtime.block_on(connected(testbed, agent, &file, &mut cursor))?;
        pause();
    }
    let end = json!({"at": testbed.record.at(), "saw": "exit", "code": 0, "signal": null});
    testbed.record.line(&file, &end)
}

/// One connection, to its end.
async fn connected(
    testbed: &Testbed,
    agent: &str,
    file: &str,
    cursor: &mut u64,
) -> std::io::Result<()> {
    let heard = Heard::from(testbed);
    let query = EventQuery {
        after: *cursor,
        all: true,
        ..EventQuery::default()
    };
    let Ok(mut events) = testbed.client().follow(agent, &query).await else {
        return Ok(());
    };
    let line = json!({"at": testbed.record.at(), "saw": "connected", "from": cursor});
    testbed.record.line(file, &line)?;
    loop {
        let over = async {
            while !testbed.is_at_rest.load(Ordering::Relaxed) {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let item = tokio::select! {
            item = events.next() => item,
            () = over => return Ok(()),
        };
        let Some(Ok(item)) = item else { return Ok(()) };
        if !heard.counts() {
            return Ok(());
        }
        let at = testbed.record.at();
        let line = match item {
            Item::Event(event) => {
                *cursor = event.seq.0;
                let mut line = serde_json::to_value(&*event)?;
                if let Value::Object(line) = &mut line {
                    line.insert(
                        "event_at".to_owned(),
                        line.get("at").cloned().unwrap_or_default(),
                    );
                    line.insert("at".to_owned(), json!(at));
                    line.insert("saw".to_owned(), json!("event"));
                }
                line
            }
            Item::Delta(delta) => {
                testbed.deltas.fetch_add(1, Ordering::Relaxed);
                json!({"at": at, "saw": "delta", "request": delta.request,
                                         "text": delta.text, "type": "text"})
            }
            Item::Progress(_) | Item::CaughtUp => continue,
        };
        testbed.record.line(file, &line)?;
    }
}
