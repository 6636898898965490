//! Applying the hunks of a patch to a text.

use super::{Hunk, HunkLine};

/// A hunk that has no place in the text. Nothing is applied then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// The number of the hunk, counted from 1.
    pub hunk: usize,
    /// The lines that were looked for.
    pub wanted: String,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The line after `@@` is not in the rest of the file.
    Header,
    /// The lines that stay or go are not in the rest of the file.
    Lines,
    /// They are in the file, but above the place of the hunk before it.
    Order,
}

/// How closely a line must match, from strict to lenient. Models often get trailing whitespace and indentation wrong.
const PASSES: [fn(&str) -> &str; 3] = [|line| line, str::trim_end, str::trim];

/// The text with all hunks applied. Lines that stay are taken from the text, whatever their whitespace.
pub fn apply(hunks: &[Hunk], text: &str) -> Result<String, Unmatched> {
    let ending = if has_crlf_only(text) { "\r\n" } else { "\n" };
    let mut lines: Vec<&str> = text.split(ending).collect();
    let ends_with_newline = lines.last() == Some(&"");
    if ends_with_newline {
        lines.pop();
    }
    let mut out: Vec<&str> = Vec::new();
    let mut at = 0;
    for (number, hunk) in (1..).zip(hunks) {
        let place = place(hunk, &lines, at).map_err(|(wanted, why)| Unmatched {
            hunk: number,
            wanted,
            why,
        })?;
        out.extend(lines.get(at..place).unwrap_or_default());
        at = place;
        for line in &hunk.lines {
            match line {
                HunkLine::Keep(_) => {
                    out.extend(lines.get(at));
                    at += 1;
                }
                HunkLine::Remove(_) => at += 1,
                HunkLine::Add(text) => out.push(text),
            }
        }
    }
    out.extend(lines.get(at..).unwrap_or_default());
    let mut new = out.join(ending);
    if ends_with_newline && !out.is_empty() {
        new.push_str(ending);
    }
    Ok(new)
}

/// Where the hunk begins, at or after line `from`.
fn place(hunk: &Hunk, lines: &[&str], from: usize) -> Result<usize, (String, Why)> {
    let above = lines.get(..from).unwrap_or_default();
    let is_above = |header: &str| above.iter().any(|line| line.trim() == header.trim());
    let mut from = from;
    for header in &hunk.headers {
        let wanted = [header.as_str()];
        match find(lines, &wanted, from) {
            Some(found) => from = found + 1,
            // The hunk before it may be below the same line.
            None if is_above(header) => {}
            None => return Err((header.clone(), Why::Header)),
        }
    }
    let old = hunk.old_lines();
    if old.is_empty() {
        let has_header = !hunk.headers.is_empty() && !hunk.is_at_end;
        return Ok(if has_header { from } else { lines.len() });
    }
    let last = lines.len().saturating_sub(old.len()).max(from);
    let at_end = hunk.is_at_end.then(|| find(lines, &old, last)).flatten();
    at_end.or_else(|| find(lines, &old, from)).ok_or_else(|| {
        let why = match find(lines, &old, 0) {
            Some(_) => Why::Order,
            None => Why::Lines,
        };
        (old.join("\n"), why)
    })
}

/// The first place at or after `from` that has these lines.
fn find(lines: &[&str], wanted: &[&str], from: usize) -> Option<usize> {
    let rest = lines.get(from..)?;
    PASSES.iter().find_map(|pass| {
        let is_same = |window: &[&str]| {
            let mut pairs = window.iter().zip(wanted);
            pairs.all(|(line, wanted)| pass(line) == pass(wanted))
        };
        let found = rest.windows(wanted.len()).position(is_same)?;
        Some(from + found)
    })
}

fn has_crlf_only(text: &str) -> bool {
    let lines = text.matches('\n').count();
    lines > 0 && lines == text.matches("\r\n").count()
}
