//! The change that a tool call makes to a file, as lines with colours.

use super::line::Line;
use crate::terminal::{ADDED, QUIET, REMOVED};
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal;

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
