//! How a file changes that is written as a whole.

use similar::{ChangeTag, TextDiff};

/// Lines beside a change that are shown.
const BESIDE: usize = 2;
/// Stands for lines that stay and are left out.
pub const GAP: &str = "@@";

/// The lines that change, with `+` or `-`, and those beside them. Both texts are without control characters.
pub fn lines(old: &str, new: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(old, new);
    let all: Vec<(ChangeTag, String)> = diff
        .iter_all_changes()
        .map(|change| {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Insert => '+',
                ChangeTag::Delete => '-',
            };
            let text = change.value().trim_end_matches('\n');
            (change.tag(), format!("{sign}{text}"))
        })
        .collect();
    let numbered = all.iter().enumerate();
    let changed = numbered.filter(|(_, (tag, _))| *tag != ChangeTag::Equal);
    let changed: Vec<usize> = changed.map(|(n, _)| n).collect();
    let mut lines = Vec::new();
    let mut is_gap = false;
    for (n, (_, line)) in all.into_iter().enumerate() {
        // The nearest changes after the line and before it.
        let after = changed.partition_point(|at| *at < n);
        let next = changed.get(after).map(|at| at - n);
        let before = after.checked_sub(1).and_then(|at| changed.get(at));
        let last = before.map(|at| n - at);
        let distance = next.into_iter().chain(last).min();
        if distance.is_none_or(|distance| distance > BESIDE) {
            is_gap = true;
            continue;
        }
        if is_gap {
            lines.push(GAP.to_owned());
            is_gap = false;
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_again_shows_what_changes() {
        let old: String = (1..=9).map(|n| format!("{n}\n")).collect();
        let lines = lines(&old, &old.replace('8', "eight"));
        assert_eq!(lines, ["@@", " 6", " 7", "-8", "+eight", " 9"]);
        assert_eq!(super::lines(&old, &old), [""; 0]);
    }
}
