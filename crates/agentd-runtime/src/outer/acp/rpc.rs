//! JSON-RPC over a child's pipes: one message per line. Everything that the child sends, answers too, goes through one
//! queue, so that an answer never overtakes what was sent before it.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{mpsc, oneshot};

/// A longer line ends the connection.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;

/// What the child sends.
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
    /// No process: the answer is handled where it arrives.
    None,
}

/// The way to the child. Clones share it.
#[derive(Clone)]
pub struct Connection {
    lines: mpsc::UnboundedSender<String>,
    /// By the id of the request. `None` once the child has closed its output.
    waiting: Arc<Mutex<Option<HashMap<u64, Waiter>>>>,
    next: Arc<AtomicU64>,
}

/// Connects to a child. What it sends arrives at the receiver, which is closed when its output ends.
pub fn connect(stdin: Sender, stdout: Receiver) -> (Connection, mpsc::UnboundedReceiver<Incoming>) {
    let (lines, queue) = mpsc::unbounded_channel();
    let (incoming, received) = mpsc::unbounded_channel();
    let connection = Connection {
        lines,
        waiting: Arc::new(Mutex::new(Some(HashMap::new()))),
        next: Arc::default(),
    };
    tokio::spawn(write_all(stdin, queue));
    tokio::spawn(read_all(stdout, incoming));
    (connection, received)
}

impl Connection {
    pub fn is_open(&self) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.is_some()
    }

    /// Sends a request.
    pub fn send(&self, method: &str, params: Value, waiter: Waiter) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = waiting.as_mut() {
            waiting.insert(id, waiter);
            self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        }
    }

    /// Sends a request and waits for its answer, or for the end of the connection.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, Value> {
        let (waiter, answered) = oneshot::channel();
        self.send(method, params, Waiter::Request(waiter));
        let gone = || json!({"message": "the program ended before it answered"});
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    /// The waiter for the answer to a request; `None` if there is no such request.
    pub fn take_waiter(&self, id: u64) -> Option<Waiter> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.as_mut()?.remove(&id)
    }

    /// The child has closed its output: every process that waits for an answer is told.
    pub fn close(&self) {
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

    fn line(&self, message: &Value) {
        // If the child is gone, its reader reports that.
        let _gone = self.lines.send(format!("{message}\n"));
    }
}

async fn write_all(mut stdin: Sender, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_all(stdout: Receiver, incoming: mpsc::UnboundedSender<Incoming>) {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut reader).take(LONGEST_LINE);
        match limited.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => break,
            Ok(_) if line.last() != Some(&b'\n') => break,
            Ok(_) => {}
        }
        // A line that is no message, such as a log line of the program, is skipped.
        let message = serde_json::from_slice::<Value>(&line).ok();
        if let Some(message) = message.and_then(read) {
            let _gone = incoming.send(message);
        }
    }
}

/// `None` if it is neither a request, nor a notification, nor the answer to a request of ours.
fn read(mut message: Value) -> Option<Incoming> {
    let fields = message.as_object_mut()?;
    let mut take = |name: &str| fields.remove(name).unwrap_or_default();
    let (id, params) = (take("id"), take("params"));
    Some(match (take("method"), id.is_null()) {
        (Value::String(method), true) => Incoming::Notification { method, params },
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
