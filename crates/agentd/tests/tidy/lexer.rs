//! Splits a Rust file into its code, with comments and literals blanked out, its string literals and its comments.

/// The parts of a file. Lines count from one.
pub struct Lexed {
    /// As long as the file in characters, with the same line breaks; comments, strings and
    /// character literals are spaces.
    pub code: String,
    /// Each string literal with the line it starts on, without quotes, escapes left as written.
    pub strings: Vec<(usize, String)>,
    /// Each line of a comment with its number, with the `//` or `/*`.
    pub comments: Vec<(usize, String)>,
}

pub fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer {
        chars: text.chars().collect(),
        at: 0,
        line: 1,
        lexed: Lexed {
            code: String::with_capacity(text.len()),
            strings: Vec::new(),
            comments: Vec::new(),
        },
    };
    while let Some(c) = lexer.peek(0) {
        match (c, lexer.peek(1)) {
            ('/', Some('/')) => lexer.line_comment(),
            ('/', Some('*')) => lexer.block_comment(),
            ('"', _) => lexer.string(),
            ('r', Some('"' | '#')) if lexer.starts_word() && lexer.raw_hashes().is_some() => {
                lexer.raw_string();
            }
            ('\'', _) => lexer.quote(),
            _ => lexer.keep(),
        }
    }
    lexer.lexed
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
    lexed: Lexed,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn keep(&mut self) {
        if let Some(c) = self.step() {
            self.lexed.code.push(c);
        }
    }

    fn blank(&mut self) -> Option<char> {
        let c = self.step()?;
        self.lexed.code.push(if c == '\n' { '\n' } else { ' ' });
        Some(c)
    }

    fn step(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    /// Whether a word starts here, that is, the previous character does not belong to it. The `b` and `c` of a byte or C
    /// string do not count as a word.
    fn starts_word(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).map(|at| self.chars[at]);
        let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        match before(1) {
            Some('b' | 'c') => !in_word(before(2)),
            c => !in_word(c),
        }
    }

    fn line_comment(&mut self) {
        let line = self.line;
        let mut content = String::new();
        while self.peek(0).is_some_and(|c| c != '\n') {
            content.extend(self.blank());
        }
        self.lexed.comments.push((line, content));
    }

    fn block_comment(&mut self) {
        let line = self.line;
        let mut content = String::new();
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => {
                    depth += 1;
                    content.extend(self.blank());
                }
                (Some('*'), Some('/')) => {
                    depth -= 1;
                    content.extend(self.blank());
                }
                (None, _) => break,
                _ => {}
            }
            content.extend(self.blank());
            if depth == 0 {
                break;
            }
        }
        let lines = content.lines().enumerate();
        let numbered = lines.map(|(n, text)| (line + n, text.to_string()));
        self.lexed.comments.extend(numbered);
    }

    fn string(&mut self) {
        let line = self.line;
        let mut content = String::new();
        self.blank();
        while let Some(c) = self.blank() {
            match c {
                '"' => break,
                '\\' => {
                    content.push(c);
                    content.extend(self.blank());
                }
                _ => content.push(c),
            }
        }
        self.lexed.strings.push((line, content));
    }

    /// The hashes of a raw string that starts here with its `r`.
    fn raw_hashes(&self) -> Option<usize> {
        let mut hashes = 0;
        while self.peek(1 + hashes) == Some('#') {
            hashes += 1;
        }
        (self.peek(1 + hashes) == Some('"')).then_some(hashes)
    }

    fn raw_string(&mut self) {
        let line = self.line;
        let hashes = self.raw_hashes().unwrap_or(0);
        for _opening in 0..hashes + 2 {
            self.blank();
        }
        let mut content = String::new();
        while let Some(c) = self.blank() {
            if c == '"' && (0..hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                for _closing in 0..hashes {
                    self.blank();
                }
                break;
            }
            content.push(c);
        }
        self.lexed.strings.push((line, content));
    }

    /// A character literal or the start of a lifetime.
    fn quote(&mut self) {
        if self.peek(1) == Some('\\') {
            self.blank();
            self.blank();
            self.blank();
            while self.blank().is_some_and(|c| c != '\'') {}
        } else if self.peek(2) == Some('\'') {
            self.blank();
            self.blank();
            self.blank();
        } else {
            self.keep();
        }
    }
}

#[test]
fn comments_and_literals_are_not_code() {
    let text = "let a = \"x // y \\\" z\"; // a comment\nlet /* one /* two */ */ b = 'c';\n";
    let lexed = lex(text);
    let words: Vec<&str> = lexed.code.split_whitespace().collect();
    assert_eq!(words, ["let", "a", "=", ";", "let", "b", "=", ";"]);
    assert_eq!(lexed.code.chars().count(), text.chars().count());
    assert_eq!(lexed.strings, [(1, "x // y \\\" z".to_string())]);
    let comments = [(1, "// a comment"), (2, "/* one /* two */ */")];
    assert_eq!(
        lexed.comments,
        comments.map(|(line, text)| (line, text.to_string()))
    );
}

#[test]
fn a_block_comment_has_each_of_its_lines() {
    let comments = lex("a /* one\n two */ b\n// three\n").comments;
    let lines: Vec<(usize, &str)> = comments
        .iter()
        .map(|(line, text)| (*line, text.as_str()))
        .collect();
    assert_eq!(lines, [(1, "/* one"), (2, " two */"), (3, "// three")]);
}

#[test]
fn raw_strings_end_where_they_say() {
    let lexed = lex("f(r#\"one \" two\"#, br\"three\\\", bar\"four\");\n\n\"five\nsix\"");
    let strings: Vec<(usize, &str)> = lexed
        .strings
        .iter()
        .map(|(line, text)| (*line, text.as_str()))
        .collect();
    assert_eq!(
        strings,
        [
            (1, "one \" two"),
            (1, "three\\"),
            (1, "four"),
            (3, "five\nsix")
        ]
    );
}

#[test]
fn lifetimes_and_characters_are_told_apart() {
    let lexed = lex("fn f<'a>(x: &'a str) { g('\"', '\\'', '\\u{22}', 'b'); h(\"s\") }");
    assert!(lexed.code.contains("<'a>"));
    assert!(lexed.code.contains("h("));
    assert_eq!(lexed.strings, [(1, "s".to_string())]);
}
