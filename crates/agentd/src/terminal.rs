//! Output to a terminal. Most text comes from a model, a tool or an untrusted file: it must not move the cursor, set
//! the title, write to the clipboard or hide other text.
//!
//! So this module removes every control character and control sequence from all text that the program writes. Our own
//! colours survive: [`Paint`] writes noncharacters, which Unicode reserves for internal use, and this module turns them
//! into escape sequences. Text from outside that contains such a noncharacter can at worst add one of our colours.

pub mod theme;

use agentd_core::catalog::Theme;
use agentd_core::plain;
use agentd_failpoint as failpoint;
use anstream::ColorChoice;
use anstyle::{Reset, Style};
use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// One of our colours: `{GOOD}` begins it, `{GOOD:#}` ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint(char);

pub const GOOD: Paint = Paint('\u{FDD0}');
pub const BAD: Paint = Paint('\u{FDD1}');
pub const HEADING: Paint = Paint('\u{FDD2}');
pub const QUIET: Paint = Paint('\u{FDD3}');
pub const CODE: Paint = Paint('\u{FDD4}');
pub const EMPHASIS: Paint = Paint('\u{FDD5}');
pub const ADDED: Paint = Paint('\u{FDD6}');
pub const REMOVED: Paint = Paint('\u{FDD7}');
pub const KEYWORD: Paint = Paint('\u{FDD8}');
pub const LITERAL: Paint = Paint('\u{FDD9}');
const END: char = '\u{FDDF}';

/// Set by `--raw`: text is printed unchanged.
static RAW: AtomicBool = AtomicBool::new(false);

/// Disables the removal of control sequences.
pub fn keep_control_sequences() {
    RAW.store(true, Ordering::Relaxed);
}

impl Paint {
    /// How it looks.
    pub fn style(self) -> Style {
        let Self(begin) = self;
        style(begin).unwrap_or_default()
    }
}

/// Whether standard output has colours: it is a terminal, `NO_COLOR` is not set, and the theme has colours.
pub fn has_colours() -> bool {
    coloured(anstream::AutoStream::choice(&io::stdout()))
}

/// Whether one of the streams may have colours, before the theme is known.
pub fn may_have_colours() -> bool {
    let choices = [
        anstream::AutoStream::choice(&io::stdout()),
        anstream::AutoStream::choice(&io::stderr()),
    ];
    choices.iter().any(|choice| *choice != ColorChoice::Never)
}

fn coloured(choice: ColorChoice) -> bool {
    choice != ColorChoice::Never && theme::chosen() != Theme::None
}

impl Display for Paint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(begin) = self;
        write!(f, "{}", if f.alternate() { END } else { *begin })
    }
}

fn style(paint: char) -> Option<Style> {
    theme::style(paint, theme::chosen())
}

/// Standard output or standard error.
pub struct Stream {
    inner: Box<dyn Write>,
    has_colours: bool,
}

pub fn stdout() -> Stream {
    Stream::new(io::stdout(), has_colours())
}

pub fn stderr() -> Stream {
    let has_colours = coloured(anstream::AutoStream::choice(&io::stderr()));
    Stream::new(io::stderr(), has_colours)
}

impl Stream {
    pub fn new(inner: impl Write + 'static, has_colours: bool) -> Self {
        Self {
            inner: Box::new(inner),
            has_colours,
        }
    }

    /// Writes text from any source, without control sequences.
    pub fn text(&mut self, text: impl Display) -> io::Result<()> {
        let text = shown(&text.to_string(), self.has_colours);
        self.inner.write_all(text.as_bytes())
    }

    /// Writes JSON. Characters that a terminal would interpret are escaped, which does not change the parsed value.
    pub fn json(&mut self, json: &str) -> io::Result<()> {
        self.inner.write_all(escaped(json).as_bytes())
    }

