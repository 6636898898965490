//! The change that a tool call makes to a file, as lines with colours.

use super::line::Line;
use crate::render::replaced;
use crate::terminal::{ADDED, QUIET, REMOVED, visible_prose};
use agentd_core::patch::{FilePatch, Hunk, HunkLine};
use similar::{ChangeTag, TextDiff};

pub struct Diff {
    pub added: usize,
    pub removed: usize,
    pub lines: Vec<Line>,
}

/// How one text differs from the other. Both are without control characters.
pub fn of(old: &str, new: &str) -> Diff {
    let mut diff = Diff {
        added: 0,
        removed: 0,
        lines: Vec::new(),
    };
    for change in TextDiff::from_lines(old, new).iter_all_changes() {
        let (paint, sign) = match change.tag() {
            ChangeTag::Equal => (QUIET, ' '),
            ChangeTag::Insert => {
                diff.added += 1;
                (ADDED, '+')
            }
            ChangeTag::Delete => {
                diff.removed += 1;
                (REMOVED, '-')
            }
        };
        let text = change.value().trim_end_matches('\n');
        diff.lines
            .push(Line::painted(paint, format!("{sign}{text}")));
    }
    diff
}

/// How a file changes that is written as a whole: of the lines that stay, only those beside a change.
pub fn replaced(old: &str, new: &str) -> Diff {
    let mut diff = Diff {
        added: 0,
        removed: 0,
        lines: Vec::new(),
    };
    for line in replaced::lines(old, new) {
        let paint = match line.as_bytes().first() {
            Some(b'+') => {
                diff.added += 1;
                ADDED
            }
            Some(b'-') => {
                diff.removed += 1;
                REMOVED
            }
            _ => QUIET,
        };
        diff.lines.push(Line::painted(paint, line));
    }
    diff
}

/// How a patch changes a file.
pub fn of_patch(file: &FilePatch) -> Diff {
    let mut diff = Diff {
        added: 0,
        removed: 0,
        lines: Vec::new(),
    };
    match file {
        FilePatch::Add { text, .. } => return of("", &visible_prose(text)),
        FilePatch::Delete { .. } => {}
        FilePatch::Update { hunks, .. } => hunks.iter().for_each(|hunk| diff.hunk(hunk)),
    }
    diff
}

impl Diff {
    fn hunk(&mut self, hunk: &Hunk) {
        if !self.lines.is_empty() || !hunk.headers.is_empty() {
            let headers = hunk.headers.join(" ");
            let text = format!("@@ {}", visible_prose(&headers));
            self.lines.push(Line::painted(QUIET, text.trim_end()));
        }
        for line in &hunk.lines {
            let (paint, sign, text) = match line {
                HunkLine::Keep(text) => (QUIET, ' ', text),
                HunkLine::Add(text) => {
                    self.added += 1;
                    (ADDED, '+', text)
                }
                HunkLine::Remove(text) => {
                    self.removed += 1;
                    (REMOVED, '-', text)
                }
            };
            let text = format!("{sign}{}", visible_prose(text));
            self.lines.push(Line::painted(paint, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal;
    use agentd_core::patch::Patch;

    #[test]
    fn only_changed_lines_count() {
        let diff = of("a\nb\nc\n", "a\nB\nc\nd\n");
        assert_eq!((diff.added, diff.removed), (2, 1));
        let lines = diff.lines.iter();
        let lines: Vec<String> = lines
            .map(|line| terminal::uncoloured(&line.to_string()))
            .collect();
        assert_eq!(lines, [" a", "-b", "+B", " c", "+d"]);
        assert_eq!(of("", "").lines, []);
    }

    #[test]
    fn a_file_that_is_written_again_counts_its_changes() {
        let diff = replaced("a\nb\n", "a\nB\nc\n");
        assert_eq!((diff.added, diff.removed), (2, 1));
        assert_eq!(diff.lines.len(), 4);
    }

    #[test]
    fn a_patch_is_shown_as_it_is_written() {
        let patch = Patch::parse(
            "*** Begin Patch\n*** Update File: a\n@@ fn a() {\n x\n-y\n+z\n+w\n@@\n-v\n*** Add File: b\n+n\n*** End Patch",
        );
        let patch = patch.unwrap();
        let diff = of_patch(&patch.files[0]);
        assert_eq!((diff.added, diff.removed), (2, 2));
        let lines = diff.lines.iter();
        let lines: Vec<String> = lines
            .map(|line| terminal::uncoloured(&line.to_string()))
            .collect();
        assert_eq!(lines, ["@@ fn a() {", " x", "-y", "+z", "+w", "@@", "-v"]);
        assert_eq!(of_patch(&patch.files[1]).added, 1);
    }

    #[test]
    fn a_large_change_is_computed_in_time() {
        let lines = |salt: u32| -> String {
            (0..20_000)
                .map(|n| format!("{}\n", n * 7919 % 9973 + salt))
                .collect()
        };
        let diff = of(&lines(0), &lines(3));
        assert!(diff.added > 0 && diff.added == diff.removed);
    }
}
