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
    /// The search for the lines of all hunks took too long.
    TooMuchWork,
}

/// How many lines are compared for one file. A search is quadratic in the worst case, and the patch and the file may both
/// be made for that.
const MAX_COMPARED: usize = 20_000_000;
/// A comparison of longer lines counts as several.
const COMPARED_BYTES: usize = 64;

/// What is left of the work that a patch may cause.
struct Work {
    left: usize,
}

impl Work {
    /// Whether this line may be compared.
    const fn spend(&mut self, line: &str) -> bool {
        let cost = 1 + line.len() / COMPARED_BYTES;
        self.left = self.left.saturating_sub(cost);
        self.left > 0
    }

    const fn is_used_up(&self) -> bool {
        self.left == 0
    }
}

/// How closely a line must match, from strict to lenient. Models often get trailing whitespace and indentation wrong.
const PASSES: [fn(&str) -> &str; 3] = [|line| line, str::trim_end, str::trim];

/// The text with all hunks applied. Lines that stay are taken from the text, whatever their whitespace.
pub fn apply(hunks: &[Hunk], text: &str) -> Result<String, Unmatched> {
    let mut work = Work { left: MAX_COMPARED };
    let ending = if has_crlf_only(text) { "\r\n" } else { "\n" };
    let mut lines: Vec<&str> = text.split(ending).collect();
    let ends_with_newline = lines.last() == Some(&"");
    if ends_with_newline {
        lines.pop();
    }
    let mut out: Vec<&str> = Vec::new();
    let mut at = 0;
    for (number, hunk) in (1..).zip(hunks) {
        let place = place(hunk, &lines, at, &mut work).map_err(|(wanted, why)| Unmatched {
            hunk: number,
            wanted,
            why: match work.is_used_up() {
                true => Why::TooMuchWork,
                false => why,
            },
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
fn place(
    hunk: &Hunk,
    lines: &[&str],
    from: usize,
    work: &mut Work,
) -> Result<usize, (String, Why)> {
    let above = lines.get(..from).unwrap_or_default();
    let mut from = from;
    for header in &hunk.headers {
        let wanted = [header.as_str()];
        match find(lines, &wanted, from, work) {
            Some(found) => from = found + 1,
            // The hunk before it may be below the same line.
            None if find(above, &wanted, 0, work).is_some() => {}
            None => return Err((header.clone(), Why::Header)),
        }
    }
    let old = hunk.old_lines();
    if old.is_empty() {
        let has_header = !hunk.headers.is_empty() && !hunk.is_at_end;
        return Ok(if has_header { from } else { lines.len() });
    }
    let last = lines.len().saturating_sub(old.len()).max(from);
    let at_end = match hunk.is_at_end {
        true => find(lines, &old, last, work),
        false => None,
    };
    if let Some(found) = at_end.or_else(|| find(lines, &old, from, work)) {
        return Ok(found);
    }
    let why = match find(lines, &old, 0, work) {
        Some(_) => Why::Order,
        None => Why::Lines,
    };
    Err((old.join("\n"), why))
}

/// The first place at or after `from` that has these lines. None, too, if the work is used up.
fn find(lines: &[&str], wanted: &[&str], from: usize, work: &mut Work) -> Option<usize> {
    let rest = lines.get(from..)?;
    PASSES.iter().find_map(|pass| {
        let is_same = |window: &[&str]| {
            let mut pairs = window.iter().zip(wanted);
            pairs.all(|(line, wanted)| work.spend(line) && pass(line) == pass(wanted))
        };
        let mut windows = rest.windows(wanted.len());
        let found = windows.position(is_same)?;
        Some(from + found)
    })
}

fn has_crlf_only(text: &str) -> bool {
    let lines = text.matches('\n').count();
    lines > 0 && lines == text.matches("\r\n").count()
}
