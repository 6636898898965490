//! The tool calls that wait for the user: which one is shown, and what its keys do.

use super::effect::Effect;
use crate::live::Line;
use crate::render::approval;
use crate::terminal::{HEADING, QUIET};
use agentd_client::api::Approval;
use agentd_core::id::ApprovalId;
use agentd_core::time::Timestamp;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Keys that were pressed before the user could have read the call are not an answer to it.
const EARLY_MS: u64 = 400;

#[derive(Default)]
pub struct Approvals {
    waiting: Vec<Approval>,
    selected: usize,
    /// When the call that is shown appeared.
    since: Timestamp,
}

/// What the keys are for while a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// They answer the call.
    Answer,
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
    /// The call leaves the sandbox, which no rule can allow.
    OnceOnly,
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
            self.since = now;
        }
        is_new
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn shown(&self) -> Option<&Approval> {
        self.waiting.get(self.selected)
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
        match key.code {
            KeyCode::Esc => Reply::Leave,
            KeyCode::Char('v') if is_plain => Reply::View,
            KeyCode::Tab => {
                self.selected = (self.selected + 1) % self.waiting.len();
                self.since = now;
                Reply::Nothing
            }
            KeyCode::Char('y' | 'a' | 'n') if is_early || !is_plain => Reply::Nothing,
            KeyCode::Char('n') => Reply::Reason { approval, hash },
            KeyCode::Char('y') if has_fields(shown) => Reply::Fields { approval },
            KeyCode::Char('a') if shown.question.is_some() => Reply::Nothing,
            KeyCode::Char('a') if leaves_sandbox(shown) => Reply::OnceOnly,
            KeyCode::Char(c @ ('y' | 'a')) => match hash {
                Some(hash) => Reply::Effect(Effect::Approve {
                    approval,
                    hash,
                    always: c == 'a',
                }),
                None => Reply::Unreadable,
            },
            _ => Reply::Nothing,
        }
    }

    /// The call that is shown, in at most so many rows, with the keys below it.
    pub fn rows(&self, width: usize, most: usize, keys: Keys) -> Vec<Line> {
        let Some(shown) = self.shown() else {
            return Vec::new();
        };
        let mut rows = whole(shown, width);
        let room = most.saturating_sub(1).max(1);
        if rows.len() > room {
            // The last rows say where it runs and why approval is needed.
            let tail = (room / 2).min(4);
            let head = room.saturating_sub(tail + 1);
            let left = rows.len() - head - tail;
            let omitted = Line::painted(QUIET, format!("  … {left} more rows: v shows them"));
            rows.splice(head..head + left, [omitted]);
            rows.truncate(room);
        }
        let others = match self.waiting.len() {
            0 | 1 => String::new(),
            n => format!(" · Tab next of {n}"),
        };
        let always = match leaves_sandbox(shown) || shown.question.is_some() {
            true => "",
            false => " · a always",
        };
        let keys = match keys {
            Keys::Answer => format!("y yes{always} · n no · v view · Ctrl-O prompt{others}"),
            Keys::Reason => "why not? Enter denies the call, also without a reason".to_owned(),
            Keys::Fields => "fill in the fields as name=value; Enter answers".to_owned(),
            Keys::Elsewhere => "Ctrl-O answers it".to_owned(),
        };
        rows.push(Line::painted(HEADING, keys).truncated(width));
        rows
    }
}

/// Whether an MCP server asks for something to fill in.
fn has_fields(approval: &Approval) -> bool {
    let question = approval.question.as_ref();
    question.is_some_and(|question| !question.fields().is_empty())
}

/// Whether the call asks to leave the sandbox.
fn leaves_sandbox(approval: &Approval) -> bool {
    let call = approval.what.as_ref();
    call.is_some_and(|call| call.input.get("escalate").is_some())
}

