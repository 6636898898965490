//! JSON-RPC over a child's pipes: one message per line.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{mpsc, oneshot};

/// A longer line ends the connection.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;

/// What the child sends by itself.
pub enum Incoming {
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

type Waiting = Mutex<Option<HashMap<u64, oneshot::Sender<Result<Value, Value>>>>>;

/// The way to the child. Clones share it.
#[derive(Clone)]
pub struct Connection {
    lines: mpsc::UnboundedSender<String>,
    /// `None` once the child has closed its output.
    waiting: Arc<Waiting>,
    next: Arc<AtomicU64>,
}

/// Connects to a child. What it sends by itself arrives at the receiver, which is closed when its output ends.
pub fn connect(stdin: Sender, stdout: Receiver) -> (Connection, mpsc::UnboundedReceiver<Incoming>) {
    let (lines, queue) = mpsc::unbounded_channel();
    let (incoming, received) = mpsc::unbounded_channel();
    let connection = Connection {
        lines,
        waiting: Arc::new(Mutex::new(Some(HashMap::new()))),
        next: Arc::default(),
    };
    tokio::spawn(write_all(stdin, queue));
    tokio::spawn(read_all(stdout, Arc::clone(&connection.waiting), incoming));
    (connection, received)
}

impl Connection {
    pub fn is_open(&self) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.is_some()
    }

    /// Sends a request. The receiver gets the answer, or an error if the connection ends first.
    pub fn send(&self, method: &str, params: Value) -> oneshot::Receiver<Result<Value, Value>> {
        let (answer, answered) = oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = waiting.as_mut() {
            waiting.insert(id, answer);
            self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        }
        answered
    }

    /// Sends a request and waits for its answer.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, Value> {
        let answer = self.send(method, params).await;
        let gone = || json!({"message": "the program ended before it answered"});
        answer.unwrap_or_else(|_| Err(gone()))
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

async fn read_all(
    stdout: Receiver,
    waiting: Arc<Waiting>,
    incoming: mpsc::UnboundedSender<Incoming>,
) {
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
        if let Ok(message) = serde_json::from_slice::<Value>(&line) {
            handle(message, &waiting, &incoming);
        }
    }
    // Everything that waits is told.
    drop(
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(),
    );
}

fn handle(mut message: Value, waiting: &Waiting, incoming: &mpsc::UnboundedSender<Incoming>) {
    let method = message["method"].as_str().map(str::to_owned);
    let params = message["params"].take();
    let id = message["id"].take();
    let incoming_message = match (method, id.is_null()) {
        (Some(method), true) => Incoming::Notification { method, params },
        (Some(method), false) => Incoming::Request { id, method, params },
        (None, _) => {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let asked = waiting.as_mut().zip(id.as_u64());
            let asked = asked.and_then(|(waiting, id)| waiting.remove(&id));
            if let Some(asked) = asked {
                let answer = match message.get("error").filter(|error| !error.is_null()) {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].take()),
                };
                let _gone = asked.send(answer);
            }
            return;
        }
    };
    let _gone = incoming.send(incoming_message);
}
