//! A line for the shell: the commands in it, as far as can be told without a shell.

use super::glob;

/// The pattern that means any line.
const ANY: &str = "*";

/// Words that stand before a command and are none.
const BEFORE: &[&str] = &[
    "!", "{", "do", "elif", "else", "exec", "if", "then", "time", "until", "while",
];

/// Whether an allow rule with that pattern covers the line.
pub(super) fn is_allowed_by(line: &str, pattern: &str) -> bool {
    // With the same controls in both, those of the line are met by those of the pattern, and none is
    // left for a `*` to swallow.
    pattern == ANY || (glob::fits(pattern, line) && controls(line).eq(controls(pattern)))
}

/// Whether a deny or ask rule with that pattern means the line or a command in it.
pub(super) fn is_hit_by(line: &str, pattern: &str) -> bool {
    // To the shell, a line that ends with a backslash goes on in the next.
    let line = line.replace("\\\n", "");
    glob::fits(pattern, &line) || commands(&line).any(|command| glob::fits(pattern, &command))
}

/// What begins another command or an output to elsewhere, in the order of the line. Quotes are not
/// looked at: a control that the shell would not see only makes a rule more careful.
fn controls(line: &str) -> impl Iterator<Item = char> {
    let after = line.chars().skip(1).map(Some).chain([None]);
    line.chars().zip(after).filter_map(|(c, next)| match c {
        ';' | '&' | '|' | '<' | '>' | '`' | '\n' => Some(c),
        '$' if next == Some('(') => Some(c),
        _ => None,
    })
}

/// Each command of the line, with one space between its words, and without what stands before it.
fn commands(line: &str) -> impl Iterator<Item = String> {
    let parts = line.split([';', '&', '|', '<', '>', '`', '\n', '(', ')']);
    parts.filter_map(|part| {
        let words = part.split_whitespace();
        let words: Vec<&str> = words.skip_while(|word| is_before(word)).collect();
        (!words.is_empty()).then(|| words.join(" "))
    })
}

fn is_before(word: &str) -> bool {
    BEFORE.contains(&word) || is_assignment(word)
}

/// `NAME=value`, as it may stand before a command.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(is_name)
    })
}
