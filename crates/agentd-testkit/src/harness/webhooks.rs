//! A service on loopback that receives webhooks. It records every request, and is down, slow or broken on demand.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a connection may say nothing.
const SILENCE: Duration = Duration::from_secs(30);
const BLOCK: usize = 64;

/// What it does with a request, after it has recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Status(u16),
    /// After a delay.
    Slowly(Duration, u16),
    /// Closes the connection without an answer: the sender cannot know whether the message arrived.
    Close,
    Redirect(String),
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Received {
    /// In lower case.
    pub headers: BTreeMap<String, String>,
    pub raw: String,
    pub body: Value,
    /// Whether it was answered with success.
    pub accepted: bool,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn id(&self) -> &str {
        self.header("webhook-id")
    }

    pub fn kind(&self) -> &str {
        self.body["type"].as_str().unwrap_or_default()
    }
}

#[derive(Default)]
struct Shared {
    received: Mutex<Vec<Received>>,
    /// What it does with the next requests; after these it accepts them.
    replies: Mutex<VecDeque<Reply>>,
    is_over: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The service. It ends when it is dropped.
pub struct Webhooks {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Webhooks {
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if of_thread.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&of_thread)) else {
                    continue;
                };
                // A sender that goes away in mid-request is no fault of this service.
                std::thread::spawn(move || drop(serve(&stream, &shared)));
            }
        });
        Ok(Self {
            address,
            shared,
            thread: Some(thread),
        })
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// What it does with the next requests.
    pub fn then(&self, replies: impl IntoIterator<Item = Reply>) {
        lock(&self.shared.replies).extend(replies);
    }

    /// It accepts every request from now on.
    pub fn works_again(&self) {
        lock(&self.shared.replies).clear();
    }

    /// All requests so far, in the order of their arrival.
    pub fn received(&self) -> Vec<Received> {
        lock(&self.shared.received).clone()
    }

    /// The messages that were accepted: each id once, in the order in which they were accepted first.
    pub fn accepted(&self) -> Vec<Received> {
        let mut once: Vec<Received> = Vec::new();
        for received in self.received() {
            if received.accepted && !once.iter().any(|known| known.id() == received.id()) {
                once.push(received);
            }
        }
        once
    }
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread.
        let _woken = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// One request of a connection.
fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENCE))?;
    let mut reader = BufReader::new(stream);
    let mut headers = BTreeMap::new();
    let mut line = String::new();
    reader.read_line(&mut line)?;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|it| it.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let raw = String::from_utf8_lossy(&body).into_owned();
    let reply = lock(&shared.replies).pop_front();
    let reply = reply.unwrap_or(Reply::Status(200));
    let status = match &reply {
        Reply::Status(status) | Reply::Slowly(_, status) => Some(*status),
        Reply::Redirect(_) => Some(307),
        Reply::Close => None,
    };
    lock(&shared.received).push(Received {
        body: serde_json::from_str(&raw).unwrap_or_default(),
        headers,
        raw,
        accepted: status.is_some_and(|status| (200..300).contains(&status)),
    });
    if let Reply::Slowly(delay, _) = &reply {
        std::thread::sleep(*delay);
    }
    let Some(status) = status else {
        return Ok(());
    };
    let location = match &reply {
        Reply::Redirect(to) => format!("location: {to}\r\n"),
        _ => String::new(),
    };
    let answer =
        format!("HTTP/1.1 {status} x\r\n{location}content-length: 0\r\nconnection: close\r\n\r\n");
    let mut stream = stream;
    stream.write_all(answer.as_bytes())
}

/// Whether a message was signed with this secret (`whsec_…`). Written from the specification, without the product's code.
pub fn is_signed(received: &Received, secret: &str) -> bool {
    let key = secret.strip_prefix("whsec_").unwrap_or_default();
    let Ok(key) = STANDARD.decode(key) else {
        return false;
    };
    let (id, at) = (received.id(), received.header("webhook-timestamp"));
    let mac = hmac_sha256(&key, format!("{id}.{at}.{}", received.raw).as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac));
    let mut signatures = received.header("webhook-signature").split(' ');
    signatures.any(|signature| signature == expected)
}

/// RFC 2104, for keys of at most one block.
fn hmac_sha256(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut padded = [0; BLOCK];
    for (to, from) in padded.iter_mut().zip(key) {
        *to = *from;
    }
    let pad = |with: u8| padded.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text);
    let outer = Sha256::new().chain_update(pad(0x5c));
    outer.chain_update(inner.finalize()).finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(signature: &str) -> Received {
        let headers = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", signature),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Received {
            headers: headers.into(),
            raw: "{\"test\": 2432232314}".to_owned(),
            body: Value::Null,
            accepted: true,
        }
    }

    /// The example of the Standard Webhooks specification.
    #[test]
    fn a_signature_is_checked_as_the_specification_says() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let good = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert!(is_signed(&message(good), secret));
        assert!(!is_signed(&message("v1,AAAA"), secret));
        assert!(!is_signed(
            &message(good),
            "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        ));
    }
}
