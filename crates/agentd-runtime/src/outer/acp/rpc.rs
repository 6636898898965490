//! JSON-RPC over a child's pipes: one message per line. Everything that the child sends, answers too, goes through one
//! queue, so that an answer never overtakes what was sent before it.

use agentd_core::outer::acp::Refusal;
use agentd_core::outer::has_too_many_values;
use agentd_process::task::Task;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;

/// A longer line ends the connection.
const LONGEST_LINE: u64 = 8 * 1024 * 1024;
/// How many messages wait to be handled before the child has to wait, and how many bytes they may have.
const MOST_INCOMING: usize = 4;
const INCOMING_BYTES: usize = 8 * 1024 * 1024;
/// How many messages wait for a child that does not read. One more, and it is killed.
const MOST_OUTGOING: usize = 1024;
/// How many bytes of answers with files and outputs wait for a child that does not read. The next answer waits for it.
const MOST_UNREAD: usize = 16 * 1024 * 1024;
/// The longest id of a request. The answer repeats it.
const LONGEST_ID: usize = 1024;

/// The child has closed its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// What the child sends, and the room that it takes until it is dropped.
pub struct Arrived {
    pub message: Incoming,
    _room: Option<OwnedSemaphorePermit>,
}

/// A message of the child.
pub enum Incoming {
    Answer {
        id: u64,
        answer: Result<Value, Value>,
    },
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
}

/// The process that waits for an answer.
pub enum Waiter {
    Request(oneshot::Sender<Result<Value, Value>>),
    /// The same, for a request that begins a session: its requests are served as soon as the answer has come.
    Session(oneshot::Sender<Result<Value, Value>>),
    /// No process: the answer is handled where it arrives.
    None,
}

/// A message to the child, and the room that it takes until it is written.
struct Line {
    text: String,
    _room: Option<OwnedSemaphorePermit>,
}

/// The way to the child. Clones share it.
#[derive(Clone)]
pub struct Connection {
    lines: mpsc::Sender<Line>,
    /// The room for answers that may be large, in bytes.
    unread: Arc<Semaphore>,
    /// The child, which is killed if it does not read what it is sent.
    task: Task,
    /// Writes the lines. It may wait for a process that holds the child's stdin open and does not read.
    writer: AbortHandle,
    /// By the id of the request. `None` once the child has closed its output.
    waiting: Arc<Mutex<Option<HashMap<u64, Waiter>>>>,
    next: Arc<AtomicU64>,
}

/// Connects to a child. What it sends arrives at the receiver, which is closed when its output ends.
pub fn connect(
    task: &Task,
    stdin: Sender,
    stdout: Receiver,
) -> (Connection, mpsc::Receiver<Arrived>) {
    let (lines, queue) = mpsc::channel(MOST_OUTGOING);
    let (incoming, received) = mpsc::channel(MOST_INCOMING);
    let writer = tokio::spawn(write_all(task.clone(), stdin, queue));
    let connection = Connection {
        lines,
        unread: Arc::new(Semaphore::new(MOST_UNREAD)),
        task: task.clone(),
        writer: writer.abort_handle(),
        waiting: Arc::new(Mutex::new(Some(HashMap::new()))),
        next: Arc::default(),
    };
    tokio::spawn(read_all(stdout, incoming));
    (connection, received)
}

