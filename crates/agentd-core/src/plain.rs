//! Characters that only display themselves. All others can change how the text around them looks, so they are neither
//! displayed on a terminal nor accepted in names and labels.

/// Not a control character (except a line break or a tab), not invisible, and without effect on the direction of the
/// text after it.
pub fn is_plain(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        // Bidirectional marks, embeddings, overrides and isolates.
        '\u{061C}' | '\u{200E}' | '\u{200F}' => false,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => false,
        // Line separators, the byte order mark, tags.
        '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}' => false,
        _ => !c.is_control(),
    }
}

/// Whether a text is one line of plain characters, as names and labels are.
pub fn is_plain_line(text: &str) -> bool {
    text.chars()
        .all(|c| is_plain(c) && !matches!(c, '\n' | '\t'))
}

/// The plain characters of a text.
pub fn only_plain(text: &str) -> String {
    text.chars().filter(|c| is_plain(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_other_text_is_not_plain() {
        for text in [
            "\u{1b}[2J",
            "a\rb",
            "\u{9b}31m",
            "\u{202e}gpj.exe",
            "\u{7f}",
            "a\nb",
        ] {
            assert!(!is_plain_line(text), "{text:?}");
        }
        assert!(is_plain_line("né à 東京 🎉"));
        assert!(is_plain('\n') && is_plain('\t'));
    }
}
