//! Characters that only display themselves. All others can change how the text around them looks, or hide text, so they are
//! neither displayed on a terminal nor accepted in names and labels.

use std::borrow::Cow;

/// Not a control character (except a line break or a tab), not invisible, and without effect on the direction of the
/// text after it.
pub fn is_plain(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        // Bidirectional marks, embeddings, overrides and isolates.
        '\u{061C}' | '\u{200E}' | '\u{200F}' => false,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => false,
        // Line separators, the byte order mark.
        '\u{2028}' | '\u{2029}' | '\u{FEFF}' => false,
        _ => !c.is_control() && !is_invisible(c),
    }
}

/// Characters without a glyph that no ordinary text needs.
const fn is_invisible(c: char) -> bool {
    match c {
        // Soft hyphen, grapheme joiner, fillers, vowels and selectors that are never displayed.
        '\u{00AD}' | '\u{034F}' | '\u{115F}' | '\u{1160}' | '\u{3164}' | '\u{FFA0}' => true,
        '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}' => true,
        // Zero-width space, word joiner, invisible operators, deprecated format characters, annotations.
        '\u{200B}' | '\u{2060}'..='\u{2065}' | '\u{206A}'..='\u{206F}' => true,
        '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' => true,
        // Tags, and selectors of ideographs.
        '\u{E0000}'..='\u{E0FFF}' => true,
        _ => false,
    }
}

/// Characters that join or select the glyphs around them: in emoji, and in some scripts.
const fn is_joint(c: char) -> bool {
    matches!(c, '\u{200C}' | '\u{200D}' | '\u{FE00}'..='\u{FE0F}')
}

/// Whether a reader sees the character, and does not take it for another one: not a joint, and no blank but a space. For
/// commands and file names, of which every character counts.
pub fn is_visible(c: char) -> bool {
    let is_blank = c.is_whitespace() && !matches!(c, ' ' | '\n' | '\t') || c == '\u{2800}';
    is_plain(c) && !is_joint(c) && !is_blank
}

/// Whether a joint between these characters belongs to an emoji, or joins letters of a script that needs it.
fn is_joined(before: Option<char>, joint: char, after: Option<char>) -> bool {
    let is_symbol = |c: char| c >= '\u{A9}' && !c.is_alphanumeric() && is_visible(c);
    let is_letter = |c: char| !c.is_ascii() && c.is_alphanumeric();
    match (before, joint, after) {
        // `1`, the selector and the frame of a key.
        (Some(_), '\u{FE0F}', Some('\u{20E3}')) => true,
        (Some(before), '\u{FE0E}' | '\u{FE0F}', _) => is_symbol(before),
        (Some(before), '\u{200D}', Some(after)) if is_symbol(after) => {
            is_symbol(before) || before == '\u{FE0F}'
        }
        (Some(before), '\u{200C}' | '\u{200D}', Some(after)) => {
            is_letter(before) && is_letter(after)
        }
        _ => false,
    }
}

/// A text in which every character that a reader would not see is replaced; not the joints of emoji and of scripts that need
/// them, and not blanks.
pub fn in_prose(text: &str, mut replace: impl FnMut(char, &mut String)) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        match is_plain(c) && (!is_joint(c) || is_joined(before, c, chars.peek().copied())) {
            true => shown.push(c),
            false => replace(c, &mut shown),
        }
        before = Some(c);
    }
    shown
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
        c => is_visible(c),
    }
}

/// The text without characters that a reader would not see: nothing hidden is left in it.
pub fn only_plain(text: &str) -> String {
    in_prose(text, |_, _| {})
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

    /// A reader sees every character of a command or a file name; prose keeps what emoji and scripts need.
    #[test]
    fn invisible_characters_are_known() {
        let hidden = "\u{200b}\u{ad}\u{3164}\u{115f}\u{ffa0}\u{2060}\u{2063}\u{feff}\u{e0041}\u{e0100}\u{180e}\u{34f}";
        for c in hidden.chars() {
            assert!(!is_plain(c) && !is_visible(c), "{c:?}");
        }
        for c in "\u{a0}\u{2003}\u{3000}\u{2800}\u{fe0f}\u{fe01}\u{200c}\u{200d}".chars() {
            assert!(!is_visible(c) && is_plain(c), "{c:?}");
        }
        let prose =
            "1\u{fe0f}\u{20e3} ⚠\u{fe0f} 👩\u{200d}💻 🏳\u{fe0f}\u{200d}🌈 می\u{200c}خواهم a\u{a0}b";
        assert_eq!(only_plain(prose), prose);
        for (text, left) in [
            ("a\u{fe01}b\u{fe0f}c", "abc"),
            ("r\u{200d}m\u{200c}", "rm"),
            ("a\u{200b}\u{e0069}b", "ab"),
            ("⚠\u{fe0f}\u{fe0f}\u{fe0f}", "⚠\u{fe0f}"),
        ] {
            assert_eq!(only_plain(text), left, "{text:?}");
        }
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
            ("a\u{a0}b\u{200b}", r#""a\302\240b\342\200\213""#),
        ] {
            assert_eq!(quoted(name), shown);
            assert!(is_plain_line(&quoted(name)));
        }
    }
}
