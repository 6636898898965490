//! Finding the one occurrence that an edit means, or explaining why there is none.

use super::super::failure::Failure;
use super::closest::closest;

/// The largest number of line numbers that a failure lists.
const NAMED_LINES: usize = 10;

pub(super) struct Edit<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub all: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    pub text: String,
    pub places: usize,
    /// The line of the first occurrence.
    pub line: usize,
}

impl Edit<'_> {
    /// The text with the edit applied, or the reason why it cannot be applied.
    pub fn apply(&self, name: &str, text: &str) -> Result<Edited, Failure> {
        if self.old.is_empty() {
            let why = "`old_string` is empty; give the text to replace, or use write_file to create a file.";
            return Err(Failure::new(why));
        }
        if self.old == self.new {
            return Err(Failure::new(
                "`old_string` and `new_string` are equal; nothing was changed.",
            ));
        }
        // An edit that contains `\r` is applied as it is.
        let has_cr = self.old.contains('\r') || self.new.contains('\r');
        let (old, new) = match !has_cr && has_crlf_only(text) {
            true => (to_crlf(self.old), to_crlf(self.new)),
            false => (self.old.to_owned(), self.new.to_owned()),
        };
        let places = places(text, &old);
        let Some(first) = places.first() else {
            return Err(Failure::new(self.missing(name, text)));
        };
        if places.len() > 1 && !self.all {
            return Err(Failure::new(ambiguous(name, text, &places)));
        }
        let edited = match self.all {
            true => text.replace(&old, &new),
            false => text.replacen(&old, &new, 1),
        };
        Ok(Edited {
            text: edited,
            places: match self.all {
                true => text.matches(&old).count(),
                false => 1,
            },
            line: line_of(text, *first),
        })
    }

    fn missing(&self, name: &str, text: &str) -> String {
        let head = format!("`old_string` is not in {name}; nothing was changed.");
        match closest(text, self.old, "old_string") {
            Some(place) => format!("{head} {place}"),
            None => format!(
                "{head} Nothing similar was found. Read the file again, or find the text with search_files."
            ),
        }
    }
}

fn ambiguous(name: &str, text: &str, places: &[usize]) -> String {
    let lines = places.iter().take(NAMED_LINES);
    let lines: Vec<String> = lines.map(|at| line_of(text, *at).to_string()).collect();
    let more = match places.len() > NAMED_LINES {
        true => ", …",
        false => "",
    };
    format!(
        "`old_string` occurs {} times in {name} (at lines {}{more}); nothing was changed. Include more of the \
         surrounding lines, so that it occurs once, or set `replace_all` to change all of them.",
        places.len(),
        lines.join(", ")
    )
}

/// The positions of all occurrences of `old_string`, overlapping ones included.
fn places(text: &str, old: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(found) = text[from..].find(old) {
        let at = from + found;
        places.push(at);
        from = text.ceil_char_boundary(at + 1);
    }
    places
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

fn has_crlf_only(text: &str) -> bool {
    let lines = text.matches('\n').count();
    lines > 0 && lines == text.matches("\r\n").count()
}

/// Models write `\n` for a file with `\r\n`; the file keeps its line endings.
fn to_crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}
