//! No input makes the reader panic, and what it accepts it can write again.

use super::*;

/// Reads arbitrary input.
fn feed(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match parse(&text) {
        Ok(spec) => {
            let file = spec.to_markdown();
            assert_eq!(parse(&file).as_ref(), Ok(&spec), "{text}\n{file}");
        }
        Err(error) => {
            let lines = text.split(['\n', '\r']).count() + 1;
            let line = match &error {
                Error::UnknownKey { line, .. }
                | Error::Invalid { line, .. }
                | Error::DuplicateKey { line, .. }
                | Error::Yaml { line, .. } => *line,
                Error::UnclosedFrontMatter | Error::NotAMapping | Error::TooLarge { .. } => 1,
            };
            assert!((1..=lines).contains(&line), "{error}\n{text}");
            assert!(!error.to_string().is_empty());
        }
    }
}

const CHANGES: &[u8] = b"\0\n\r\t :-#'\"[{&*!|?%,\\~\xff";

/// Small enough to try every change at every byte.
const SMALL: &str = r#"---
model: "x"
limits: &a
  turn: {usd: 2.50}
permissions:
- tool: '*'
  decision: ask
env: {A: b}
hooks: {x: *a}
cwd: |
  x
---

body
"#;

#[test]
fn every_byte_changed() {
    assert!(parse(SMALL).is_ok());
    for at in 0..SMALL.len() {
        for new in CHANGES {
            let mut bytes = SMALL.as_bytes().to_vec();
            bytes[at] = *new;
            feed(&bytes);
        }
    }
    let mut changes = CHANGES.iter().cycle();
    for (at, new) in (0..FULL.len()).zip(&mut changes) {
        let mut bytes = FULL.as_bytes().to_vec();
        bytes[at] = *new;
        feed(&bytes);
    }
}

#[test]
fn every_byte_removed_and_every_end_cut_off() {
    for at in 0..FULL.len() {
        feed(&FULL.as_bytes()[..at]);
        let mut bytes = FULL.as_bytes().to_vec();
        bytes.remove(at);
        feed(&bytes);
    }
}

#[test]
fn random_words() {
    #[rustfmt::skip]
    let words = [
        "---\n",
        "---",
        "...",
        "\n",
        "\r\n",
        "  ",
        "\t",
        "- ",
        ": ",
        ":",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&a ",
        "*a",
        "!t ",
        "|\n",
        ">-\n",
        "\"",
        "'",
        "\\",
        "#",
        "%Y",
        "<<",
        "~",
        "1",
        "-.5",
        "é",
        "\u{feff}",
        "\u{2028}",
        "model",
        "limits",
        "turn",
        "usd",
        "permissions",
        "tool",
        "mcp",
        "hooks",
        "env",
    ];
    let mut seed = 42_u64;
    let mut next = move |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..30_000 {
        let mut text = "---\n".to_owned();
        for _ in 0..next(25) {
            text.push_str(words[next(words.len())]);
        }
        feed(text.as_bytes());
        text.push_str("\n---\n");
        feed(text.as_bytes());
    }
}
