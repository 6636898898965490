//! A page of text over the history: a whole call, `/help`, `/context`.

use crate::live::Line;
use crate::render::approval::QUOTE;
use crate::terminal::uncoloured;
use agentd_core::id::ApprovalId;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

pub struct Pager {
    pub title: String,
    /// The call that it shows, which keys can answer here.
    pub call: Option<ApprovalId>,
    lines: Vec<Line>,
    rows: Vec<Line>,
    width: usize,
    /// The first row that is shown.
    top: usize,
    height: usize,
}

impl Pager {
    /// A page with lines in our colours.
    pub fn new(title: impl Into<String>, lines: &[String]) -> Self {
        let lines = lines.iter().flat_map(|line| Line::of_painted(line));
        Self {
            title: title.into(),
            call: None,
            lines: lines.collect(),
            rows: Vec::new(),
            width: 0,
            top: 0,
            height: 0,
        }
    }

    /// The page of a call that waits for approval.
    pub fn of_call(call: ApprovalId, lines: &[String]) -> Self {
        Self {
            call: Some(call),
            ..Self::new("The call that waits for approval", lines)
        }
    }

    /// Whether the key scrolls or closes the page.
    pub const fn takes(key: KeyEvent) -> bool {
        !matches!(key.code, KeyCode::Char(_))
            || matches!(
                key.code,
                KeyCode::Char('q' | 'v' | 'k' | 'j' | ' ' | 'g' | 'G')
            )
    }

    /// Fits it into a screen.
    pub fn fit(&mut self, width: usize, height: usize) {
        if width != self.width {
            let none = Line::default();
            let quote = Line::plain(QUOTE);
            let lines = self.lines.iter();
            let rows = lines.flat_map(|line| {
                let text = uncoloured(&line.to_string());
                let more = if text.starts_with(QUOTE) {
                    &quote
                } else {
                    &none
                };
                line.wrapped(width, &none, more)
            });
            self.rows = rows.collect();
            self.width = width;
        }
        self.height = height;
        self.top = self.top.min(self.last_top());
    }

    fn last_top(&self) -> usize {
        self.rows.len().saturating_sub(self.height)
    }

    pub fn shown(&self) -> &[Line] {
        let end = (self.top + self.height).min(self.rows.len());
        self.rows.get(self.top..end).unwrap_or_default()
    }

    /// Whether there are more rows below.
    pub fn has_more(&self) -> bool {
        self.top < self.last_top()
    }

    /// Returns whether the key closes the page.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let page = self.height.saturating_sub(1).max(1);
        self.top = match key.code {
            KeyCode::Esc | KeyCode::Char('q' | 'v') | KeyCode::Enter => return true,
            KeyCode::Up | KeyCode::Char('k') => self.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.top + 1,
            KeyCode::PageUp => self.top.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.top + page,
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => usize::MAX,
            _ => self.top,
        };
        self.top = self.top.min(self.last_top());
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_scrolls_within_its_text_and_closes() {
        let lines: Vec<String> = (1..=20).map(|n| format!("line {n}")).collect();
        let mut pager = Pager::new("Lines", &lines);
        pager.fit(40, 5);
        assert_eq!(pager.shown()[0], Line::plain("line 1"));
        assert!(pager.has_more());
        pager.key(KeyCode::End.into());
        assert_eq!(pager.shown()[4], Line::plain("line 20"));
        pager.key(KeyCode::Down.into());
        assert!(!pager.has_more());
        pager.key(KeyCode::PageUp.into());
        assert_eq!(pager.shown()[0], Line::plain("line 12"));
        pager.fit(40, 30);
        assert_eq!(pager.shown().len(), 20);
        assert!(pager.key(KeyCode::Esc.into()));
    }
}
