//! Colours in code: comments, texts, numbers and keywords, a line at a time. A small tokenizer for families of languages
//! with the same comments and quotes, without grammar files: a block in a reply is short and read once, so that telling
//! comments and texts from the rest is enough, and a wrong colour does no harm.

use super::line::Line;
use crate::terminal::{ADDED, HEADING, KEYWORD, LITERAL, Paint, QUIET, REMOVED};

/// How a language writes comments and texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Syntax {
    line_comment: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    quotes: &'static [char],
}

const C_LIKE: Syntax = Syntax {
    line_comment: &["//"],
    block_comment: Some(("/*", "*/")),
    quotes: &['"', '\'', '`'],
};
/// A single quote begins a lifetime.
const RUST: Syntax = Syntax {
    quotes: &['"'],
    ..C_LIKE
};
const SCRIPT: Syntax = Syntax {
    line_comment: &["#"],
    block_comment: None,
    quotes: &['"', '\'', '`'],
};
const DASHES: Syntax = Syntax {
    line_comment: &["--"],
    block_comment: None,
    quotes: &['"', '\''],
};
const DATA: Syntax = Syntax {
    line_comment: &[],
    block_comment: None,
    quotes: &['"'],
};
const MARKUP: Syntax = Syntax {
    line_comment: &[],
    block_comment: Some(("<!--", "-->")),
    quotes: &['"'],
};

#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "abstract", "and", "as", "async", "await", "begin", "break", "case", "catch", "class", "const", "continue", "crate",
    "def", "default", "defer", "del", "do", "done", "elif", "else", "elsif", "end", "enum", "esac", "except", "export",
    "extends", "extern", "false", "fi", "final", "finally", "fn", "for", "foreach", "from", "func", "function", "go",
    "goto", "if", "impl", "implements", "import", "in", "interface", "is", "lambda", "let", "local", "loop", "match",
    "mod", "module", "move", "mut", "namespace", "new", "nil", "none", "None", "not", "null", "or", "override", "package",
    "pass", "private", "protected", "pub", "public", "raise", "range", "ref", "require", "return", "self", "Self",
    "static", "struct", "super", "switch", "template", "then", "this", "throw", "trait", "true", "True", "False", "try",
    "type", "typeof", "undefined", "union", "unsafe", "until", "use", "using", "var", "virtual", "void", "where", "while",
    "with", "yield",
];

/// The words of a query language are written in either case.
#[rustfmt::skip]
const QUERY_WORDS: &[&str] = &[
    "add", "all", "alter", "as", "asc", "by", "create", "delete", "desc", "distinct", "drop", "exists", "from", "group",
    "having", "in", "index", "insert", "into", "join", "key", "left", "limit", "not", "null", "on", "or", "and", "order",
    "primary", "references", "returning", "select", "set", "table", "union", "update", "values", "view", "where", "with",
];

/// A longer line gets no colours: it is not written by hand, and looking for the ends of its texts would take long.
const LONGEST: usize = 1000;

/// Colours the lines of one code block, in order.
pub struct Highlighter {
    syntax: Option<Syntax>,
    is_diff: bool,
    is_query: bool,
    in_comment: bool,
}

impl Highlighter {
    /// For the language that a code block names; text of an unknown language gets no colours.
    pub fn new(language: &str) -> Self {
        let language = language.split([' ', ',', '{']).next().unwrap_or_default();
        let language = language.to_lowercase();
        let syntax = match language.as_str() {
            "rust" | "rs" => Some(RUST),
            "c" | "h" | "cpp" | "c++" | "cc" | "cs" | "csharp" | "dart" | "go" | "java"
            | "javascript" | "js" | "jsx" | "kotlin" | "kt" | "php" | "proto" | "scala"
            | "swift" | "ts" | "tsx" | "typescript" | "zig" | "css" | "scss" => Some(C_LIKE),
            "bash" | "sh" | "shell" | "zsh" | "fish" | "console" | "python" | "py" | "ruby"
            | "rb" | "perl" | "pl" | "r" | "toml" | "yaml" | "yml" | "make" | "makefile"
            | "dockerfile" | "ini" | "conf" | "elixir" | "nix" | "julia" => Some(SCRIPT),
            "sql" | "lua" | "haskell" | "hs" | "ada" | "elm" => Some(DASHES),
            "json" | "jsonl" | "json5" => Some(DATA),
            "html" | "xml" | "svg" | "vue" => Some(MARKUP),
            _ => None,
        };
        Self {
            syntax,
            is_diff: matches!(language.as_str(), "diff" | "patch"),
            is_query: language == "sql",
            in_comment: false,
        }
    }

