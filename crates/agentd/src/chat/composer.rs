//! The prompt line: several lines of text, the prompts that were sent before, and long texts that were pasted.

mod typed;
mod unsent;
mod word;

use super::past::Past;
use crate::live::Line;
use crate::render::count;
use crate::terminal::without_controls;
use ratatui::crossterm::event::KeyEvent;
use ratatui::style::{Modifier, Style};
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use typed::Untyped;

/// A longer text is shown as a marker: nothing waits for it, and it can be edited in the editor.
const LONG_BYTES: usize = 4000;
const LONG_LINES: usize = 40;

pub struct Composer {
    area: TextArea<'static>,
    /// The texts that the markers stand for.
    pastes: Vec<String>,
    untyped: Untyped,
    pub past: Past,
    /// A search through the prompts that were sent before.
    pub search: Option<Search>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    pub words: String,
    /// How far back the prompt is, and its text.
    pub found: Option<(usize, String)>,
}

impl Default for Composer {
    fn default() -> Self {
        Self {
            area: area(),
            pastes: Vec::new(),
            untyped: Untyped::default(),
            past: Past::default(),
            search: None,
        }
    }
}

fn area() -> TextArea<'static> {
    let mut area = TextArea::default();
    // The cursor is the terminal's own.
    area.set_cursor_style(Style::default());
    area.set_cursor_line_style(Style::default());
    area.set_selection_style(Style::default().add_modifier(Modifier::REVERSED));
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area
}

impl Composer {
    pub const fn area(&self) -> &TextArea<'static> {
        &self.area
    }

    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    pub fn begins_with(&self, character: char) -> bool {
        let first = self.area.lines().first();
        first.is_some_and(|line| line.starts_with(character))
    }

    /// The whole text, with what was pasted.
    pub fn text(&self) -> String {
        let shown = self.area.lines().join("\n");
        if self.pastes.is_empty() {
            return shown;
        }
        let markers = (1..).zip(&self.pastes);
        let markers: Vec<String> = markers.map(|(n, text)| marker(n, text)).collect();
        let mut text = String::new();
        let mut rest = shown.as_str();
        while let Some(at) = rest.find('[') {
            let (before, marked) = rest.split_at(at);
            text.push_str(before);
            let known = markers.iter().zip(&self.pastes);
            let mut known = known.filter(|(marker, _)| marked.starts_with(marker.as_str()));
            let length = match known.next() {
                Some((marker, paste)) => {
                    text.push_str(paste);
                    marker.len()
                }
                None => {
                    text.push('[');
                    1
                }
            };
            rest = marked.get(length..).unwrap_or_default();
        }
        text + rest
    }

    /// The part of a text that the user typed, as far as `@path` words are concerned.
    pub fn typed(&self, text: String) -> String {
        self.untyped.typed(text)
    }

    /// A prompt is sent of which the user typed only a part: if its text comes back, this is still known.
    pub fn sends(&mut self, text: &str, typed: &str) {
        self.untyped.expanded(text, typed);
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.replace("");
        self.past.leave();
    }

    pub fn take(&mut self) -> String {
        let text = self.text();
        self.clear();
        text
    }

    /// Replaces the text; the cursor is at its end.
    pub fn set(&mut self, text: &str) {
        self.replace(text);
        self.insert(text);
    }

    /// The same with a text that the user has edited elsewhere.
    pub fn set_edited(&mut self, text: &str) {
        let old = self.text();
        self.untyped.edited(&old, text);
        self.area = area();
        self.pastes.clear();
        self.insert(text);
    }

    fn replace(&mut self, new: &str) {
        let mut untyped = std::mem::take(&mut self.untyped);
        untyped.replaced(|| self.text(), new);
        self.untyped = untyped;
        self.area = area();
        self.pastes.clear();
    }

    /// Inserts a text at the cursor.
    pub fn insert(&mut self, text: &str) {
        let is_long = text.len() > LONG_BYTES || text.lines().count() > LONG_LINES;
        match is_long {
            true => {
                self.pastes.push(text.to_owned());
                let marker = marker(self.pastes.len(), text);
                self.area.insert_str(marker);
            }
            false => {
                self.area.insert_str(text);
            }
        }
    }

    /// Inserts a text that was pasted. A terminal sends its line breaks as carriage returns.
    pub fn paste(&mut self, text: &str) {
        self.past.leave();
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text = without_controls(&text);
        self.untyped.pasted(&text);
        self.insert(&text);
    }

    pub fn newline(&mut self) {
        self.area.insert_newline();
    }

    pub fn key(&mut self, key: KeyEvent) {
        if self.area.input(key) {
            self.past.leave();
        }
    }

    pub fn delete_to_head(&mut self) {
        self.area.delete_line_by_head();
    }

    pub fn undo(&mut self) {
        self.area.undo();
    }

    /// One row up; at the first row, the prompt before this one.
    pub fn up(&mut self) {
        if self.moves(CursorMove::Up) {
            return;
        }
        let typed = self.text();
        let older = self.past.older(|| typed).map(str::to_owned);
        if let Some(older) = older {
            self.set(&older);
        }
    }

    /// One row down; at the last row, the prompt after this one.
    pub fn down(&mut self) {
        if self.moves(CursorMove::Down) {
            return;
        }
        if let Some(newer) = self.past.newer().map(str::to_owned) {
            self.set(&newer);
        }
    }

    /// Whether the cursor is in another row after a move.
    fn moves(&mut self, to: CursorMove) -> bool {
        let before = self.area.screen_cursor().row;
        self.area.move_cursor(to);
        self.area.screen_cursor().row != before
    }

    /// The rows that it needs at a width, at most this many.
    pub fn height(&self, width: usize, most: usize) -> usize {
        let none = Line::default();
        let mut rows = 0;
        for line in self.area.lines() {
            rows += Line::plain(line).wrapped(width, &none, &none).len();
            if rows >= most {
                break;
            }
        }
        let cursor = self.area.screen_cursor().row + 1;
        rows.max(cursor).clamp(1, most.max(1))
    }

    /// The word that ends at the cursor, or the path of `/attach`.
    pub fn word(&self) -> String {
        let (row, column) = self.position();
        let line = self.area.lines().get(row).map(String::as_str);
        let last = || word::before(line.unwrap_or_default(), column).to_owned();
        self.attach_path().unwrap_or_else(last)
    }

    /// The path of `/attach` that ends at the cursor.
    pub fn attach_path(&self) -> Option<String> {
        let (row, column) = self.position();
        let line = self.area.lines().first().filter(|_| row == 0)?;
        word::attach_path(line, column).map(str::to_owned)
    }

    /// The row and the column of the cursor, in characters.
    fn position(&self) -> (usize, usize) {
        let cursor = self.area.cursor();
        (cursor.0, cursor.1)
    }

    /// Whether the word at the cursor is the first one of the text.
    pub fn is_first_word(&self) -> bool {
        let (row, column) = self.position();
        row == 0 && self.word().chars().count() == column
    }

    /// Puts a text in the place of the word at the cursor.
    pub fn replace_word(&mut self, text: &str) {
        for _ in self.word().chars() {
            self.area.delete_char();
        }
        self.area.insert_str(text);
    }

    /// Begins or continues a search through the prompts that were sent before.
    pub fn search_older(&mut self) {
        let Some(search) = &self.search else {
            self.search = Some(Search::default());
            return;
        };
        let next = search.found.as_ref().map_or(1, |(back, _)| back + 1);
        if let Some((back, prompt)) = self.past.find(&search.words, next) {
            let (words, prompt) = (search.words.clone(), prompt.to_owned());
            let found = Some((back, prompt));
            self.search = Some(Search { words, found });
        }
    }

    /// Searches for other words.
    pub fn search_for(&mut self, words: String) {
        let found = match words.is_empty() {
            true => None,
            false => self.past.find(&words, 1),
        };
        let found = found.map(|(back, prompt)| (back, prompt.to_owned()));
        self.search = Some(Search { words, found });
    }

    /// Ends the search with what it has found.
    pub fn accept_search(&mut self) {
        if let Some(Search {
            found: Some((_, prompt)),
            ..
        }) = self.search.take()
        {
            self.set(&prompt);
        }
    }
}

