//! A registry on loopback: files by their path, over HTTP.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest time that a client which sends nothing can delay the end of a test.
const PATIENCE: Duration = Duration::from_secs(5);

pub type Files = BTreeMap<String, Vec<u8>>;

pub struct Registry {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    files: Files,
    asked: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

impl Registry {
    /// What it serves may name its address, such as `http://127.0.0.1:1234`.
    pub fn start(files: impl FnOnce(&str) -> Files) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            files: files(&format!("http://{address}")),
            asked: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let served = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if served.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let served = Arc::clone(&served);
                std::thread::spawn(move || stream.map(|stream| served.answer(stream)));
            }
        });
        Self {
            address,
            shared,
            thread: Some(thread),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How often a path that contains this text was requested.
    pub fn count(&self, part: &str) -> usize {
        let asked = self.shared.asked.lock().unwrap();
        asked.iter().filter(|path| path.contains(part)).count()
    }
}

impl Shared {
    /// Serves one request per connection. A client that disconnects is ignored.
    fn answer(&self, stream: TcpStream) -> Option<()> {
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut lines = BufReader::new(&stream);
        let mut first = String::new();
        lines.read_line(&mut first).ok()?;
        let mut line = String::new();
        while lines.read_line(&mut line).ok()? > 2 {
            line.clear();
        }
        let path = first.split_whitespace().nth(1)?.to_owned();
        let found = self.files.get(&path);
        self.asked.lock().unwrap().push(path.clone());
        let status = if found.is_some() {
            "200 OK"
        } else {
            "404 Not Found"
        };
        let kind = if path.starts_with("/simple") {
            "text/html"
        } else if path.rsplit('/').next()?.contains('.') {
            "application/octet-stream"
        } else {
            "application/json"
        };
        let body = found.map(Vec::as_slice).unwrap_or_default();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        (&stream).write_all(head.as_bytes()).ok()?;
        (&stream).write_all(body).ok()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
