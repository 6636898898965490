//! The prompts that wait, and their keys.

use super::effect::Effect;
use super::focused::Focused;
use crate::live::Line;
use crate::render::word;
use crate::terminal::{HEADING, QUIET};
use agentd_client::api::{MovePrompt, QueuedPrompt, RemovePrompts};
use agentd_core::event::PromptMode;
use agentd_core::outbox::binding::shown_text;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Queued prompts that are shown while the queue has no keys.
const SHOWN: usize = 3;

#[derive(Default)]
pub struct Queued {
    prompts: Vec<QueuedPrompt>,
    selected: usize,
}

/// What a key asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Effect(Effect),
    Edit(QueuedPrompt),
    Leave,
    Nothing,
}

impl Queued {
    pub fn set(&mut self, prompts: Vec<QueuedPrompt>) {
        let before = self.prompts.get(self.selected).map(|it| it.prompt);
        let kept = prompts.iter().position(|it| Some(it.prompt) == before);
        let last = prompts.len().saturating_sub(1);
        self.selected = kept.unwrap_or_else(|| self.selected.min(last));
        self.prompts = prompts;
    }

    pub fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    pub fn key(&mut self, key: KeyEvent) -> Reply {
        let Some(shown) = self.prompts.get(self.selected) else {
            return Reply::Leave;
        };
        let last = self.prompts.len() - 1;
        let shifts = key.modifiers.contains(KeyModifiers::SHIFT);
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => Reply::Leave,
            KeyCode::Up if shifts => self.move_up(),
            KeyCode::Down if shifts => self.move_down(),
            KeyCode::Char('K') => self.move_up(),
            KeyCode::Char('J') => self.move_down(),
            KeyCode::Up | KeyCode::Char('k') if !is_ctrl => {
                self.selected = self.selected.saturating_sub(1);
                Reply::Nothing
            }
            KeyCode::Down | KeyCode::Char('j') if !is_ctrl => {
                self.selected = (self.selected + 1).min(last);
                Reply::Nothing
            }
            KeyCode::Enter | KeyCode::Char('e') if !is_ctrl => Reply::Edit(shown.clone()),
            KeyCode::Delete | KeyCode::Char('d' | 'x') if !is_ctrl => {
                let prompts = vec![shown.prompt.to_string()];
                Reply::Effect(Effect::RemoveQueued(RemovePrompts { prompts }))
            }
            _ => Reply::Nothing,
        }
    }

    fn id(&self, at: usize) -> Option<String> {
        self.prompts.get(at).map(|it| it.prompt.to_string())
    }

    fn move_up(&self) -> Reply {
        match (self.id(self.selected), self.selected.checked_sub(1)) {
            (Some(prompt), Some(above)) => Reply::Effect(Effect::MoveQueued(MovePrompt {
                prompt,
                first: false,
                before: self.id(above),
            })),
            _ => Reply::Nothing,
        }
    }

    fn move_down(&self) -> Reply {
        match self.id(self.selected) {
            Some(prompt) if self.selected + 1 < self.prompts.len() => {
                Reply::Effect(Effect::MoveQueued(MovePrompt {
                    prompt,
                    first: false,
                    before: self.id(self.selected + 2),
                }))
            }
            _ => Reply::Nothing,
        }
    }

    /// The rows above the prompt line; all of them if the queue has the keys.
    pub fn rows(&self, width: usize, most: usize, focused: Focused) -> Vec<Line> {
        let has_keys = focused == Focused::Yes;
        let most = if has_keys { most } else { most.min(SHOWN + 1) };
        if self.prompts.is_empty() || most == 0 {
            return Vec::new();
        }
        let room = most - 1;
        let first = match has_keys {
            true => (self.selected + 1).saturating_sub(room.max(1)),
            false => 0,
        };
        let shown = self.prompts.iter().enumerate().skip(first).take(room);
        let row = |(n, queued): (usize, &QueuedPrompt)| {
            let is_selected = has_keys && n == self.selected;
            let mark = if is_selected { "> " } else { "  " };
            let mode = match queued.mode {
                PromptMode::Queue => String::new(),
                mode => format!("({}) ", word(mode)),
            };
            let shown = shown_text(&queued.text);
            let mut text: Vec<&str> = shown.split_whitespace().take(60).collect();
            let files: Vec<String> = queued.attachments.iter().map(ToString::to_string).collect();
            text.extend(files.iter().map(String::as_str));
            let text = format!("{mark}{}. {mode}{}", queued.position, text.join(" "));
            let paint = if is_selected { HEADING } else { QUIET };
            Line::painted(paint, text).truncated(width)
        };
        let head = match has_keys {
            true => "queue: e edit · Shift-Up, Shift-Down move · d remove · Esc back".to_owned(),
            false => format!("queued: {} · Ctrl-Q changes them", self.prompts.len()),
        };
        let head = Line::painted(QUIET, head).truncated(width);
        [head].into_iter().chain(shown.map(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal;
    use agentd_core::id::PromptId;
    use agentd_core::time::Timestamp;
    use uuid::Uuid;

    fn id(n: usize) -> PromptId {
        PromptId::new(Uuid::from_u128(n as u128))
    }

    fn queued(n: usize) -> QueuedPrompt {
        QueuedPrompt {
            prompt: id(n),
            position: n,
            mode: PromptMode::Queue,
            at: Timestamp::default(),
            edits: 0,
            text: format!("prompt\n{n}"),
            attachments: Vec::new(),
        }
    }

    fn press(queue: &mut Queued, code: KeyCode, modifiers: KeyModifiers) -> Reply {
        queue.key(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn the_selected_prompt_is_moved_edited_and_removed() {
        let mut queue = Queued::default();
        queue.set((1..4).map(queued).collect());
        let none = KeyModifiers::NONE;
        press(&mut queue, KeyCode::Down, none);
        assert_eq!(
            press(&mut queue, KeyCode::Enter, none),
            Reply::Edit(queued(2))
        );
        let moved = |before: Option<usize>| {
            Reply::Effect(Effect::MoveQueued(MovePrompt {
                prompt: id(2).to_string(),
                first: false,
                before: before.map(|n| id(n).to_string()),
            }))
        };
        let shift = KeyModifiers::SHIFT;
        assert_eq!(press(&mut queue, KeyCode::Up, shift), moved(Some(1)));
        assert_eq!(press(&mut queue, KeyCode::Down, shift), moved(None));
        // The selection follows the prompt.
        queue.set([2, 1, 3].map(queued).to_vec());
        let removed = RemovePrompts {
            prompts: vec![id(2).to_string()],
        };
        let removed = Reply::Effect(Effect::RemoveQueued(removed));
        assert_eq!(press(&mut queue, KeyCode::Char('d'), none), removed);
        queue.set(Vec::new());
        assert_eq!(press(&mut queue, KeyCode::Up, none), Reply::Leave);
    }

    #[test]
    fn few_prompts_are_shown_until_the_queue_has_the_keys() {
        let mut queue = Queued::default();
        queue.set((1..9).map(queued).collect());
        let texts = |focused| -> Vec<String> {
            let rows = queue.rows(40, 7, focused);
            let text = |row: &Line| terminal::uncoloured(&row.to_string());
            rows.iter().map(text).collect()
        };
        assert_eq!(texts(Focused::No).len(), 4);
        assert_eq!(texts(Focused::Yes).len(), 7);
        assert_eq!(texts(Focused::Yes)[1], "> 1. prompt 1");
    }
}