    /// Writes text of our own, without any filtering.
    pub fn own(&mut self, text: &str) -> io::Result<()> {
        self.inner.write_all(text.as_bytes())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Text from outside without control sequences and without our colours, unless `--raw` keeps them. For code that has to
/// know how wide a text is; [`Stream::text`] cleans in any case.
pub fn without_controls(text: &str) -> Cow<'_, str> {
    if is_raw() || text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut kept = clean(text).into_owned();
    kept.retain(is_plain);
    Cow::Owned(kept)
}

/// Text in which every character that a reader would not see is visible as an escape. For what a user decides about: no part
/// of a command or a file name may be hidden.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_visible = |c: char| plain::is_visible(c) && !is_paint(c);
    if is_raw() || text.chars().all(is_visible) || failpoint::injected_bug("terminal_raw") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // A line break.
            '\r' if chars.peek() == Some(&'\n') => {}
            c if is_visible(c) => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// The same for sentences and contents of files: emoji, and blanks other than a space, stay as they are.
pub fn visible_prose(text: &str) -> Cow<'_, str> {
    let is_ordinary = |c: char| plain::is_visible(c) && !is_paint(c);
    if is_raw() || text.chars().all(is_ordinary) || failpoint::injected_bug("terminal_raw") {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    let shown = plain::in_prose(&text, |c, out| out.extend(c.escape_unicode()));
    let unpainted = shown.chars().flat_map(|c| match is_paint(c) {
        true => c.escape_unicode().to_string().chars().collect::<Vec<_>>(),
        false => vec![c],
    });
    Cow::Owned(unpainted.collect())
}

/// The pieces of a text by our colours, each with the colour that it has.
pub fn pieces(text: &str) -> Vec<(Option<Paint>, &str)> {
    let mut pieces = Vec::new();
    let mut paint = None;
    let mut rest = text;
    while let Some(at) = rest.find(is_paint) {
        let (piece, marked) = rest.split_at(at);
        pieces.push((paint, piece));
        let mut chars = marked.chars();
        paint = chars.next().filter(|c| style(*c).is_some()).map(Paint);
        rest = chars.as_str();
    }
    pieces.push((paint, rest));
    pieces.retain(|(_, piece)| !piece.is_empty());
    pieces
}

/// The text as a terminal with or without colours gets it.
#[cfg(test)]
pub fn seen(text: &str, has_colours: bool) -> String {
    shown(text, has_colours)
}

/// The text without our colours.
pub fn uncoloured(text: &str) -> String {
    shown(text, false)
}

/// Whether `--raw` is set.
pub fn is_raw() -> bool {
    RAW.load(Ordering::Relaxed)
}

fn shown(text: &str, has_colours: bool) -> String {
    if is_raw() || failpoint::injected_bug("terminal_raw") {
        return painted(text, has_colours);
    }
    painted(&clean(text), has_colours)
}

/// The text without anything that a terminal would interpret, except newlines, tabs and our colours.
fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| is_plain(c) || is_paint(c)) {
        return Cow::Borrowed(text);
    }
    // Complete sequences first, so that their parameters do not remain as text; then the rest of incomplete ones.
    let mut kept = anstream::adapter::strip_str(text).to_string();
    kept.retain(|c| is_plain(c) || is_paint(c));
    Cow::Owned(kept)
}

fn painted(text: &str, has_colours: bool) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match style(c) {
            _ if !is_paint(c) => out.push(c),
            Some(style) if has_colours => out.push_str(&style.render().to_string()),
            None if has_colours => out.push_str(&Reset.render().to_string()),
            _ => {}
        }
    }
    out
}

fn escaped(json: &str) -> Cow<'_, str> {
    if json.chars().all(is_plain) || failpoint::injected_bug("terminal_raw") {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match is_plain(c) {
            true => out.push(c),
            false => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string does not fail.
                    let _written = fmt::Write::write_fmt(&mut out, format_args!("\\u{unit:04x}"));
                }
            }
        }
    }
    Cow::Owned(out)
}

