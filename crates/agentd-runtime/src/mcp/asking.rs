//! What the calls of a server have to say before their results: questions to the user, which are in the journal before the user
//! sees them, and progress.

use super::short;
use crate::driver::{ToolNews, ToolQuestion};
use agentd_core::id::{ApprovalId, CallId};
use agentd_core::mcp::{CallProgress, Question, QuestionReply};
use agentd_core::secrets::Secrets;
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ProgressNotificationParam,
};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

/// The largest form, and the longest URL, in bytes.
const FORM_BYTES: usize = 16 * 1024;
const URL_BYTES: usize = 2000;
/// How many questions one call may ask. Further ones are declined.
const MOST_QUESTIONS: usize = 10;
/// The longest text of a report of progress, in bytes.
const PROGRESS_BYTES: usize = 200;

/// Asks the user for one server.
#[derive(Clone)]
pub(super) struct Asker {
    server: String,
    news: mpsc::UnboundedSender<ToolNews>,
    secrets: Secrets,
    /// The calls that run.
    calls: Arc<Mutex<Vec<Call>>>,
    /// A server has one question at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
}

struct Call {
    id: CallId,
    /// How many questions it has asked.
    questions: usize,
    /// Whether one of them waits for the user.
    waits: Arc<watch::Sender<bool>>,
}

/// A call that may ask, while this exists.
pub(super) struct Running<'a> {
    asker: &'a Asker,
    call: CallId,
    waits: watch::Receiver<bool>,
}

fn declined() -> ElicitResult {
    ElicitResult::new(ElicitationAction::Decline)
}

impl Asker {
    pub fn new(server: &str, news: mpsc::UnboundedSender<ToolNews>, secrets: Secrets) -> Self {
        Self {
            server: server.to_owned(),
            news,
            secrets,
            calls: Arc::default(),
            turn: Arc::default(),
        }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn runs(&self, call: CallId) -> Running<'_> {
        let (sender, waits) = watch::channel(false);
        self.calls().push(Call {
            id: call.clone(),
            questions: 0,
            waits: Arc::new(sender),
        });
        Running {
            asker: self,
            call,
            waits,
        }
    }

    /// Asks the user, for a server that does not say which call wants to know. With none or several the question is
    /// declined: it would be withdrawn with a call that did not ask it.
    pub async fn ask_for_only_call(&self, params: ElicitRequestParams) -> ElicitResult {
        let only = match self.calls().as_slice() {
            [only] => Some(only.id.clone()),
            _ => None,
        };
        match only {
            Some(call) => self.ask(&call, params).await,
            None => declined(),
        }
    }

    /// Asks the user, for a call that runs.
    pub async fn ask(&self, call: &CallId, params: ElicitRequestParams) -> ElicitResult {
        // Not after the wait: a server may send many questions, and large ones.
        let Some(question) = self.question(params).filter(|_| self.may_ask(call)) else {
            return declined();
        };
        let _turn = self.turn.lock().await;
        let waits = self.waits_of(call);
        // The call may have ended meanwhile.
        let Some(waits) = waits else {
            return declined();
        };
        let approval = ApprovalId::new(Uuid::now_v7());
        let is_page = question.url.is_some();
        let (reply, replied) = oneshot::channel();
        let asks = ToolQuestion {
            approval,
            call: call.clone(),
            question,
            reply,
        };
        if self.news.send(ToolNews::Asks(asks)).is_err() {
            return declined();
        }
        let mut open = Open::new(approval, &self.news, waits);
        let reply = replied.await;
        open.is_over = true;
        match reply {
            // Only a form has content.
            Ok(QuestionReply::Accept(_)) if is_page => ElicitResult::new(ElicitationAction::Accept),
            Ok(QuestionReply::Accept(content)) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content))
            }
            Ok(QuestionReply::Decline) | Err(_) => declined(),
        }
    }

    /// Counts a question of this call.
    fn may_ask(&self, call: &CallId) -> bool {
        let mut calls = self.calls();
        let call = calls.iter_mut().find(|it| it.id == *call);
        call.is_some_and(|call| {
            call.questions += 1;
            call.questions <= MOST_QUESTIONS
        })
    }

    fn waits_of(&self, call: &CallId) -> Option<Arc<watch::Sender<bool>>> {
        let calls = self.calls();
        let call = calls.iter().find(|it| it.id == *call);
        call.map(|call| Arc::clone(&call.waits))
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

    /// Shows a report of a call to the clients that watch. JSON has no numbers that are not finite.
    pub fn progress(&self, call: &CallId, report: &ProgressNotificationParam) {
        if !report.progress.is_finite() {
            return;
        }
        let message = report.message.as_deref().map(|message| {
            let message = short(&self.secrets.redact(message));
            let words: Vec<&str> = message.split_whitespace().collect();
            let line = words.join(" ");
            line[..line.floor_char_boundary(PROGRESS_BYTES)].to_owned()
        });
        let progress = CallProgress {
            call: call.clone(),
            progress: report.progress,
            total: report.total.filter(|total| total.is_finite()),
            message: message.filter(|message| !message.is_empty()),
        };
        // If the driver is gone, so is the turn.
        let _gone = self.news.send(ToolNews::Progress(progress));
    }
}

impl Running<'_> {
    pub const fn call(&self) -> &CallId {
        &self.call
    }

    /// Whether a question of the call waits for the user, at each change.
    pub fn waits(&self) -> watch::Receiver<bool> {
        self.waits.clone()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut calls = self.asker.calls();
        if let Some(at) = calls.iter().rposition(|call| call.id == self.call) {
            calls.remove(at);
        }
    }
}

/// A question that waits for the user while this exists.
struct Open<'a> {
    approval: ApprovalId,
    news: &'a mpsc::UnboundedSender<ToolNews>,
    waits: Arc<watch::Sender<bool>>,
    /// It has its reply, or its call has ended.
    is_over: bool,
}

impl<'a> Open<'a> {
    fn new(
        approval: ApprovalId,
        news: &'a mpsc::UnboundedSender<ToolNews>,
        waits: Arc<watch::Sender<bool>>,
    ) -> Self {
        waits.send_replace(true);
        Self {
            approval,
            news,
            waits,
            is_over: false,
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.waits.send_replace(false);
        if !self.is_over {
            // The server does not want to know any more.
            let _gone = self.news.send(ToolNews::Withdraws(self.approval));
        }
    }
}

#[cfg(test)]
mod tests;
