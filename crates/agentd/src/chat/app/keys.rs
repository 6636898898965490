//! What keys do.

use super::{App, Focus, Purpose};
use crate::chat::commands;
use crate::chat::completion::{Completion, shared};
use crate::chat::effect::Effect;
use crate::chat::{picker, queue, side};
use agentd_core::event::PromptMode;
use agentd_core::spec::ApprovalMode;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A second Ctrl-C within this time leaves the chat.
const TWICE_MS: u64 = 2000;

impl App {
    pub fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        if !self.is_for_all(key) {
            if matches!(self.focus, Focus::Prompt) && self.purpose == Purpose::Prompt {
                self.typed();
            }
            match &mut self.focus {
                Focus::Prompt => self.prompt_key(key),
                Focus::Approval => self.approval_key(key),
                Focus::Queue => match self.queue.key(key) {
                    queue::Reply::Effect(effect) => self.effects.push(effect),
                    queue::Reply::Edit(queued) => {
                        let (prompt, edits) = (queued.prompt, queued.edits);
                        self.begin_purpose(Purpose::EditQueued { prompt, edits }, &queued.text);
                    }
                    queue::Reply::Leave => self.focus = Focus::Prompt,
                    queue::Reply::Nothing => {}
                },
                Focus::Side => match self.side.key(key) {
                    side::Reply::Effect(effect) => self.effects.push(effect),
                    side::Reply::Leave => self.close_side(),
                    side::Reply::Prompt => self.focus = Focus::Prompt,
                    side::Reply::Nothing => {}
                },
                Focus::Pager(pager) => {
                    if let Some(call) = pager.call
                        && self.is_for_call(call, key)
                    {
                        return self.call_page_key(key);
                    }
                    if let Focus::Pager(pager) = &mut self.focus
                        && pager.key(key)
                    {
                        self.leave_page();
                    }
                }
                Focus::Picker(picker) => match picker.key(key) {
                    picker::Reply::Chosen(Effect::ChooseParts(to)) => self.choose_parts(&to),
                    picker::Reply::Chosen(effect) => {
                        self.focus = Focus::Prompt;
                        self.effects.push(effect);
                    }
                    picker::Reply::Leave => self.leave_page(),
                    picker::Reply::Nothing => {}
                },
            }
        }
    }

    pub fn paste(&mut self, text: &str) {
        self.typed();
        if !matches!(self.focus, Focus::Prompt) {
            self.focus = Focus::Prompt;
        }
        match &self.composer.search {
            Some(search) => {
                let words = format!("{}{}", search.words, text.trim());
                self.composer.search_for(words);
            }
            None => self.composer.paste(text),
        }
        self.complete_command();
    }

    /// Keys that mean the same everywhere. Returns whether it was one.
    fn is_for_all(&mut self, key: KeyEvent) -> bool {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        let covers = matches!(self.focus, Focus::Pager(_) | Focus::Picker(_));
        let in_queue = matches!(self.focus, Focus::Queue);
        match key.code {
            KeyCode::Char('c') if ctrl => self.ctrl_c(),
            KeyCode::Char('d') if ctrl && self.composer.is_empty() => {
                self.effects.push(Effect::Quit);
            }
            KeyCode::Char('l') if ctrl => self.effects.push(Effect::Redraw),
            KeyCode::BackTab => self.next_mode(),
            KeyCode::F(1) => self.show_help(),
            KeyCode::Char('t') if ctrl => self.toggle_side(),
            KeyCode::Char('q') if ctrl => self.toggle_queue(),
            KeyCode::Char('o') if ctrl => self.toggle_approval(),
            KeyCode::PageUp if !covers => self.scroll_up(self.page()),
            KeyCode::PageDown if !covers => self.scroll_down(self.page()),
            KeyCode::Up if shift && !covers && !in_queue => self.scroll_up(1),
            KeyCode::Down if shift && !covers && !in_queue => self.scroll_down(1),
            KeyCode::Home if ctrl && !covers => {
                let height = usize::from(self.layout.history.height);
                self.scrollback.go_to_top(height);
                self.goes_to_top = self.scrollback.oldest().is_some();
            }
            KeyCode::End if ctrl && !covers => {
                self.goes_to_top = false;
                self.scrollback.go_to_end();
            }
            _ => return false,
        }
        true
    }

    fn page(&self) -> usize {
        usize::from(self.layout.history.height)
            .saturating_sub(2)
            .max(1)
    }

    fn scroll_up(&mut self, rows: usize) {
        self.goes_to_top = false;
        let height = usize::from(self.layout.history.height);
        self.scrollback.scroll_up(rows, height);
    }

    fn scroll_down(&mut self, rows: usize) {
        self.goes_to_top = false;
        self.scrollback.scroll_down(rows);
    }

    /// Clears the prompt or interrupts the turn; the second one leaves.
    fn ctrl_c(&mut self) {
        let last = self.last_ctrl_c.replace(self.now);
        if last.is_some_and(|last| self.now.since(last) < TWICE_MS) {
            self.effects.push(Effect::Quit);
            return;
        }
        self.composer.search = None;
        self.completion = None;
        if self.purpose != Purpose::Prompt {
            self.leave_purpose();
        } else if !self.composer.is_empty() {
            let text = self.composer.take();
            self.composer.past.add(&text);
        } else if self.is_working() {
            self.effects.push(Effect::Interrupt);
        }
        self.tell("Ctrl-C again leaves the chat; the agent continues");
    }

    fn next_mode(&mut self) {
        let next = match self.approval_mode {
            ApprovalMode::OnRequest => ApprovalMode::Always,
            ApprovalMode::Always => ApprovalMode::Never,
            ApprovalMode::Never => ApprovalMode::OnRequest,
        };
        self.set_mode(next);
    }

    pub fn set_mode(&mut self, mode: ApprovalMode) {
        self.approval_mode = mode;
        self.effects.push(Effect::SetApprovalMode(mode));
    }

    /// A page or a list was closed.
    pub fn leave_page(&mut self) {
        let asks = !self.approvals.is_empty();
        let is_idle = self.composer.is_empty() && self.composer.search.is_none();
        self.focus = match asks && (is_idle || self.answers) {
            true => Focus::Approval,
            false => Focus::Prompt,
        };
    }

    fn toggle_side(&mut self) {
        match self.has_side && matches!(self.focus, Focus::Side) {
            true => self.close_side(),
            false => self.open_side(),
        }
    }

    pub fn open_side(&mut self) {
        self.has_side = true;
        self.focus = Focus::Side;
        self.wanted.tasks.again();
        self.wanted.output.again();
    }

    fn close_side(&mut self) {
        self.has_side = false;
        self.leave_page();
    }

    pub fn toggle_queue(&mut self) {
        self.focus = match self.focus {
            Focus::Queue => Focus::Prompt,
            _ if self.queue.is_empty() => {
                self.tell("no prompt is queued");
                return;
            }
            _ => Focus::Queue,
        };
    }

    pub fn prompt_key(&mut self, key: KeyEvent) {
        if self.composer.search.is_some() {
            return self.search_key(key);
        }
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Enter if alt && self.turn.is_some() => self.submit(PromptMode::Queue),
            KeyCode::Enter if alt || shift => self.composer.newline(),
            KeyCode::Enter => self.enter(),
            KeyCode::Char('j') if ctrl => self.composer.newline(),
            KeyCode::Char('u') if ctrl => self.composer.delete_to_head(),
            KeyCode::Char('z') if ctrl => self.composer.undo(),
            KeyCode::Char('r') if ctrl => self.composer.search_older(),
            KeyCode::Char('g') if ctrl => {
                self.effects.push(Effect::Edit(self.composer.text()));
            }
            KeyCode::Esc => return self.escape(),
            KeyCode::Tab => return self.tab(),
            KeyCode::Up => match &mut self.completion {
                Some(completion) => return completion.up(),
                None => self.composer.up(),
            },
            KeyCode::Down => match &mut self.completion {
                Some(completion) => return completion.down(),
                None => self.composer.down(),
            },
            _ => self.composer.key(key),
        }
        self.complete_command();
        if key.code == KeyCode::Char('/') && self.composer.text() == "/" {
            // Files and skills may have been added since.
            self.effects.push(Effect::LoadCommands);
        }
    }

    /// Shows the commands that begin like the text.
    pub fn complete_command(&mut self) {
        self.completion = None;
        let word = self.composer.word();
        let is_command = word.starts_with('/') && self.composer.is_first_word();
        if is_command && self.purpose == Purpose::Prompt {
            let items = commands::completions(&word, &self.own);
            let is_over = items.is_empty() || items.iter().any(|it| it.text.trim_end() == word);
            self.completion = (!is_over).then(|| Completion::new(items));
        }
    }

    fn enter(&mut self) {
        if let Some(chosen) = self.completion.as_ref().and_then(Completion::chosen) {
            let text = chosen.text.clone();
            self.composer.replace_word(&text);
            self.completion = None;
            return;
        }
        let mode = match self.turn {
            Some(_) => PromptMode::Steer,
            None => PromptMode::Queue,
        };
        self.submit(mode);
    }

    fn escape(&mut self) {
        if self.completion.take().is_some() {
            return;
        }
        if self.purpose != Purpose::Prompt {
            return self.leave_purpose();
        }
        let had_notice = self.notice.take().is_some();
        if self.is_working() {
            self.effects.push(Effect::Interrupt);
        } else if !had_notice {
            self.scrollback.go_to_end();
        }
    }

    /// Whether there is something to interrupt: a turn, or a command of the user.
    fn is_working(&self) -> bool {
        self.turn.is_some() || self.scrollback.view().runs_command()
    }

    fn tab(&mut self) {
        let word = self.composer.word();
        if let Some(completion) = &mut self.completion {
            let texts = completion.items.iter().map(|item| item.text.as_str());
            let certain = shared(texts);
            if certain.len() > word.len() && certain.starts_with(&word) {
                let certain = certain.to_owned();
                self.composer.replace_word(&certain);
            } else {
                completion.down();
                return;
            }
            let is_path = word.starts_with('@') || self.composer.attach_path().is_some();
            if !is_path {
                self.complete_command();
            }
        } else if let Some(typed) = self.composer.attach_path() {
            self.effects.push(Effect::LoadFiles(typed));
        } else if let Some(typed) = word.strip_prefix('@') {
            self.effects.push(Effect::LoadPaths(typed.to_owned()));
        }
    }

    fn search_key(&mut self, key: KeyEvent) {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let search = self.composer.search.clone().unwrap_or_default();
        match key.code {
            KeyCode::Char('r') if ctrl => self.composer.search_older(),
            KeyCode::Esc => self.composer.search = None,
            KeyCode::Char('g') if ctrl => self.composer.search = None,
            KeyCode::Enter | KeyCode::Tab | KeyCode::Right | KeyCode::Left => {
                self.composer.accept_search();
            }
            KeyCode::Backspace => {
                let mut words = search.words;
                words.pop();
                self.composer.search_for(words);
            }
            KeyCode::Char(c) if !ctrl => self.composer.search_for(format!("{}{c}", search.words)),
            _ => {}
        }
    }
}
