//! A line of text with colours, and how it is fitted into a width. A line contains no line break, no tab and no control
//! sequence, whatever it is made from.

use crate::terminal::{self, Paint};
use std::fmt::{self, Display};
use unicode_width::UnicodeWidthChar as _;

/// Wrapped text keeps at least this many columns, however narrow the terminal is.
const LEAST: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub paint: Option<Paint>,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub(super) spans: Vec<Span>,
}

impl Line {
    pub fn plain(text: impl AsRef<str>) -> Self {
        Self::default().and(None, text)
    }

    pub fn painted(paint: Paint, text: impl AsRef<str>) -> Self {
        Self::default().and(Some(paint), text)
    }

    /// The lines of a text that contains our colours; text from outside in it is cleaned.
    pub fn of_painted(text: &str) -> Vec<Self> {
        let mut lines = vec![Self::default()];
        for (paint, piece) in terminal::pieces(text) {
            for (n, part) in terminal::without_controls(piece).split('\n').enumerate() {
                if n > 0 {
                    lines.push(Self::default());
                }
                if let Some(line) = lines.last_mut() {
                    line.push(paint, part);
                }
            }
        }
        lines
    }

    pub fn and(mut self, paint: Option<Paint>, text: impl AsRef<str>) -> Self {
        self.push(paint, text.as_ref());
        self
    }

    pub fn push(&mut self, paint: Option<Paint>, text: &str) {
        // Text that was cleaned before may contain control characters again: Markdown turns `&#27;` into one.
        let text = terminal::without_controls(text);
        match text.contains(['\t', '\n']) {
            true => self.add(paint, &text.replace('\t', "    ").replace('\n', " ")),
            false => self.add(paint, &text),
        }
    }

    pub fn append(&mut self, other: &Self) {
        for span in &other.spans {
            self.add(span.paint, &span.text);
        }
    }

    /// Adds text that is clean.
    fn add(&mut self, paint: Option<Paint>, text: &str) {
        match self.spans.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.paint == paint => last.text.push_str(text),
            _ => self.spans.push(Span {
                paint,
                text: text.to_owned(),
            }),
        }
    }

    fn add_cell(&mut self, cell: Cell) {
        self.add(cell.paint, cell.c.encode_utf8(&mut [0; 4]));
    }

    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The columns that it takes.
    pub fn width(&self) -> usize {
        self.cells().map(|cell| cell.width).sum()
    }

    /// Cut to a width, with an ellipsis if anything is missing.
    pub fn truncated(&self, width: usize) -> Self {
        if self.width() <= width {
            return self.clone();
        }
        let mut left = width.saturating_sub(1);
        let mut short = Self::default();
        for cell in self.cells() {
            match left.checked_sub(cell.width) {
                Some(rest) => left = rest,
                None => break,
            }
            short.add_cell(cell);
        }
        short.and(None, "…")
    }

    /// Wrapped between words. `first` precedes the first row, `more` each of the others.
    pub fn wrapped(&self, width: usize, first: &Self, more: &Self) -> Vec<Self> {
        let cells: Vec<Cell> = self.cells().collect();
        let mut rows = Vec::new();
        let mut rest = cells.as_slice();
        loop {
            let before = if rows.is_empty() { first } else { more };
            let room = width.saturating_sub(before.width()).max(LEAST);
            let (row, after) = split(rest, room);
            let mut line = before.clone();
            for cell in row {
                line.add_cell(*cell);
            }
            rows.push(line);
            rest = after;
            if rest.is_empty() {
                return rows;
            }
        }
    }

    fn cells(&self) -> impl Iterator<Item = Cell> {
        self.spans.iter().flat_map(|span| {
            span.text.chars().map(|c| Cell {
                c,
                width: columns(c),
                paint: span.paint,
            })
        })
    }
}

#[derive(Clone, Copy)]
struct Cell {
    c: char,
    width: usize,
    paint: Option<Paint>,
}

/// The columns that a character takes. A selector makes the emoji before it one column wider on many terminals; a row that
/// is narrower than counted does no harm.
fn columns(c: char) -> usize {
    match c {
        '\u{FE0F}' => 1,
        c => c.width().unwrap_or(0),
    }
}

