//! Characters that only display themselves. All others can change how the text around them looks, so they are neither
//! displayed on a terminal nor accepted in names and labels.

use std::borrow::Cow;

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

/// A file name as git shows it: if it has a character that is not plain, a quote or a backslash, it is in quotes, and such
/// characters are escaped as in C. So a name is always in one line, and no part of it is hidden.
pub fn quoted(name: &str) -> Cow<'_, str> {
    if name.chars().all(is_unquoted) {
        return Cow::Borrowed(name);
    }
    let mut shown = String::from("\"");
    for c in name.chars() {
        let escaped = match c {
            '"' | '\\' => c,
            '\n' => 'n',
            '\t' => 't',
            '\r' => 'r',
            c if is_unquoted(c) => {
                shown.push(c);
                continue;
            }
            c => {
                let mut buffer = [0; 4];
                let bytes = c.encode_utf8(&mut buffer).bytes();
                shown.extend(bytes.map(|byte| format!("\\{byte:03o}")));
                continue;
            }
        };
        shown.extend(['\\', escaped]);
    }
    shown.push('"');
    Cow::Owned(shown)
}

fn is_unquoted(c: char) -> bool {
    match c {
        '\n' | '\t' | '"' | '\\' => false,
        // Not characters: programs use them for marks of their own.
        '\u{FDD0}'..='\u{FDEF}' => false,
        c => is_plain(c),
    }
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

    #[test]
    fn a_name_is_quoted_as_git_does_it() {
        for (name, shown) in [
            ("src/né à.rs", "src/né à.rs"),
            ("a\n+++ b/x", r#""a\n+++ b/x""#),
            ("say \"hi\"\\", r#""say \"hi\"\\""#),
            ("a\u{1b}[2J\tb\r", r#""a\033[2J\tb\r""#),
            ("\u{202e}gpj.exe", r#""\342\200\256gpj.exe""#),
            ("\u{fdd1}", r#""\357\267\221""#),
        ] {
            assert_eq!(quoted(name), shown);
            assert!(is_plain_line(&quoted(name)));
        }
    }
}
