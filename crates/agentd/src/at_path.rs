//! How a prompt names a file: `@src/lib.rs`, or `@"my notes.txt"` if the path has spaces.

/// The words of a text. A quoted path is one word, if its quotes are on one line.
pub fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let quoted = rest.strip_prefix("@\"").and_then(closing_quote);
        // The quote, `@`, and what stands between them.
        let begin = quoted.map_or(0, |at| at + 3);
        let after = rest.get(begin..).unwrap_or_default();
        let end = begin + after.find(char::is_whitespace).unwrap_or(after.len());
        let (word, others) = rest.split_at(end);
        words.push(word);
        rest = others.trim_start();
    }
    words
}

fn closing_quote(text: &str) -> Option<usize> {
    let end = text.find(['"', '\n'])?;
    text.get(end..)?.starts_with('"').then_some(end)
}

/// The path that a word names.
pub fn of_word(word: &str) -> Option<&str> {
    let path = word.strip_prefix('@')?;
    match path.strip_prefix('"') {
        Some(quoted) => closing_quote(quoted).and_then(|end| quoted.get(..end)),
        None => Some(path),
    }
}

/// The word that ends with the text: a quoted path that is not closed yet, or what stands after the last space.
pub fn last_word(text: &str) -> &str {
    let is_begin = |at: usize| {
        let before = text.get(..at).unwrap_or_default();
        before.is_empty() || before.ends_with(char::is_whitespace)
    };
    let quoted = text.rfind("@\"").filter(|at| is_begin(*at));
    let open = quoted.and_then(|at| text.get(at..));
    if let Some(open) = open.filter(|open| open.matches('"').count() == 1) {
        return open;
    }
    let space = text.char_indices().rev().find(|(_, c)| c.is_whitespace());
    let begin = space.map_or(0, |(at, c)| at + c.len_utf8());
    text.get(begin..).unwrap_or_default()
}

/// A path as a word. That of a directory can be continued.
pub fn written(path: &str, typed: &str) -> String {
    let is_open = path.ends_with('/');
    match (
        path.contains(char::is_whitespace) || typed.starts_with('"'),
        is_open,
    ) {
        (false, true) => format!("@{path}"),
        (false, false) => format!("@{path} "),
        (true, true) => format!("@\"{path}"),
        (true, false) => format!("@\"{path}\" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_path_is_one_word() {
        let text = "see @\"my notes.txt\", @a/b and @\"open\nend\" x@\"c d\"";
        let expected = [
            "see",
            "@\"my notes.txt\",",
            "@a/b",
            "and",
            "@\"open",
            "end\"",
            "x@\"c",
            "d\"",
        ];
        assert_eq!(words(text), expected);
        let paths: Vec<&str> = words(text).into_iter().filter_map(of_word).collect();
        assert_eq!(paths, ["my notes.txt", "a/b"]);
        assert_eq!(words("  "), [""; 0]);
        assert_eq!(words("@\"ż ó\""), ["@\"ż ó\""]);
    }

    #[test]
    fn what_is_written_is_read_as_the_same_path() {
        for (path, typed) in [("a", ""), ("a b", ""), ("a", "\""), ("ż/a b.c", "\"ż/")] {
            let word = written(path, typed);
            assert_eq!(words(&word).len(), 1, "{word}");
            assert_eq!(of_word(word.trim_end()), Some(path));
        }
        assert_eq!(written("a b/", ""), "@\"a b/");
        assert_eq!(last_word("see @\"a b/"), "@\"a b/");
        assert_eq!(last_word("see @\"a b\" and"), "and");
        assert_eq!(last_word("x@\"a b"), "b");
    }
}
