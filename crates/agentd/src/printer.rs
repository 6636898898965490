//! Prints events and answers: as JSON lines for programs, as text for people. A separate thread writes, so that a slow
//! reader does not block the caller.

use crate::output::QUIET;
use crate::render::event::text_of;
use crate::render::{Detail, call};
use crate::terminal;
use agentd_core::draft::{Change, Delta};
use agentd_core::event::{Body, Event, MessageAdded, MessageStatus};
use agentd_core::id::TryId;
use serde_json::{Value, json};
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

enum Line {
    /// For programs, on standard output.
    Json(String),
    /// For people, on standard output.
    Out(String),
    /// For people, on standard error.
    Aside(String),
    Done(mpsc::Sender<()>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Json,
    Text,
}

pub struct Printer {
    style: Style,
    lines: mpsc::Sender<Line>,
    _thread: JoinHandle<()>,
    /// The last line is not terminated.
    in_line: bool,
    /// The sender's id of the running turn, which the lines of the turn repeat.
    pub turn_id: Option<String>,
    /// The request of the streaming reply, and its text as far as it was shown.
    shown: (Option<TryId>, String),
}

impl Printer {
    pub fn new(style: Style) -> Self {
        let (lines, queue) = mpsc::channel();
        Self {
            style,
            lines,
            _thread: std::thread::spawn(move || print(&queue)),
            in_line: false,
            turn_id: None,
            shown: (None, String::new()),
        }
    }

    pub const fn is_json(&self) -> bool {
        matches!(self.style, Style::Json)
    }

    /// One object on a line, only for programs.
    pub fn object(&self, object: &Value) {
        if self.is_json() {
            self.send(Line::Json(format!("{object}\n")));
        }
    }

    /// A remark: text for people, an object for programs.
    pub fn remark(&mut self, kind: &str, text: &str) {
        if self.is_json() {
            return self.object(&json!({"kind": "remark", "remark": kind, "text": text}));
        }
        self.end_line();
        self.send(Line::Aside(format!("{QUIET}{text}{QUIET:#}\n")));
    }

    pub fn event(&mut self, event: &Event) {
        if self.is_json() {
            match serde_json::to_value(event) {
                Ok(mut line) => {
                    if event.turn.is_some() {
                        self.stamp(&mut line);
                    }
                    self.object(&line);
                }
                Err(error) => self.remark("unprintable", &error.to_string()),
            }
            return;
        }
        if let Body::MessageAdded(message) = &event.body {
            self.rest_of(message);
            self.end_line();
            self.calls(message);
        }
    }

    fn stamp(&self, line: &mut Value) {
        if let Some(id) = &self.turn_id {
            line["turn_id"] = json!(id);
        }
    }

    /// A message with tool calls, as a remark. The final answer is not shown.
    pub fn beside(&mut self, event: &Event) {
        if let Body::MessageAdded(message) = &event.body
            && message.blocks.iter().any(|block| block.as_call().is_some())
        {
            let text = text_of(message);
            if !text.trim().is_empty() {
                self.remark("message", text.trim_end());
            }
            self.calls(message);
        }
    }

    fn calls(&mut self, message: &MessageAdded) {
        for call in message.blocks.iter().filter_map(|block| block.as_call()) {
            let title = call::title(&call.name, &call.arguments.to_object(), Detail::Brief);
            self.remark("call", &format!("· {title}"));
        }
    }

    pub fn delta(&mut self, request: TryId, delta: &Delta) {
        if self.is_json() {
            let mut object = serde_json::to_value(delta).unwrap_or_default();
            object["kind"] = json!("delta");
            object["request"] = json!(request);
            self.stamp(&mut object);
            return self.object(&object);
        }
        if let Change::Text { text } = &delta.change {
            if self.shown.0 != Some(request) {
                self.shown = (Some(request), String::new());
            }
            self.shown.1.push_str(text);
            self.text(text);
        }
    }

    /// The part of the message that was not streamed yet.
    fn rest_of(&mut self, message: &MessageAdded) {
        let (request, shown) = std::mem::take(&mut self.shown);
        if message.status == MessageStatus::Superseded {
            return;
        }
        let all = text_of(message);
        let continues = request.is_none() || request == message.request;
        match all.strip_prefix(&shown) {
            Some(rest) if continues => self.text(rest),
            // The streamed text has a gap: print the whole message.
            _ => {
                self.end_line();
                self.text(&all);
            }
        }
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.in_line = !text.ends_with('\n');
            self.send(Line::Out(text.to_owned()));
        }
    }

    pub fn end_line(&mut self) {
        if std::mem::take(&mut self.in_line) {
            self.send(Line::Out("\n".to_owned()));
        }
    }

    /// Waits until everything is written, at most this long.
    pub fn finish(mut self, at_most: Duration) {
        self.end_line();
        let (done, is_done) = mpsc::channel();
        self.send(Line::Done(done));
        let _timed_out = is_done.recv_timeout(at_most);
    }

    fn send(&self, line: Line) {
        // The thread ends when the output is closed; the agent continues.
        let _closed = self.lines.send(line);
    }
}

fn print(queue: &mpsc::Receiver<Line>) {
    let (mut out, mut aside) = (terminal::stdout(), terminal::stderr());
    for line in queue {
        let written: io::Result<()> = match line {
            Line::Json(text) => out.json(&text).and_then(|()| out.flush()),
            Line::Out(text) => out.text(text).and_then(|()| out.flush()),
            Line::Aside(text) => aside.text(text).and_then(|()| aside.flush()),
            Line::Done(done) => done.send(()).map_err(io::Error::other),
        };
        if written.is_err() {
            return;
        }
    }
}
