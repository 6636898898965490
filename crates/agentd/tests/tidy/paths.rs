//! The paths that a Rust file names, with its imports resolved.
//!
//! `use std::{fs, process as p};` is the paths `std::fs` and `std::process`, and `p::exit` below it is
//! `std::process::exit`. An import applies to the whole file, wherever it is.

use std::collections::HashMap;

use super::lexer;

pub struct Named {
    pub line: usize,
    pub segments: Vec<String>,
    /// It is in a `use`.
    pub import: bool,
    /// What an import is called in this file.
    pub alias: Option<String>,
    /// How many `mod name { … }` of this file are around it.
    pub inside: usize,
}

impl Named {
    /// Whether these segments follow each other somewhere in the path.
    pub fn has(&self, wanted: &[&str]) -> bool {
        self.segments
            .windows(wanted.len())
            .any(|window| window == wanted)
    }

    pub fn first(&self) -> &str {
        self.segments.first().map_or("", String::as_str)
    }

    /// Whether it starts in the crate itself.
    pub fn is_own(&self) -> bool {
        matches!(self.first(), "crate" | "self" | "super" | "Self")
    }

    /// Whether it starts with the name of this crate, not with a variable of that name.
    pub fn is_of_crate(&self, name: &str) -> bool {
        self.first() == name && (self.import || self.segments.len() > 1)
    }

    pub fn shown(&self) -> String {
        self.segments.join("::")
    }
}

/// All of them, in the order of the text.
pub fn named(text: &str) -> Vec<Named> {
    let code = lexer::lex(text).code;
    let mut reader = Reader {
        tokens: tokens(&code),
        at: 0,
        found: Vec::new(),
        names: HashMap::new(),
        depth: 0,
        modules: Vec::new(),
    };
    while let Some(token) = reader.next() {
        match token.text.as_str() {
            "{" => reader.depth += 1,
            "}" => reader.close(),
            "mod" if reader.is_inline_module() => reader.modules.push(reader.depth),
            "use" if reader.peek() != Some("<") => reader.import(&[]),
            word if is_word(word) => reader.path(&token),
            _ => {}
        }
    }
    let Reader {
        mut found, names, ..
    } = reader;
    for named in &mut found {
        if !named.import
            && let Some(full) = names.get(named.first())
        {
            named.segments.splice(0..1, full.iter().cloned());
        }
    }
    found
}

#[derive(Clone)]
struct Token {
    line: usize,
    text: String,
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words (a raw one without its `r#`), `::`, and every other character that is not a space.
fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(c) = rest.chars().next() {
            if let Some(raw) = rest.strip_prefix("r#")
                && is_word(raw)
            {
                rest = raw;
                continue;
            }
            let length = if c.is_alphanumeric() || c == '_' {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                c.len_utf8()
            };
            let (token, after) = rest.split_at(length);
            tokens.push(Token {
                line: number + 1,
                text: token.to_string(),
            });
            rest = after.trim_start();
        }
    }
    tokens
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    found: Vec<Named>,
    /// What each imported name stands for.
    names: HashMap<String, Vec<String>>,
    /// How many braces are open.
    depth: usize,
    /// For each `mod name { … }` around, how many braces were open before it.
    modules: Vec<usize>,
}

impl Reader {
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(|token| token.text.as_str())
    }

    fn take(&mut self, text: &str) -> bool {
        let there = self.peek() == Some(text);
        if there {
            self.at += 1;
        }
        there
    }

    /// After `mod`: whether a name and a brace follow.
    fn is_inline_module(&self) -> bool {
        let brace = self.tokens.get(self.at + 1);
        brace.is_some_and(|token| token.text == "{")
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.modules.pop_if(|before| *before == self.depth);
    }

    /// A path outside imports, of which `first` was just read.
    fn path(&mut self, first: &Token) {
        let mut segments = vec![first.text.clone()];
        while self.peek() == Some("::") {
            let Some(next) = self.tokens.get(self.at + 1).cloned() else {
                break;
            };
            if !is_word(&next.text) {
                break;
            }
            segments.push(next.text);
            self.at += 2;
        }
        self.found.push(Named {
            line: first.line,
            segments,
            import: false,
            alias: None,
            inside: self.modules.len(),
        });
    }

    /// One branch of a use tree, below `prefix`; reads up to the `,`, `}` or `;` after it.
    fn import(&mut self, prefix: &[String]) {
        let mut segments = prefix.to_vec();
        let mut line = 0;
        let mut alias = None;
        loop {
            match self.peek() {
                None | Some("," | "}" | ";") => break,
                Some("{") => {
                    self.at += 1;
                    while self.peek().is_some_and(|text| text != "}" && text != ";") {
                        self.import(&segments);
                        self.take(",");
                    }
                    self.take("}");
                    return;
                }
                Some("as") => {
                    self.at += 1;
                    alias = self.next().map(|token| token.text);
                }
                Some("::") => self.at += 1,
                Some(_) => {
                    if let Some(token) = self.next() {
                        line = token.line;
                        if token.text != "self" || segments.is_empty() {
                            segments.push(token.text);
                        }
                    }
                }
            }
        }
        let alias = alias.or_else(|| segments.last().cloned());
        if let Some(name) = &alias {
            self.names.insert(name.clone(), segments.clone());
        }
        self.found.push(Named {
            line,
            segments,
            import: true,
            alias,
            inside: self.modules.len(),
        });
    }
}

#[cfg(test)]
fn shown(text: &str) -> Vec<(usize, String)> {
    named(text)
        .iter()
        .map(|named| (named.line, named.shown()))
        .collect()
}

#[test]
fn groups_and_aliases_are_spelled_out() {
    let text = "use std::{\n    fs,\n    process::{self as p, Command},\n};\nuse a::b;\nfn f() { p::exit(b::c) }";
    let expected = [
        (2, "std::fs"),
        (3, "std::process"),
        (3, "std::process::Command"),
        (5, "a::b"),
        (6, "fn"),
        (6, "f"),
        (6, "std::process::exit"),
        (6, "a::b::c"),
    ];
    let expected: Vec<(usize, String)> = expected
        .iter()
        .map(|(line, path)| (*line, path.to_string()))
        .collect();
    assert_eq!(shown(text), expected);
}

#[test]
fn raw_identifiers_and_modules_within_a_file_are_understood() {
    let text = "use super::r#continue::Args;\nmod one {\n    fn f() { super::a() }\n}\nfn g() { super::b() }";
    let paths = named(text);
    assert_eq!(paths[0].shown(), "super::continue::Args");
    let inside = |path: &str| {
        paths
            .iter()
            .find(|it| it.shown() == path)
            .map(|it| it.inside)
    };
    assert_eq!(inside("super::a"), Some(1));
    assert_eq!(inside("super::b"), Some(0));
}

#[test]
fn comments_strings_and_precise_captures_name_nothing() {
    let text = "// std::fs\nlet s = \"std::fs\";\nfn f() -> impl X + use<'_> {}";
    assert!(named(text).iter().all(|named| !named.has(&["fs"])));
}

#[test]
fn a_variable_is_not_a_crate() {
    let paths = named("let rand = 1; rand::random(); tokio");
    let of_rand: Vec<bool> = paths
        .iter()
        .filter(|named| named.first() == "rand")
        .map(|named| named.is_of_crate("rand"))
        .collect();
    assert_eq!(of_rand, [false, true]);
}
