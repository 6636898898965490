//! Commands as words: some models give a command as a list of words instead of a line for the shell. Everything that
//! looks at a command (rules, hooks, approvals, the display) works with the line.

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::fmt::{self, Formatter};

/// The name of the tool that runs commands.
pub const TOOL: &str = "shell";

/// Words that the shell would not take for the name of a program.
const RESERVED: [&str; 17] = [
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadWords {
    #[error("`command` is an empty list; give the program and its arguments")]
    Empty,
    #[error("word {0} of `command` contains a NUL byte")]
    Nul(usize),
}

/// A line for the shell that runs these words as a program and its arguments. The words of `bash -lc LINE` are that line.
pub fn line(words: &[String]) -> Result<String, BadWords> {
    if let Some(at) = words.iter().position(|word| word.contains('\0')) {
        return Err(BadWords::Nul(at + 1));
    }
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    match texts.as_slice() {
        [] => Err(BadWords::Empty),
        ["bash" | "sh", "-c" | "-lc", line] => Ok((*line).to_owned()),
        [program, arguments @ ..] => {
            let is_assignment = program.contains('=');
            let program = match is_assignment || RESERVED.contains(program) {
                true => in_quotes(program),
                false => quoted(program),
            };
            let arguments = arguments.iter().map(|word| quoted(word));
            let words: Vec<String> = std::iter::once(program).chain(arguments).collect();
            Ok(words.join(" "))
        }
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => in_quotes(word),
    }
}

fn in_quotes(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The line of a call of the tool `shell`; `None` if its arguments have no valid command.
pub fn line_of(arguments: &Map<String, Value>) -> Option<String> {
    CommandLine::deserialize(arguments.get("command")?)
        .ok()
        .map(|command| command.0)
}

/// The directory that a call of the tool `shell` names.
pub fn dir_of(arguments: &Map<String, Value>) -> Option<&str> {
    let dir = arguments.get("cwd").or_else(|| arguments.get("workdir"));
    dir.and_then(Value::as_str)
}

/// The arguments of a call of the tool `shell` in the form with a line and `cwd`. Hooks know only this form.
pub fn with_line(mut arguments: Map<String, Value>) -> Map<String, Value> {
    if arguments.get("command").is_some_and(Value::is_array)
        && let Some(line) = line_of(&arguments)
    {
        arguments.insert("command".to_owned(), Value::String(line));
    }
    if !arguments.contains_key("cwd")
        && let Some(dir) = arguments.remove("workdir")
    {
        arguments.insert("cwd".to_owned(), dir);
    }
    arguments
}

/// The argument `command` in either form, as a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine(pub String);

impl<'de> Deserialize<'de> for CommandLine {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(CommandVisitor)
    }
}

struct CommandVisitor;

impl<'de> Visitor<'de> for CommandVisitor {
    type Value = CommandLine;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a command line, or a list of words")
    }

    fn visit_str<E: serde::de::Error>(self, line: &str) -> Result<CommandLine, E> {
        Ok(CommandLine(line.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<CommandLine, A::Error> {
        let mut words: Vec<String> = Vec::new();
        while let Some(word) = from.next_element()? {
            words.push(word);
        }
        line(&words).map(CommandLine).map_err(A::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line_of_words(words: &[&str]) -> Result<String, BadWords> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        line(&words)
    }

    #[test]
    fn words_become_a_line_that_the_shell_reads_as_the_same_words() {
        for (words, expected) in [
            (&["ls"][..], "ls"),
            (
                &["git", "log", "--format=%H", "-n", "3"],
                "git log --format=%H -n 3",
            ),
            (
                &["echo", "a b", "", "$HOME", "it's", "*"],
                r"echo 'a b' '' '$HOME' 'it'\''s' '*'",
            ),
            (&["echo", "a;rm -rf /", "x\ny"], "echo 'a;rm -rf /' 'x\ny'"),
            (&["FOO=1", "x=2"], "'FOO=1' x=2"),
            (&["time", "time"], "'time' time"),
            (&["~/bin/x", "#"], "'~/bin/x' '#'"),
            (&["bash", "-lc", "a | b && c"], "a | b && c"),
            (&["sh", "-c", "echo 'x'"], "echo 'x'"),
            (&["bash", "-c", "a", "b"], "bash -c a b"),
            (&["zsh", "-lc", "a b"], "zsh -lc 'a b'"),
            (&["bash", "-x", "a b"], "bash -x 'a b'"),
        ] {
            assert_eq!(line_of_words(words).as_deref(), Ok(expected));
        }
        assert_eq!(line_of_words(&[]), Err(BadWords::Empty));
        assert_eq!(line_of_words(&["a", "b\0"]), Err(BadWords::Nul(2)));
        assert_eq!(line_of_words(&["bash", "-lc", "\0"]), Err(BadWords::Nul(3)));
    }

    #[test]
    fn both_forms_of_arguments_are_read() {
        let map = |value: Value| value.as_object().cloned().unwrap();
        let words = map(json!({"command": ["ls", "a b"], "workdir": "/tmp", "timeout_ms": 5}));
        assert_eq!(line_of(&words).unwrap(), "ls 'a b'");
        assert_eq!(dir_of(&words), Some("/tmp"));
        let expected = json!({"command": "ls 'a b'", "cwd": "/tmp", "timeout_ms": 5});
        assert_eq!(Value::Object(with_line(words)), expected);
        let line = map(json!({"command": "ls | wc", "cwd": "x"}));
        assert_eq!(line_of(&line).unwrap(), "ls | wc");
        assert_eq!(with_line(line.clone()), line);
        for bad in [
            json!({}),
            json!({"command": 3}),
            json!({"command": ["a", 3]}),
        ] {
            assert_eq!(line_of(&map(bad)), None);
        }
        let read = |value| serde_json::from_value::<CommandLine>(value).unwrap_err();
        assert!(read(json!([])).to_string().contains("empty list"));
        assert!(read(json!(["\0"])).to_string().contains("NUL byte"));
        assert!(
            read(json!(3))
                .to_string()
                .contains("a command line, or a list of words")
        );
    }
}
