//! The status line: what the agent does right now, or what it waits for.

use super::tally::Tally;
use super::{Scope, View};
use crate::live::line::Line;
use crate::render::{time, word};
use crate::terminal::{CODE, QUIET, without_controls};
use agentd_core::id::TurnId;
use agentd_core::mcp::CallProgress;
use agentd_core::time::Timestamp;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_MS: i64 = 100;

impl View {
    /// The last turn that has ended.
    pub const fn ended(&self) -> Option<TurnId> {
        self.ended
    }

    /// A turn that ended before the first event.
    pub const fn set_ended(&mut self, turn: Option<TurnId>) {
        self.ended = turn;
    }

    /// Why the turn of the prompt cannot begin yet.
    pub fn set_waits(&mut self, why: Option<&str>) {
        self.waits = why.map(|why| without_controls(why).into_owned());
    }

    /// How far a call is, for the status line.
    pub fn progress(&mut self, progress: &CallProgress) {
        self.calls.progress(progress);
    }

    /// One row, which changes at least once a second. None if the agent does nothing.
    pub fn status(&self, now: Timestamp, width: usize) -> Option<Line> {
        let (what, since) = self.doing(now)?;
        let frame = now.as_millis().div_euclid(FRAME_MS).rem_euclid(10);
        let frame = usize::try_from(frame).unwrap_or_default();
        let mut line = Line::painted(CODE, SPINNER.get(frame).copied().unwrap_or("·"));
        line.push(None, " ");
        line.push(None, &what);
        let elapsed = since.map(|since| time::passing(now.since(since)));
        // The time is what shows that the program is alive: it stays even if the rest is cut.
        let elapsed = elapsed
            .map(|elapsed| format!(" · {elapsed}"))
            .unwrap_or_default();
        let room = width.saturating_sub(elapsed.chars().count());
        Some(line.truncated(room).and(Some(QUIET), elapsed))
    }

    /// What it does, and since when.
    fn doing(&self, now: Timestamp) -> Option<(String, Option<Timestamp>)> {
        let is_queued = matches!(self.options.scope, Scope::Prompt(_)) && self.own.is_none();
        let has_asked = self.turn.as_ref().is_some_and(Tally::has_requests);
        let is_another = self.turn.is_some() && (has_asked || self.request.is_some());
        match (is_queued, self.work(now)) {
            // Another turn runs first.
            (true, Some((what, since))) if is_another => {
                Some((format!("queued behind: {what}"), since))
            }
            // A turn that has just begun may be the one that answers the prompt.
            (true, work) if work.is_none() || self.turn.is_some() => {
                let waits = self.waits.clone();
                Some((waits.unwrap_or_else(|| "starting".to_owned()), None))
            }
            (_, work) => work,
        }
    }

    fn work(&self, now: Timestamp) -> Option<(String, Option<Timestamp>)> {
        if let Some(title) = self.approvals.values().next() {
            return Some((format!("waiting for your approval: {title}"), None));
        }
        if let Some(reason) = self.paused {
            let reason = word(reason).replace('_', " ");
            return Some((format!("waiting for you: {reason}"), None));
        }
        if let Some((title, since, others)) = self.calls.running() {
            let more = match others {
                0 => String::new(),
                others => format!(" and {others} more"),
            };
            return Some((format!("{title}{more}"), Some(since)));
        }
        if let Some(retry) = &self.retry {
            let left = retry.at.since(now).div_ceil(1000);
            let when = match left {
                0 => "retrying now".to_owned(),
                left => format!("retry in {left} s"),
            };
            return Some((format!("{}, {when}", retry.why), None));
        }
        if let Some(request) = &self.request {
            return Some(match (&self.thinking, request.writes_since) {
                _ if request.compacts => {
                    ("compacting the conversation".to_owned(), Some(request.sent))
                }
                (Some(thinking), _) => ("thinking…".to_owned(), Some(thinking.since)),
                (None, Some(since)) => ("writing".to_owned(), Some(since)),
                (None, None) => ("waiting for the model".to_owned(), Some(request.sent)),
            });
        }
        if let Some(turn) = &self.turn {
            return Some(("working".to_owned(), Some(turn.since)));
        }
        let (title, since, _) = self.commands.running()?;
        (self.options.scope == Scope::Agent).then_some((title, Some(since)))
    }
}