fn marker(number: usize, text: &str) -> String {
    let lines = count(text.lines().count() as u64, "line");
    format!("[pasted text {number}: {lines}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Composer {
        let mut composer = Composer::default();
        composer.insert(text);
        composer
    }

    #[test]
    fn a_long_paste_is_a_marker_and_is_sent_whole() {
        let mut composer = typed("Look: ");
        let long = "0123456789\r\n".repeat(100_000);
        composer.paste(&long);
        composer.insert(" [1] and ");
        composer.paste("short\rone\u{1b}[2J");
        let shown = composer.area().lines().join("\n");
        let expected = "Look: [pasted text 1: 100000 lines] [1] and short\none";
        assert_eq!(shown, expected);
        let text = composer.take();
        assert!(text.starts_with("Look: 0123456789\n0123"), "{}", text.len());
        assert!(text.ends_with("9\n [1] and short\none"));
        assert!(composer.is_empty());
        assert_eq!(composer.text(), "");
    }

    #[test]
    fn a_pasted_text_that_looks_like_a_marker_is_not_expanded() {
        let mut composer = Composer::default();
        composer.paste(&"[pasted text 2: 50 lines]\n".repeat(50));
        composer.paste(&"b\n".repeat(50));
        assert_eq!(composer.text().matches("pasted text 2").count(), 50);
        assert!(composer.text().ends_with("b\nb\n"));
    }

    #[test]
    fn the_edges_lead_to_earlier_prompts() {
        let mut composer = typed("one\ntwo");
        composer.past.add("earlier");
        composer.up();
        assert_eq!(composer.text(), "one\ntwo");
        composer.up();
        assert_eq!(composer.text(), "earlier");
        composer.down();
        assert_eq!(composer.text(), "one\ntwo");
        composer.down();
        assert_eq!(composer.text(), "one\ntwo");
    }

    #[test]
    fn the_word_at_the_cursor_is_completed() {
        let mut composer = typed("see @src/li");
        assert_eq!(composer.word(), "@src/li");
        assert!(!composer.is_first_word());
        composer.replace_word("@src/lib.rs ");
        assert_eq!(composer.text(), "see @src/lib.rs ");
        assert_eq!(composer.word(), "");
        assert!(typed("/re").is_first_word());
    }

    #[test]
    fn a_search_is_accepted_or_left() {
        let mut composer = typed("draft");
        for prompt in ["fix the tests", "build", "fix the docs"] {
            composer.past.add(prompt);
        }
        composer.search_older();
        composer.search_for("fix".to_owned());
        composer.search_older();
        let found = composer.search.clone().unwrap().found.unwrap();
        assert_eq!(found, (3, "fix the tests".to_owned()));
        composer.search_older();
        composer.accept_search();
        assert_eq!(composer.text(), "fix the tests");
        assert_eq!(composer.search, None);
    }

    #[test]
    fn it_is_as_high_as_its_text() {
        assert_eq!(typed("").height(20, 8), 1);
        assert_eq!(typed("a\nb\nc").height(20, 8), 3);
        assert_eq!(typed(&"word ".repeat(30)).height(20, 8), 8);
    }
}