impl Connection {
    pub fn is_open(&self) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.is_some()
    }

    /// Sends a request. `Closed` if the child has closed its output: then nothing was sent, and no answer comes.
    pub fn send(&self, method: &str, params: Value, waiter: Waiter) -> Result<(), Closed> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.as_mut().ok_or(Closed)?.insert(id, waiter);
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        Ok(())
    }

    /// Sends a request and waits for its answer, or for the end of the connection.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, Value> {
        self.ask(method, params, Waiter::Request).await
    }

    /// The same, for `session/new`.
    pub async fn new_session(&self, params: Value) -> Result<Value, Value> {
        self.ask("session/new", params, Waiter::Session).await
    }

    async fn ask(
        &self,
        method: &str,
        params: Value,
        waits: fn(oneshot::Sender<Result<Value, Value>>) -> Waiter,
    ) -> Result<Value, Value> {
        let (waiter, answered) = oneshot::channel();
        // If it is closed, the waiter is gone.
        let _closed = self.send(method, params, waits(waiter));
        let gone = || json!({"message": "the program ended before it answered"});
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    /// The waiter for the answer to a request; `None` if there is no such request.
    pub fn take_waiter(&self, id: u64) -> Option<Waiter> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.as_mut()?.remove(&id)
    }

    /// The child has closed its output: every process that waits for an answer is told, and nothing more is written.
    pub fn close(&self) {
        self.writer.abort();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        drop(waiting.take());
    }

    pub fn notify(&self, method: &str, params: Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub fn answer(&self, id: &Value, result: Value) {
        self.line(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub fn refuse(&self, id: &Value, why: &str) {
        let error = json!({"code": -32601, "message": why});
        self.line(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    /// Answers a request with an error.
    pub fn fail(&self, id: &Value, refusal: &Refusal) {
        self.line(&json!({"jsonrpc": "2.0", "id": id, "error": refusal.error()}));
    }

    /// Answers a request when the child has read what came before. The answer may be large.
    pub async fn reply(&self, id: &Value, answer: Result<Value, Refusal>) {
        let mut text = reply(id, answer);
        if text.len() > MOST_UNREAD {
            let why = "the answer is too long; ask for less of it";
            text = reply(id, Err(Refusal::failed(why)));
        }
        let size = u32::try_from(text.len()).unwrap_or(u32::MAX);
        // It is never closed.
        let room = Arc::clone(&self.unread).acquire_many_owned(size).await.ok();
        // If the child is gone, no answer is needed.
        let _gone = self.lines.send(Line { text, _room: room }).await;
    }

    fn line(&self, message: &Value) {
        let text = format!("{message}\n");
        // If the child is gone, its reader reports that.
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Line { text, _room: None }) {
            tracing::warn!("the agent's program does not read what it is sent: it is killed");
            drop(self.task.kill());
        }
    }
}

/// The line with an answer.
fn reply(id: &Value, answer: Result<Value, Refusal>) -> String {
    let mut message = Map::from_iter([
        ("jsonrpc".to_owned(), json!("2.0")),
        ("id".to_owned(), id.clone()),
    ]);
    // Not by `json!`, which would copy the answer.
    match answer {
        Ok(result) => message.insert("result".to_owned(), result),
        Err(refusal) => message.insert("error".to_owned(), refusal.error()),
    };
    format!("{}\n", Value::Object(message))
}

async fn write_all(task: Task, mut stdin: Sender, mut lines: mpsc::Receiver<Line>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(line.text.as_bytes()).await.is_err() {
            // A child that has closed its stdin would never answer.
            drop(task.kill());
            return;
        }
    }
}

async fn read_all(stdout: Receiver, incoming: mpsc::Sender<Arrived>) {
    let mut reader = BufReader::new(stdout);
    let all_room = Arc::new(Semaphore::new(INCOMING_BYTES));
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut reader).take(LONGEST_LINE);
        match limited.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => break,
            Ok(_) if line.last() != Some(&b'\n') => break,
            Ok(_) => {}
        }
        if has_too_many_values(&line) {
            tracing::warn!("the agent's program sent a message with too many values");
            break;
        }
        let bytes = u32::try_from(line.len().min(INCOMING_BYTES)).unwrap_or(u32::MAX);
        // It is never closed.
        let room = Arc::clone(&all_room).acquire_many_owned(bytes).await.ok();
        // A line that is no message, such as a log line of the program, is skipped.
        let message = serde_json::from_slice::<Value>(&line).ok();
        drop(line);
        if let Some(message) = message.and_then(read) {
            let arrived = Arrived {
                message,
                _room: room,
            };
            let _gone = incoming.send(arrived).await;
        }
    }
}

/// `None` if it is neither a request, nor a notification, nor the answer to a request of ours.
fn read(mut message: Value) -> Option<Incoming> {
    let fields = message.as_object_mut()?;
    let mut take = |name: &str| fields.remove(name).unwrap_or_default();
    let (id, params) = (take("id"), take("params"));
    if id.is_object() || id.is_array() {
        return None;
    }
    Some(match (take("method"), id.is_null()) {
        (Value::String(method), true) => Incoming::Notification { method, params },
        (Value::String(_), false) if id.as_str().is_some_and(|id| id.len() > LONGEST_ID) => {
            return None;
        }
        (Value::String(method), false) => Incoming::Request { id, method, params },
        _ => Incoming::Answer {
            id: id.as_u64()?,
            answer: match take("error") {
                Value::Null => Ok(take("result")),
                error => Err(error),
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_one_line() {
        let answered = reply(&json!("a"), Ok(json!({"content": "x\ny"})));
        let expected = json!({"jsonrpc": "2.0", "id": "a", "result": {"content": "x\ny"}});
        assert_eq!(answered, format!("{expected}\n"));
        let failed = reply(&json!(7), Err(Refusal::wrong("`path` is missing")));
        let failed: Value = serde_json::from_str(failed.trim_end()).unwrap();
        assert_eq!(
            (&failed["id"], &failed["error"]["code"]),
            (&json!(7), &json!(-32602))
        );
    }

    #[test]
    fn only_messages_of_the_protocol_are_read() {
        let long = "x".repeat(LONGEST_ID + 1);
        for message in [
            json!([1, 2]),
            json!("text"),
            json!({}),
            json!({"id": "not ours", "result": {}}),
            json!({"id": {"a": 1}, "method": "session/update"}),
            json!({"id": long, "method": "fs/read_text_file"}),
        ] {
            assert!(read(message.clone()).is_none(), "{message}");
        }
        let request = json!({"id": "900", "method": "m", "params": {}});
        assert!(matches!(read(request), Some(Incoming::Request { id, .. }) if id == "900"));
        let failed = json!({"id": 3, "error": {"code": -32000}});
        assert!(matches!(
            read(failed),
            Some(Incoming::Answer {
                id: 3,
                answer: Err(_)
            })
        ));
    }
}
