//! Questions of a server to the user, while one of its calls runs. They are in the journal before the user sees them.

use super::short;
use crate::driver::ToolQuestion;
use agentd_core::id::CallId;
use agentd_core::mcp::{Question, QuestionReply};
use agentd_core::secrets::Secrets;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// The largest form, and the longest URL, in bytes.
const FORM_BYTES: usize = 16 * 1024;
const URL_BYTES: usize = 2000;

/// Asks the user for one server.
#[derive(Clone)]
pub(super) struct Asker {
    server: String,
    questions: mpsc::UnboundedSender<ToolQuestion>,
    secrets: Secrets,
    /// The calls that run; the newest one is the last.
    calls: Arc<Mutex<Vec<CallId>>>,
    /// Questions that wait for the user: the time of calls does not run meanwhile.
    waiting: Arc<AtomicUsize>,
    /// A call has one question at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A call that may ask, while this exists.
pub(super) struct Running<'a> {
    asker: &'a Asker,
    call: CallId,
}

impl Asker {
    pub fn new(
        server: &str,
        questions: mpsc::UnboundedSender<ToolQuestion>,
        secrets: Secrets,
    ) -> Self {
        Self {
            server: server.to_owned(),
            questions,
            secrets,
            calls: Arc::default(),
            waiting: Arc::default(),
            turn: Arc::default(),
        }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<CallId>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn runs(&self, call: CallId) -> Running<'_> {
        self.calls().push(call.clone());
        Running { asker: self, call }
    }

    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Asks the user, for the newest call that runs. A server without a running call has nothing to ask.
    pub async fn ask(&self, params: ElicitRequestParams) -> ElicitResult {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let _turn = self.turn.lock().await;
        let call = self.calls().last().cloned();
        let (Some(call), Some(question)) = (call, self.question(params)) else {
            return declined;
        };
        let (reply, replied) = oneshot::channel();
        let asks = ToolQuestion {
            call,
            question,
            reply,
        };
        if self.questions.send(asks).is_err() {
            return declined;
        }
        let waits = Waits::new(&self.waiting);
        let reply = replied.await;
        drop(waits);
        match reply {
            Ok(QuestionReply::Accept(content)) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content))
            }
            Ok(QuestionReply::Decline) | Err(_) => declined,
        }
    }

    /// The question without secrets and control characters; none if it is too large or odd.
    fn question(&self, params: ElicitRequestParams) -> Option<Question> {
        let text = |text: &str| short(&self.secrets.redact(text));
        let server = self.server.clone();
        match params {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => {
                let form = serde_json::to_value(requested_schema).ok()?;
                (form.to_string().len() <= FORM_BYTES).then(|| Question {
                    server,
                    message: text(&message),
                    form: Some(self.secrets.redact_json(form)),
                    url: None,
                })
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                let is_page = url.starts_with("https://") || url.starts_with("http://");
                (is_page && url.len() <= URL_BYTES).then(|| Question {
                    server,
                    message: text(&message),
                    form: None,
                    url: Some(text(&url)),
                })
            }
            _ => None,
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut calls = self.asker.calls();
        if let Some(at) = calls.iter().rposition(|call| *call == self.call) {
            calls.remove(at);
        }
    }
}

/// A question waits while this exists.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
