//! The fake model: a real HTTP server on loopback that has the four formats and is as strict as the real servers. The
//! prompt ([`script`]) or a file ([`scenario`]) determines its answers. The [`crate::oracle`] of the format checks every
//! request, and the server records it. `agentd-fake-model` is the same server as a program, for tests that kill all
//! other processes.

mod bound;
mod outgoing;
mod record;
pub mod reply;
pub mod scenario;
pub mod script;
mod serve;
mod view;

pub use scenario::Scenario;

use crate::oracle::{self, Verdict, Violation};
use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A format, which the path of a request determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Anthropic,
    OpenaiChat,
    OpenaiResponses,
    Gemini,
}

impl Format {
    /// The name in records and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic_messages",
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiResponses => "openai_responses",
            Self::Gemini => "gemini",
        }
    }

    fn judge(self, body: &Value) -> Verdict {
        match self {
            Self::Anthropic => oracle::anthropic::check(body).and_then(|()| bound::check(body)),
            Self::OpenaiChat => oracle::openai_chat::check(body),
            Self::OpenaiResponses => oracle::openai_responses::check(body),
            Self::Gemini => oracle::gemini::check(body),
        }
    }
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub format: Format,
    /// The prompt that determined the answer.
    pub prompt: String,
    pub body: Value,
    /// The rules that it violates. If there are any, the answer was 400.
    pub violations: Vec<Violation>,
    /// The HTTP status of the answer.
    pub status: u16,
    /// When it had arrived.
    pub at: std::time::Instant,
    /// The answer was sent completely.
    pub is_finished: bool,
}

/// What the server has seen.
#[derive(Default)]
struct Seen {
    requests: Vec<Recorded>,
    /// How often each fault has happened, by prompt, reply and fault.
    faults: HashMap<(String, usize, usize), usize>,
    /// The number of clients that disconnected in the middle of a stream.
    disconnects: usize,
}

struct Shared {
    seen: Mutex<Seen>,
    /// Increases with every event, so that tests can wait for one.
    happened: watch::Sender<u64>,
    scenario: Scenario,
    record: Option<record::Record>,
    is_keyless: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.lock());
        self.happened.send_modify(|count| *count += 1);
    }
}

/// The options of a server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub scenario: Scenario,
    /// A file with a line of JSON for each request, written to disk before the answer is sent:
    /// `{"n", "format", "verdict", "status", "prompt", "body"}`.
    pub record: Option<PathBuf>,
    /// It answers without a key, as a local server does.
    pub is_keyless: bool,
}

/// A running server. Dropping it stops it.
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// None only while it is dropped.
    runtime: Option<tokio::runtime::Runtime>,
}

impl FakeModel {
    pub fn start() -> std::io::Result<Self> {
        Self::start_with(Options::default())
    }

    /// A server whose answers are in a file.
    pub fn with_scenario(path: &Path) -> std::io::Result<Self> {
        Self::start_with(Options {
            scenario: Scenario::read(path)?,
            ..Options::default()
        })
    }

    pub fn start_with(options: Options) -> std::io::Result<Self> {
        let record = options.record.as_deref().map(record::Record::open);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let shared = Arc::new(Shared {
            seen: Mutex::default(),
            happened: watch::Sender::new(0),
            scenario: options.scenario,
            record: record.transpose()?,
            is_keyless: options.is_keyless,
        });
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        runtime.spawn(serve::serve(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            runtime: Some(runtime),
        })
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL, in the form that the vendors' SDKs expect.
    pub fn base_url(&self, format: Format) -> String {
        let root = format!("http://{}", self.address);
        match format {
            Format::Anthropic | Format::Gemini => root,
            Format::OpenaiChat | Format::OpenaiResponses => format!("{root}/v1"),
        }
    }

    /// All requests so far, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().requests.clone()
    }

    /// The number of requests so far.
    pub fn count(&self) -> usize {
        self.shared.lock().requests.len()
    }

    /// The requests after the first `first` ones.
    pub fn requests_since(&self, first: usize) -> Vec<Recorded> {
        let seen = self.shared.lock();
        seen.requests.get(first..).unwrap_or_default().to_vec()
    }

    /// Requests that a real provider would have refused.
    pub fn refused(&self) -> Vec<Recorded> {
        let mut requests = self.requests();
        requests.retain(|request| !request.violations.is_empty());
        requests
    }

    pub fn disconnects(&self) -> usize {
        self.shared.lock().disconnects
    }

    /// Waits until this many requests have arrived. The deadline is for tests that would hang otherwise.
    pub fn wait_for_requests(&self, count: usize, deadline: std::time::Duration) -> bool {
        let Some(runtime) = &self.runtime else {
            return false;
        };
        runtime.block_on(async {
            let mut happened = self.shared.happened.subscribe();
            let enough = happened.wait_for(|_| self.shared.lock().requests.len() >= count);
            tokio::time::timeout(deadline, enough).await.is_ok()
        })
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