    pub fn line(&mut self, text: &str) -> Line {
        if self.is_diff {
            return of_diff(text);
        }
        match self.syntax {
            Some(syntax) if text.len() <= LONGEST => self.coloured(text, syntax),
            _ => Line::plain(text),
        }
    }

    fn coloured(&mut self, text: &str, syntax: Syntax) -> Line {
        let mut line = Line::default();
        let mut rest = text;
        while !rest.is_empty() {
            let (paint, length) = self.token(rest, syntax);
            // A token has at least one character.
            let least = rest.chars().next().map_or(1, char::len_utf8);
            let (token, after) = rest
                .split_at_checked(length.max(least))
                .unwrap_or((rest, ""));
            line.push(paint, token);
            rest = after;
        }
        line
    }

    /// The colour and the length of the first token.
    fn token(&mut self, text: &str, syntax: Syntax) -> (Option<Paint>, usize) {
        if let Some((begin, end)) = syntax.block_comment
            && (self.in_comment || text.starts_with(begin))
        {
            let skipped = if self.in_comment { 0 } else { begin.len() };
            let found = text.get(skipped..).and_then(|text| text.find(end));
            self.in_comment = found.is_none();
            let length = found.map_or(text.len(), |at| skipped + at + end.len());
            return (Some(QUIET), length);
        }
        if syntax
            .line_comment
            .iter()
            .any(|begin| text.starts_with(begin))
        {
            return (Some(QUIET), text.len());
        }
        let Some(first) = text.chars().next() else {
            return (None, 0);
        };
        if syntax.quotes.contains(&first) {
            return (Some(LITERAL), quoted(text, first));
        }
        let word = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        let word = word.unwrap_or(text.len());
        if word == 0 {
            return (None, first.len_utf8());
        }
        let name = text.get(..word).unwrap_or_default();
        let is_keyword = match self.is_query {
            true => QUERY_WORDS.contains(&name.to_lowercase().as_str()),
            false => KEYWORDS.contains(&name),
        };
        match first {
            '0'..='9' => (Some(LITERAL), word),
            _ if is_keyword => (Some(KEYWORD), word),
            _ => (None, word),
        }
    }
}

/// The length of a quoted text, or of its quote if it does not end on this line.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    quote.len_utf8()
}

fn of_diff(text: &str) -> Line {
    let paint = match text.chars().next() {
        Some('+') => Some(ADDED),
        Some('-') => Some(REMOVED),
        Some('@') => Some(HEADING),
        _ => None,
    };
    Line::default().and(paint, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(language: &str, text: &str) -> Vec<(Option<Paint>, String)> {
        let line = Highlighter::new(language).line(text);
        let spans = line.spans().iter();
        spans.map(|span| (span.paint, span.text.clone())).collect()
    }

    #[test]
    fn words_texts_numbers_and_comments_have_colours() {
        let found = painted("rust", r#"let x = "a\"b"; // it's 1"#);
        let expected = [
            (Some(KEYWORD), "let"),
            (None, " x = "),
            (Some(LITERAL), r#""a\"b""#),
            (None, "; "),
            (Some(QUIET), "// it's 1"),
        ];
        let expected = expected.map(|(paint, text)| (paint, text.to_owned()));
        assert_eq!(found, expected);
        assert_eq!(painted("py", "x = 12")[1], (Some(LITERAL), "12".to_owned()));
        assert_eq!(painted("sql", "Select 1")[0].0, Some(KEYWORD));
        assert_eq!(painted("diff", "-gone")[0].0, Some(REMOVED));
    }

    #[test]
    fn the_text_stays_as_it_is() {
        for language in [
            "", "rust", "js", "bash", "sql", "json", "html", "diff", "klingon",
        ] {
            for text in [
                "",
                "'",
                "\"unfinished",
                "é ß 漢 'x' `y",
                "/* a",
                "<!-- b",
                "# c",
                "a\\",
            ] {
                let whole: String = painted(language, text)
                    .into_iter()
                    .map(|(_, text)| text)
                    .collect();
                assert_eq!(whole, text, "{language}");
            }
        }
    }

    #[test]
    fn a_comment_may_have_several_lines() {
        let mut code = Highlighter::new("c");
        let paints = ["a /* b", "c", "d */ e"].map(|text| {
            let line = code.line(text);
            line.spans()
                .iter()
                .map(|span| span.paint)
                .collect::<Vec<_>>()
        });
        assert_eq!(paints[1], [Some(QUIET)]);
        assert_eq!(paints[2], [Some(QUIET), None]);
    }
}