/// The cells of one row, and those after it.
fn split(cells: &[Cell], room: usize) -> (&[Cell], &[Cell]) {
    let mut used = 0;
    let too_far = cells.iter().position(|cell| {
        used += cell.width;
        used > room
    });
    let Some(end) = too_far else {
        return (cells, &[]);
    };
    let is_space = |cell: &Cell| cell.c == ' ';
    // A space at the edge itself is dropped.
    let words = cells.get(..=end).unwrap_or_default();
    let space = words.iter().rposition(is_space).filter(|at| {
        let before = words.get(..*at).unwrap_or_default();
        before.iter().any(|cell| !is_space(cell))
    });
    let Some(space) = space else {
        // A word that is longer than the row; a row has at least one character.
        return cells.split_at(end.max(1));
    };
    let (row, rest) = cells.split_at(space);
    let row_end = row
        .iter()
        .rposition(|cell| !is_space(cell))
        .map_or(0, |n| n + 1);
    let begin = rest.iter().position(|cell| !is_space(cell));
    (
        row.get(..row_end).unwrap_or_default(),
        begin.and_then(|at| rest.get(at..)).unwrap_or_default(),
    )
}

/// With our colours.
impl Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for span in &self.spans {
            match span.paint {
                Some(paint) => write!(f, "{paint}{}{paint:#}", span.text)?,
                None => write!(f, "{}", span.text)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{BAD, CODE};

    fn texts(lines: &[Line]) -> Vec<String> {
        let text = |line: &Line| terminal::uncoloured(&line.to_string());
        lines.iter().map(text).collect()
    }

    #[test]
    fn it_wraps_between_words_and_keeps_its_colours() {
        let line = Line::plain("use ")
            .and(Some(CODE), "cargo test")
            .and(None, " to run them");
        let rows = line.wrapped(12, &Line::plain("• "), &Line::plain("  "));
        assert_eq!(texts(&rows), ["• use cargo", "  test to", "  run them"]);
        assert_eq!(rows[1].spans()[1].paint, Some(CODE));
    }

    #[test]
    fn a_word_that_is_too_long_is_split() {
        let none = Line::default();
        let rows = Line::plain("a 0123456789012 b").wrapped(10, &none, &none);
        assert_eq!(texts(&rows), ["a", "0123456789", "012 b"]);
        assert_eq!(Line::default().wrapped(10, &none, &none), [Line::default()]);
        let wide = Line::plain("漢字漢字漢字").wrapped(8, &none, &none);
        assert_eq!(texts(&wide), ["漢字漢字", "漢字"]);
    }

    #[test]
    fn it_is_cut_with_an_ellipsis() {
        let line = Line::painted(BAD, "abcdef");
        assert_eq!(
            texts(&[line.truncated(6), line.truncated(4)]),
            ["abcdef", "abc…"]
        );
        assert_eq!(Line::plain("漢字漢").truncated(4).width(), 3);
        assert_eq!(Line::plain("❤\u{FE0F}❤\u{FE0F}").truncated(3).width(), 3);
    }

    #[test]
    fn any_width_and_any_length_will_do() {
        let long = "0123 漢字e\u{301} ".repeat(100_000);
        for text in ["", " ", "漢", "\u{301}", "a b", long.as_str()] {
            let line = Line::plain(text);
            for width in [0, 1, 2, 19] {
                assert!(line.truncated(width).width() <= width.max(1));
                let (first, more) = (Line::plain("• "), Line::plain("  "));
                let rows = line.wrapped(width, &first, &more);
                assert!(rows.iter().all(|row| row.width() <= width.max(LEAST + 2)));
            }
        }
    }

    #[test]
    fn it_is_clean_whatever_it_is_made_from() {
        let line = Line::plain("a\u{1b}[2Jb\rc\u{202e}d\te\nf").and(None, format!("{BAD}g"));
        assert_eq!(line, Line::plain("abcd    e fg"));
    }

    #[test]
    fn text_with_our_colours_becomes_lines() {
        let lines = Line::of_painted(&format!("{BAD}no\nway{BAD:#} \u{1b}[2Jout"));
        assert_eq!(texts(&lines), ["no", "way out"]);
        assert_eq!(lines[1].spans()[0].paint, Some(BAD));
    }
}