/// Everything that is known about a call.
pub fn whole(approval: &Approval, width: usize) -> Vec<Line> {
    let lines = approval::lines(approval);
    let mut text: Vec<String> = lines;
    if let Some(first) = text.first_mut() {
        *first = format!("{HEADING}approval needed:{HEADING:#} {first}");
    }
    let none = Line::default();
    let rows = text.iter().flat_map(|line| Line::of_painted(line));
    let rows = rows.flat_map(|line| line.wrapped(width, &none, &none));
    rows.collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::terminal;
    use agentd_client::api::Call;
    use agentd_core::spec::{Network, Sandbox};
    use serde_json::json;
    use uuid::Uuid;

    pub fn approval(n: u128, command: &str) -> Approval {
        Approval {
            id: ApprovalId::new(Uuid::from_u128(n)),
            call: format!("call{n}"),
            asked_at: Timestamp::default(),
            agent: None,
            why: Some("no rule allows it".to_owned()),
            what: Some(Call {
                tool: "shell".to_owned(),
                input: json!({ "command": command }),
                cwd: Some("/work".to_owned()),
                sandbox: Sandbox::WorkspaceWrite,
                network: Network::On,
                hash: format!("hash{n}"),
            }),
            question: None,
        }
    }

    fn key(c: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)
    }

    const fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn an_answer_names_the_call_that_was_shown() {
        let mut all = Approvals::default();
        assert!(all.set(vec![approval(1, "ls"), approval(2, "rm x")], at(0)));
        let approve = |n: u128, always| {
            Reply::Effect(Effect::Approve {
                approval: ApprovalId::new(Uuid::from_u128(n)),
                hash: format!("hash{n}"),
                always,
            })
        };
        assert_eq!(all.key(key('y'), at(1000)), approve(1, false));
        assert_eq!(all.key(key('a'), at(1000)), approve(1, true));
        // The first one is answered elsewhere: the second one is shown now.
        assert!(all.set(vec![approval(2, "rm x")], at(1000)));
        assert_eq!(all.key(key('y'), at(1100)), Reply::Nothing);
        assert_eq!(all.key(key('y'), at(1500)), approve(2, false));
        assert!(!all.set(vec![approval(2, "rm x")], at(1600)));
        let reason = Reply::Reason {
            approval: ApprovalId::new(Uuid::from_u128(2)),
            hash: Some("hash2".to_owned()),
        };
        assert_eq!(all.key(key('n'), at(1600)), reason);
        all.set(Vec::new(), at(2000));
        assert_eq!(all.key(key('y'), at(9000)), Reply::Leave);
    }

    #[test]
    fn a_call_that_cannot_be_read_is_not_approved() {
        let mut all = Approvals::default();
        let unreadable = Approval {
            what: None,
            ..approval(1, "")
        };
        all.set(vec![unreadable], at(0));
        assert_eq!(all.key(key('y'), at(1000)), Reply::Unreadable);
        assert!(matches!(all.key(key('n'), at(1000)), Reply::Reason { .. }));
    }

    #[test]
    fn a_long_call_is_cut_in_the_middle() {
        let mut all = Approvals::default();
        all.set(vec![approval(1, &"echo one\n".repeat(50))], at(0));
        let rows = all.rows(60, 10, Keys::Answer);
        let text: Vec<String> = rows
            .iter()
            .map(|row| terminal::uncoloured(&row.to_string()))
            .collect();
        assert_eq!(rows.len(), 10, "{text:#?}");
        assert!(text[0].starts_with("approval needed: shell"), "{text:#?}");
        assert!(
            text.iter().any(|row| row.contains("more rows")),
            "{text:#?}"
        );
        let why = "approval needed because no rule allows it";
        assert!(text.iter().any(|row| row.contains(why)), "{text:#?}");
        assert!(text[9].starts_with("y yes"), "{text:#?}");
        for most in 0..4 {
            assert!(all.rows(20, most, Keys::Elsewhere).len() <= most.max(2));
        }
    }
}
