//! A request to the model: what its reply does, how it thinks, and what follows if it fails.

use super::{Moment, Section, View};
use crate::live::line::Line;
use crate::render::event::text_of;
use crate::render::{Detail, time, word};
use crate::terminal::{BAD, QUIET, without_controls};
use agentd_core::event::{
    FailureClass, MessageAdded, MessageStatus, Purpose, RequestEnded, RequestOutcome, RequestSent,
};
use agentd_core::message::Block;
use agentd_core::time::Timestamp;
use agentd_core::turn::backoff_ms;

/// A request that has not ended.
pub(super) struct Request {
    pub(super) id: String,
    pub(super) sent: Timestamp,
    /// Its reply is a summary, which is not shown as text.
    pub(super) compacts: bool,
    pub(super) is_shown: bool,
    pub(super) writes_since: Option<Timestamp>,
}

impl Request {
    pub(super) fn new(sent: &RequestSent, at: Timestamp, is_shown: bool) -> Self {
        Self {
            id: sent.request.to_string(),
            sent: at,
            compacts: sent.purpose == Purpose::Compact,
            is_shown,
            writes_since: None,
        }
    }
}

pub(super) struct Thinking {
    pub(super) since: Timestamp,
    pub(super) text: String,
}

impl Thinking {
    pub(super) const fn new(since: Timestamp) -> Self {
        let text = String::new();
        Self { since, text }
    }
}

/// The next attempt after a failure.
pub(super) struct Retry {
    pub(super) why: String,
    pub(super) at: Timestamp,
}

impl View {
    pub(super) fn message(&mut self, message: &MessageAdded, moment: Moment) {
        self.end_thinking_of(message, moment);
        let streamed = std::mem::take(&mut self.streamed);
        if message.status == MessageStatus::Superseded {
            let lines = self.reply.finish(moment.width);
            self.say(Section::Text, lines);
            if !streamed.is_empty() {
                let line = Line::painted(QUIET, "(the reply broke off)");
                self.say(Section::Text, vec![line]);
            }
        } else {
            let all = text_of(message);
            self.text_after(&streamed, &all, moment.width);
            if self.is_shown && !all.is_empty() {
                self.answered = Some(all);
            }
            if message.status == MessageStatus::Interrupted {
                let line = Line::painted(QUIET, "(interrupted)");
                self.say(Section::Text, vec![line]);
            }
        }
        self.end_text();
        for call in message.blocks.iter().filter_map(Block::as_call) {
            self.calls.made(call);
        }
    }

    pub(super) fn end_text(&mut self) {
        if self.is_shown && self.last == Some(Section::Text) {
            self.last = Some(Section::EndOfText);
            self.interrupted_by_others();
        }
    }

    /// Lines that do not belong to a call.
    pub(super) fn say_other(&mut self, lines: Vec<Line>) {
        if !lines.is_empty() {
            self.interrupted_by_others();
        }
        self.say(Section::Other, lines);
    }

    /// Shows the thinking that has ended.
    pub(super) fn end_thinking(&mut self, moment: Moment) {
        let Some(thinking) = self.thinking.take() else {
            return;
        };
        self.has_thought = true;
        let took = time::passing(moment.now.since(thinking.since));
        let text = [thinking.text.as_str()];
        self.thought(&format!("thinking… {took}"), &text, moment);
    }

    /// The same at the end of a reply. Thinking that did not stream is in the message.
    pub(super) fn end_thinking_of(&mut self, message: &MessageAdded, moment: Moment) {
        self.end_thinking(moment);
        let texts = message.blocks.iter().filter_map(|block| match block {
            Block::Thinking { text, .. } if !text.trim().is_empty() => Some(text.as_str()),
            _ => None,
        });
        let texts: Vec<&str> = texts.collect();
        if !self.has_thought && !texts.is_empty() {
            self.thought("thinking…", &texts, moment);
        }
    }

    fn thought(&mut self, folded: &str, texts: &[&str], moment: Moment) {
        let lines = match self.options.detail {
            Detail::Brief => vec![Line::painted(QUIET, folded)],
            Detail::Full => {
                let text = texts.join("\n");
                let text = without_controls(text.trim());
                let rows = text.lines().map(|text| Line::painted(QUIET, text));
                let none = Line::default();
                rows.flat_map(|row| row.wrapped(moment.width, &none, &none))
                    .collect()
            }
        };
        self.end_text();
        self.say(Section::Other, lines);
    }

    /// Counts what it used. A failure is a line, and a wait if it is tried again.
    pub(super) fn request_ended(&mut self, ended: &RequestEnded, at: Timestamp) -> Vec<Line> {
        let compacts = self.request.take().is_some_and(|request| request.compacts);
        if let Some(tally) = &mut self.turn {
            tally.add(ended, compacts);
        }
        let RequestOutcome::Failed {
            class,
            status,
            retry_after_ms,
        } = ended.outcome
        else {
            if ended.outcome == RequestOutcome::Completed {
                self.failures = 0;
            }
            return Vec::new();
        };
        self.failures = self.failures.saturating_add(1);
        let why = failure(class, status);
        if class.is_transient() {
            let wait = backoff_ms(self.failures, retry_after_ms);
            self.retry = Some(Retry {
                why: why.clone(),
                at: at.plus(wait),
            });
        }
        vec![Line::painted(BAD, why)]
    }
}

/// `HTTP 529: overloaded`.
fn failure(class: FailureClass, status: Option<u16>) -> String {
    match (status, class) {
        (Some(status), class) => format!("HTTP {status}: {}", word(class).replace('_', " ")),
        (None, FailureClass::Unreachable) => "no connection to the provider".to_owned(),
        (None, FailureClass::Dropped) => "the connection to the provider broke".to_owned(),
        (None, class) => format!("request failed: {}", word(class).replace('_', " ")),
    }
}