const fn is_paint(c: char) -> bool {
    matches!(c, '\u{FDD0}'..='\u{FDDF}')
}

/// Our markers for colours are not plain: text from outside must not contain them.
fn is_plain(c: char) -> bool {
    plain::is_plain(c) && !is_paint(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        shown(text, false)
    }

    /// Seen in other programs: a file name or a model's text set the title, wrote to the clipboard or hid a command.
    #[test]
    fn nothing_is_left_that_a_terminal_acts_on() {
        for (text, left) in [
            ("a\x1b]0;owned\x07b", "ab"),
            ("a\x1b]52;c;aGk=\x1b\\b", "ab"),
            ("a\x1b[2Jb\x1b[31mc", "abc"),
            ("a\u{202e}b\u{2066}c", "abc"),
            ("safe\rowned", "safeowned"),
            ("a\x08b\x07c\x7fd", "abcd"),
        ] {
            assert_eq!(plain(text), left, "{text:?}");
        }
        for text in [
            "a\u{9b}2Jb",
            "a\u{9d}0;owned\u{9c}b",
            "\x1bPq#0\x1b\\x",
            "\x1b",
        ] {
            let shown = plain(text);
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
        }
    }

    #[test]
    fn no_part_of_a_command_is_hidden() {
        let command = "echo ok \x1b]0; rm -rf ~ #\x07";
        assert_eq!(plain(command), "echo ok ");
        let shown = plain(&visible(command));
        assert_eq!(shown, "echo ok \\u{1b}]0; rm -rf ~ #\\u{7}");
        assert_eq!(visible("żółć\n\tb"), "żółć\n\tb");
        let command = "rm\u{a0}-rf \u{200b}~\u{3164} ⚠\u{fe0f}";
        let shown = "rm\\u{a0}-rf \\u{200b}~\\u{3164} ⚠\\u{fe0f}";
        assert_eq!(visible(command), shown);
        let prose = "a\u{a0}b ⚠\u{fe0f} 👩\u{200d}💻\r\nc\u{200b}\u{fdd0}";
        let shown = "a\u{a0}b ⚠\u{fe0f} 👩\u{200d}💻\nc\\u{200b}\\u{fdd0}";
        assert_eq!(visible_prose(prose), shown);
    }

    #[test]
    fn words_lines_and_tabs_stay() {
        for text in ["", "a\n\tb", "żółć 漢字 👩‍💻 — „x“", "[31m"] {
            assert_eq!(plain(text), text);
        }
    }

    #[test]
    fn a_sequence_that_comes_in_two_pieces_is_harmless() {
        let shown = plain("a\x1b") + &plain("]0;owned\x07b");
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
    }

    #[test]
    fn our_colours_are_sequences_at_last() {
        let text = format!("{BAD}no{BAD:#} yes");
        assert_eq!(plain(&text), "no yes");
        assert_eq!(shown(&text, true), "\x1b[1m\x1b[31mno\x1b[0m yes");
    }

    #[test]
    fn a_text_is_split_where_its_colour_changes() {
        let text = format!("a{BAD}b{BAD:#}c{QUIET}d");
        let expected = [
            (None, "a"),
            (Some(BAD), "b"),
            (None, "c"),
            (Some(QUIET), "d"),
        ];
        assert_eq!(pieces(&text), expected);
        assert_eq!(pieces(""), []);
    }

    #[test]
    fn text_from_outside_brings_no_colours() {
        let text = format!("a{BAD}b\x1b[31mc\r\nd");
        assert_eq!(without_controls(&text), "abc\nd");
        assert_eq!(without_controls("żółć"), "żółć");
    }

    #[test]
    fn json_is_escaped_and_reads_the_same() {
        let text = "a\u{9b}2J\u{202e}b\u{e0041}\x7f";
        let json = serde_json::to_string(text).unwrap();
        let shown = escaped(&json);
        assert!(shown.is_ascii(), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }
}
