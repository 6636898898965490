//! The tool calls that wait for the user: which one is shown, and what its keys do.

use super::effect::Effect;
use crate::live::Line;
use crate::render::approval::{self, Parts};
use crate::terminal::{HEADING, QUIET};
use agentd_client::api::{Approval, Call, OnceOnly};
use agentd_core::id::ApprovalId;
use agentd_core::time::Timestamp;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Keys that were pressed before the user could have read the call are not an answer to it.
const EARLY_MS: u64 = 400;
/// The rows of the model's reason that are shown beside a long call, and the room from which on they are.
const REASON: usize = 3;
const FEW: usize = 8;

#[derive(Default)]
pub struct Approvals {
    waiting: Vec<Approval>,
    selected: usize,
    /// When the call that is shown appeared, or got the keys.
    since: Timestamp,
    /// Letters that would be an answer, but came too early or wait for a second key: they belong to the prompt if the user
    /// goes on typing.
    held: String,
    /// `a` was pressed: a second key confirms it.
    confirms: bool,
    /// The present content of the file that a call replaces.
    before: Option<(ApprovalId, String)>,
}

/// What the keys are for while a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// They answer the call.
    Answer,
    /// The same, while a page shows the whole call.
    Viewed,
    /// They write the reason why it is denied.
    Reason,
    /// They fill in the fields of a question.
    Fields,
    Elsewhere,
}

/// What a key asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Effect(Effect),
    /// The user denies the call and is asked for the reason.
    Reason {
        approval: ApprovalId,
        hash: Option<String>,
    },
    /// The user answers the question of an MCP server and is asked for its fields.
    Fields {
        approval: ApprovalId,
    },
    /// The user wants to see all of it.
    View,
    /// The call cannot be shown, so it cannot be approved here.
    Unreadable,
    /// No rule can allow the call.
    OnceOnly(OnceOnly),
    /// The key is no answer: it belongs to the prompt, after these letters.
    Type(String),
    Leave,
    Nothing,
}

