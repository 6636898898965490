//! The output of a command: text, or JSON lines. Every byte means the same however the output is divided.
//!
//! A line that is a JSON object with a `kind` is an event, as `agentd agent --json` writes them; unknown kinds are
//! skipped. Everything else is text of the answer. A NUL byte or a `turn_result` ends the answer.

mod event;

use super::{ChildEvent, Over};
use event::Events;
pub(super) use event::micro_usd;

/// A longer line is text, whatever it begins with.
const LONGEST_LINE: usize = 8 * 1024 * 1024;

/// Reads the output of one child.
#[derive(Debug, Default)]
pub struct Lines {
    /// The beginning of a line that may be an event, or of a character.
    pending: Vec<u8>,
    /// The line that is being read is text.
    in_text: bool,
    events: Events,
    /// Something was said since the last end of an answer.
    has_said: bool,
}

impl Lines {
    /// The child was given the delivery with this id. What it says about another one is late.
    pub fn expect(&mut self, delivery: &str) {
        self.events.expect(delivery);
    }

    /// The ids of the deliveries whose late answers have ended; once.
    pub fn take_late(&mut self) -> Vec<String> {
        self.events.take_late()
    }

    pub fn push(&mut self, bytes: &[u8]) -> Vec<ChildEvent> {
        let mut said = Vec::new();
        for piece in bytes.split_inclusive(|byte| matches!(byte, 0 | b'\n')) {
            let (piece, end) = match piece.split_last() {
                Some((0, rest)) => (rest, End::Answer),
                Some((b'\n', _)) => (piece, End::Line),
                _ => (piece, End::None),
            };
            self.pending.extend_from_slice(piece);
            match end {
                End::None => self.flush_text(&mut said),
                End::Line => self.line(&mut said),
                End::Answer => {
                    self.line(&mut said);
                    self.over(&mut said);
                }
            }
        }
        said
    }

    /// The output has ended: what is left is a line.
    pub fn finish(&mut self) -> Vec<ChildEvent> {
        let mut said = Vec::new();
        self.line(&mut said);
        said
    }

    /// A NUL after a `turn_result` ends nothing.
    fn over(&mut self, said: &mut Vec<ChildEvent>) {
        let is_over = self.events.take_over();
        if self.has_said || !is_over {
            said.push(ChildEvent::Over(Over::Answered));
        }
        self.has_said = false;
    }

    /// A line without its end: text is passed on at once, as far as its characters are complete.
    fn flush_text(&mut self, said: &mut Vec<ChildEvent>) {
        let begins = self.pending.iter().find(|byte| !byte.is_ascii_whitespace());
        let may_be_event = !self.in_text && begins.is_none_or(|byte| *byte == b'{');
        if may_be_event && self.pending.len() < LONGEST_LINE {
            return;
        }
        self.in_text = true;
        let complete = match std::str::from_utf8(&self.pending) {
            Ok(_) => self.pending.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.pending.len(),
        };
        let rest = self.pending.split_off(complete);
        let text = std::mem::replace(&mut self.pending, rest);
        self.text(&text, said);
    }

    fn line(&mut self, said: &mut Vec<ChildEvent>) {
        let line = std::mem::take(&mut self.pending);
        let was_text = std::mem::take(&mut self.in_text);
        if line.is_empty() {
            return;
        }
        if !was_text && let Some(more) = self.events.read(&line) {
            self.has_said |= !more.is_empty();
            if more.iter().any(|one| matches!(one, ChildEvent::Over(_))) {
                self.has_said = false;
            }
            said.extend(more);
            return;
        }
        self.text(&line, said);
    }

    fn text(&mut self, text: &[u8], said: &mut Vec<ChildEvent>) {
        if !text.is_empty() {
            self.has_said = true;
            self.events.text_follows();
            let text = String::from_utf8_lossy(text);
            // A chunk of short lines is one text.
            match said.last_mut() {
                Some(ChildEvent::Text(last)) => last.push_str(&text),
                _ => said.push(ChildEvent::Text(text.into_owned())),
            }
        }
    }
}

enum End {
    None,
    Line,
    Answer,
}
