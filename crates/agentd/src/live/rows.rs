//! The rows at the bottom of a terminal that are drawn again and again. Pure: it computes what is written.

use super::line::Line;

/// How a terminal is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It cannot move its cursor: finished lines only.
    Dumb,
    /// It keeps rows as they are when its width changes.
    Fixed,
    /// When it becomes narrower, it breaks long rows into several.
    Reflows,
}

impl Kind {
    /// By the environment. A terminal that says nothing about itself is taken for a dumb one.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let term = variable("TERM").unwrap_or_default();
        let is_fixed = ["linux", "screen", "vt"]
            .iter()
            .any(|it| term.starts_with(it));
        match term.as_str() {
            "" | "dumb" => Self::Dumb,
            _ if variable("TMUX").is_some() => Self::Reflows,
            _ if is_fixed || variable("XTERM_VERSION").is_some() => Self::Fixed,
            _ => Self::Reflows,
        }
    }
}

/// What is written, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text, which is cleaned before it is written.
    Text(String),
    /// Our own control sequence.
    Control(String),
}

/// The rows that are at the bottom now.
pub struct Rows {
    kind: Kind,
    drawn: Vec<Line>,
    width: usize,
    /// A question was asked since: the cursor may stand behind it.
    was_asked: bool,
}

impl Rows {
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            drawn: Vec::new(),
            width: 0,
            was_asked: false,
        }
    }

    /// The user is asked something below the rows, which were erased before. Where the cursor stands afterwards is not
    /// known: an answer that was typed before the question ends no line behind it.
    pub const fn ask(&mut self) {
        self.was_asked = true;
    }

    /// Appends finished lines and draws the rows below them. The cursor stays at the end of the last row.
    pub fn draw(&mut self, finished: &[Line], rows: Vec<Line>, width: usize) -> Vec<Piece> {
        let rows = match self.kind {
            Kind::Dumb => Vec::new(),
            _ => rows,
        };
        if finished.is_empty() && rows == self.drawn && width == self.width {
            return Vec::new();
        }
        let mut pieces: Vec<Piece> = self.erase(width).into_iter().collect();
        if std::mem::take(&mut self.was_asked) && self.kind != Kind::Dumb {
            pieces.push(Piece::Control("\r\x1b[J".to_owned()));
        }
        let lines = finished.iter().map(|line| format!("{line}\n"));
        pieces.extend(lines.map(Piece::Text));
        let texts: Vec<String> = rows.iter().map(ToString::to_string).collect();
        if !texts.is_empty() {
            // A row that the terminal draws wider than it is counted must not take a second row: it could not be erased.
            pieces.push(Piece::Control("\x1b[?7l".to_owned()));
            pieces.push(Piece::Text(texts.join("\n")));
            pieces.push(Piece::Control("\x1b[?7h".to_owned()));
        }
        (self.drawn, self.width) = (rows, width);
        pieces
    }

    /// Moves to the beginning of the first row and erases everything from there on.
    fn erase(&self, width: usize) -> Option<Piece> {
        if self.drawn.is_empty() {
            return None;
        }
        let height = |row: &Line| match self.kind {
            // The terminal has one column more than a row may take.
            Kind::Reflows if width < self.width => row.width().div_ceil(width + 1).max(1),
            _ => 1,
        };
        let above = self.drawn.iter().map(height).sum::<usize>() - 1;
        let up = match above {
            0 => String::new(),
            above => format!("\x1b[{above}A"),
        };
        Some(Piece::Control(format!("\r{up}\x1b[J")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(vars: &[(&str, &str)]) -> Kind {
        Kind::of(|name| {
            let found = vars.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn rows(texts: &[&str]) -> Vec<Line> {
        texts.iter().map(Line::plain).collect()
    }

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    /// Rows at the bottom.
    fn fixed(texts: &str) -> [Piece; 3] {
        [control("\x1b[?7l"), text(texts), control("\x1b[?7h")]
    }

    fn control(text: &str) -> Piece {
        Piece::Control(text.to_owned())
    }

    #[test]
    fn after_a_question_the_rows_begin_at_the_left() {
        let mut all = Rows::new(Kind::Fixed);
        all.draw(&[], rows(&["working"]), 80);
        all.draw(&[], Vec::new(), 80);
        all.ask();
        let [mark, text, end] = fixed("working");
        let expected = [control("\r\x1b[J"), mark, text, end];
        assert_eq!(all.draw(&[], rows(&["working"]), 80), expected);
        // Once only.
        let drawn = all.draw(&[], rows(&["done"]), 80);
        assert_eq!(drawn[0], control("\r\x1b[J"));
        assert_eq!(drawn.len(), 4);
    }

    #[test]
    fn the_kind_is_that_of_the_environment() {
        assert_eq!(kind(&[]), Kind::Dumb);
        assert_eq!(kind(&[("TERM", "dumb")]), Kind::Dumb);
        assert_eq!(kind(&[("TERM", "xterm-256color")]), Kind::Reflows);
        assert_eq!(kind(&[("TERM", "vt100")]), Kind::Fixed);
        assert_eq!(
            kind(&[("TERM", "xterm"), ("XTERM_VERSION", "X")]),
            Kind::Fixed
        );
        assert_eq!(kind(&[("TERM", "screen"), ("TMUX", "/x")]), Kind::Reflows);
    }

    #[test]
    fn rows_are_replaced_and_lines_stay() {
        let mut bottom = Rows::new(Kind::Fixed);
        let first = bottom.draw(&[], rows(&["a", "b"]), 20);
        assert_eq!(first, fixed("a\nb"));
        assert_eq!(bottom.draw(&[], rows(&["a", "b"]), 20), []);
        let second = bottom.draw(&rows(&["line"]), rows(&["c"]), 20);
        let [before, row, after] = fixed("c");
        let erased = control("\r\x1b[1A\x1b[J");
        assert_eq!(second, [erased, text("line\n"), before, row, after]);
        assert_eq!(bottom.draw(&[], Vec::new(), 20), [control("\r\x1b[J")]);
        assert_eq!(bottom.draw(&[], Vec::new(), 20), []);
    }

    #[test]
    fn rows_that_were_broken_by_a_narrower_terminal_are_all_erased() {
        let mut bottom = Rows::new(Kind::Reflows);
        bottom.draw(&[], rows(&["0123456789", "b"]), 20);
        let drawn = bottom.draw(&[], rows(&["b"]), 3);
        assert_eq!(drawn[0], control("\r\x1b[3A\x1b[J"));
        // A row that just fits is not broken.
        bottom.draw(&[], rows(&["0123456789"]), 20);
        let drawn = bottom.draw(&[], rows(&["b"]), 9);
        assert_eq!(drawn[0], control("\r\x1b[J"));
        let mut other = Rows::new(Kind::Fixed);
        other.draw(&[], rows(&["0123456789", "b"]), 20);
        let drawn = other.draw(&[], rows(&["b"]), 3);
        assert_eq!(drawn[0], control("\r\x1b[1A\x1b[J"));
    }

    #[test]
    fn a_dumb_terminal_gets_no_control_sequence() {
        let mut bottom = Rows::new(Kind::Dumb);
        assert_eq!(bottom.draw(&[], rows(&["status"]), 20), []);
        let drawn = bottom.draw(&rows(&["line"]), rows(&["status"]), 20);
        assert_eq!(drawn, [text("line\n")]);
    }
}