impl Approvals {
    /// What waits now. Returns whether another call is shown than before.
    pub fn set(&mut self, waiting: Vec<Approval>, now: Timestamp) -> bool {
        let before = self.shown().map(|it| it.id);
        let kept = waiting.iter().position(|it| Some(it.id) == before);
        self.selected = kept.unwrap_or_default();
        self.waiting = waiting;
        let is_new = self.shown().map(|it| it.id) != before;
        if is_new {
            self.begin(now);
        }
        is_new
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn shown(&self) -> Option<&Approval> {
        self.waiting.get(self.selected)
    }

    /// The call that is shown replaces a file with this content.
    pub fn set_before(&mut self, approval: ApprovalId, text: String) {
        self.before = Some((approval, text));
    }

    fn before(&self) -> Option<&str> {
        let shown = self.shown()?.id;
        let before = self.before.as_ref().filter(|(id, _)| *id == shown);
        before.map(|(_, text)| text.as_str())
    }

    /// The keys are for the call from now on.
    pub fn begin(&mut self, now: Timestamp) {
        self.since = now;
        self.confirms = false;
        self.held.clear();
    }

    /// Whether `a` was pressed and waits for the second key.
    pub const fn confirms(&self) -> bool {
        self.confirms
    }

    pub fn key(&mut self, key: KeyEvent, now: Timestamp) -> Reply {
        let Some(shown) = self.shown() else {
            return Reply::Leave;
        };
        let is_plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let is_early = now.since(self.since) < EARLY_MS;
        let (approval, hash) = (shown.id, shown.what.as_ref().map(|call| call.hash.clone()));
        let once_only = shown.what.as_ref().and_then(Call::once_only);
        let (asks, has_fields) = (shown.question.is_some(), has_fields(shown));
        let approve = |always| match hash.clone() {
            Some(hash) => Reply::Effect(Effect::Approve {
                approval,
                hash,
                always,
            }),
            None => Reply::Unreadable,
        };
        if std::mem::take(&mut self.confirms) {
            match key.code {
                KeyCode::Enter => return approve(true),
                KeyCode::Char('a') if is_plain => return approve(true),
                KeyCode::Char(_) if is_plain => return self.types(),
                _ => self.held.clear(),
            }
            return Reply::Nothing;
        }
        match key.code {
            KeyCode::Esc => Reply::Leave,
            KeyCode::Char('v') if is_plain && self.held.is_empty() => Reply::View,
            KeyCode::Tab => {
                self.selected = (self.selected + 1) % self.waiting.len();
                self.begin(now);
                Reply::Nothing
            }
            KeyCode::Char(c @ ('y' | 'a' | 'n')) if is_early && is_plain => {
                self.held.push(c);
                Reply::Nothing
            }
            KeyCode::Char('n') if is_plain => Reply::Reason { approval, hash },
            KeyCode::Char('y') if is_plain && has_fields => Reply::Fields { approval },
            KeyCode::Char('y') if is_plain => approve(false),
            // No rule answers a question.
            KeyCode::Char('a') if is_plain && asks => self.types(),
            KeyCode::Char('a') if is_plain => match (hash.is_some(), once_only) {
                (false, _) => Reply::Unreadable,
                (true, Some(why)) => Reply::OnceOnly(why),
                (true, None) => {
                    self.held.push('a');
                    self.confirms = true;
                    Reply::Nothing
                }
            },
            KeyCode::Char(_) if is_plain => self.types(),
            _ => Reply::Nothing,
        }
    }

    fn types(&mut self) -> Reply {
        Reply::Type(std::mem::take(&mut self.held))
    }

    /// Everything that is known about the call that is shown.
    pub fn whole(&self) -> Vec<String> {
        let Some(shown) = self.shown() else {
            return Vec::new();
        };
        let parts = approval::parts(shown, self.before());
        let lines = painted(parts.heading).into_iter();
        let lines = lines.chain(parts.input).chain(parts.facts);
        lines.chain(parts.reason).collect()
    }

    /// The call that is shown, in at most so many rows, with the keys below it.
    pub fn rows(&self, width: usize, most: usize, keys: Keys) -> Vec<Line> {
        let Some(shown) = self.shown() else {
            return Vec::new();
        };
        let room = most.saturating_sub(1).max(1);
        let mut rows = match keys {
            // The page has everything else.
            Keys::Viewed => Vec::new(),
            _ => fitted(approval::parts(shown, self.before()), width, room),
        };
        rows.push(Line::painted(HEADING, self.hint(shown, keys)).truncated(width));
        rows
    }

    /// What the keys do.
    fn hint(&self, shown: &Approval, keys: Keys) -> String {
        let others = match self.waiting.len() {
            0 | 1 => String::new(),
            n => format!(" · Tab next of {n}"),
        };
        let is_once = shown
            .what
            .as_ref()
            .is_none_or(|it| it.once_only().is_some());
        let is_once = is_once || shown.question.is_some();
        let always = if is_once { "" } else { " · a always" };
        match keys {
            Keys::Answer | Keys::Viewed if self.confirms => {
                let call = shown.what.as_ref();
                let what = call.map_or_else(String::new, approval::always);
                format!("a again or Enter: allow {what} always · Esc: no rule")
            }
            Keys::Answer => format!("y yes{always} · n no · v view · Ctrl-O prompt{others}"),
            Keys::Viewed => format!("y yes{always} · n no · Esc closes the view"),
            Keys::Reason => "why not? Enter denies the call, also without a reason".to_owned(),
            Keys::Fields => "fill in the fields as name=value; Enter answers".to_owned(),
            Keys::Elsewhere => "Ctrl-O answers it".to_owned(),
        }
    }
}

/// Whether an MCP server asks for something to fill in.
fn has_fields(approval: &Approval) -> bool {
    let question = approval.question.as_ref();
    question.is_some_and(|question| !question.fields().is_empty())
}

/// The call in so many rows. Which call it is, that it leaves the sandbox, and the beginning of what would run are always
/// among them; the model's reason is left out first.
fn fitted(parts: Parts, width: usize, room: usize) -> Vec<Line> {
    let all = |lines: &[String]| -> Vec<Line> {
        let rows = lines.iter().flat_map(|line| wrapped(line, width));
        rows.collect()
    };
    let heading = painted(parts.heading);
    let (input, facts, reason) = (all(&parts.input), all(&parts.facts), all(&parts.reason));
    let total = heading.len() + input.len() + facts.len() + reason.len();
    let cut = |lines: &[String]| -> Vec<Line> {
        let rows = lines.iter().flat_map(|line| Line::of_painted(line));
        rows.map(|row| row.truncated(width)).collect()
    };
    let mut rows = cut(&heading);
    if total <= room && all(&heading).len() == rows.len() {
        rows.extend(input.into_iter().chain(facts).chain(reason));
        return rows;
    }
    // One row says how many are left out, and one shows the beginning of what would run.
    rows.truncate(room.saturating_sub(2).max(1));
    let mut left = room.saturating_sub(rows.len() + 1);
    let facts: Vec<Line> = cut(&parts.facts);
    let facts = facts.get(..facts.len().min(left.saturating_sub(1)));
    let facts = facts.unwrap_or_default();
    left -= facts.len();
    let few = if left >= FEW { REASON } else { 0 }.min(reason.len());
    let shown = input.len().min(left - few);
    let said = reason.len().min(left - shown);
    let omitted = total.saturating_sub(rows.len() + shown + facts.len() + said);
    rows.extend(input.into_iter().take(shown));
    let omitted = format!("  … {omitted} more rows: v shows them");
    rows.push(Line::painted(QUIET, omitted).truncated(width));
    rows.extend(facts.iter().cloned());
    rows.extend(reason.into_iter().take(said));
    rows.truncate(room);
    rows
}

fn painted(mut heading: Vec<String>) -> Vec<String> {
    if let Some(first) = heading.first_mut() {
        *first = format!("{HEADING}approval needed:{HEADING:#} {first}");
    }
    heading
}

/// The rows of a line. No row of the model's text looks like a line of ours.
fn wrapped(line: &str, width: usize) -> Vec<Line> {
    let none = Line::default();
    let more = match line.starts_with(approval::QUOTE) {
        true => Line::plain(approval::QUOTE),
        false => Line::plain("    "),
    };
    let rows = Line::of_painted(line).into_iter();
    rows.flat_map(|line| line.wrapped(width, &none, &more))
        .collect()
}

#[cfg(test)]
pub mod tests;
