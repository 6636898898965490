//! The answers of the fake model from a file: JSON, a list of prompts and their replies.
//!
//! ```json
//! [
//!   {"when": "tidy up", "replies": ["think hm | call shell {\"command\": \"ls\"}", "say done"]},
//!   {"when": "a pipe", "replies": [["say a | b", "say c"]]},
//!   {"when": "any", "replies": ["fail 529 x2 | say hello"]}
//! ]
//! ```
//!
//! `when` is a part of a prompt, or `any`; the first entry that matches counts. The server answers the newest prompt that
//! an entry matches by its text, so that other prompts in between do not end a chain; `any` matches the newest prompt
//! only. A reply has the syntax of a [`script`]: one text with `|` between its items, or a list of items. The first
//! reply answers the prompt, the next one the results of the first, and so on. A prompt that begins with `do:` is always
//! a script.

use super::script::{self, Step};
use serde_json::Value;
use std::io;
use std::path::Path;

/// The entries of the file. If there are none, the prompts determine the answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    /// None matches any prompt.
    when: Option<String>,
    replies: Vec<Step>,
}

impl Scenario {
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        Self::parse(&text).map_err(|why| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{}: {why}", path.display()),
            )
        })
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let Value::Array(entries) = value else {
            return Err("a scenario is a list of {\"when\", \"replies\"}".to_owned());
        };
        let entries = entries.iter().enumerate();
        let entries = entries.map(|(at, value)| {
            entry(value).map_err(|why| format!("entry {} of the scenario: {why}", at + 1))
        });
        Ok(Self {
            entries: entries.collect::<Result<_, _>>()?,
        })
    }

    /// Whether an entry matches the prompt by its text.
    pub(super) fn names(&self, prompt: &str) -> bool {
        let words = |entry: &Entry| {
            entry
                .when
                .as_ref()
                .is_some_and(|part| prompt.contains(part))
        };
        self.entries.iter().any(words)
    }

    pub(super) fn replies(&self, prompt: &str) -> Option<&[Step]> {
        let fits = |entry: &&Entry| entry.when.as_ref().is_none_or(|part| prompt.contains(part));
        let entry = self.entries.iter().find(fits)?;
        Some(&entry.replies)
    }
}

fn entry(value: &Value) -> Result<Entry, String> {
    let Value::Object(map) = value else {
        return Err("it is no object".to_owned());
    };
    if let Some(key) = map
        .keys()
        .find(|key| !matches!(key.as_str(), "when" | "replies"))
    {
        return Err(format!("`{key}` is neither `when` nor `replies`"));
    }
    let when = match map.get("when").and_then(Value::as_str) {
        None | Some("") => return Err("`when` must be part of a prompt, or \"any\"".to_owned()),
        Some("any") => None,
        Some(part) => Some(part.to_owned()),
    };
    let Some(Value::Array(replies)) = map.get("replies") else {
        return Err("`replies` must be a list".to_owned());
    };
    Ok(Entry {
        when,
        replies: replies.iter().map(reply).collect::<Result<_, _>>()?,
    })
}

fn reply(value: &Value) -> Result<Step, String> {
    match value {
        Value::String(text) => script::reply(text),
        Value::Array(items) => {
            let items: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            script::step(items.ok_or("an item of a reply is a text")?)
        }
        _ => Err("a reply is a text, or a list of texts".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_that_fits_counts() {
        let scenario = Scenario::parse(
            r#"[{"when": "tidy", "replies": ["say one", ["say a | b", "say c"]]},
                {"when": "any", "replies": ["say whatever"]}]"#,
        )
        .unwrap();
        let replies = scenario.replies("please tidy up").unwrap();
        assert_eq!((replies.len(), replies[1].items.len()), (2, 2));
        assert_eq!(scenario.replies("hello").unwrap(), [Step::say("whatever")]);
        assert!(scenario.names("tidy") && !scenario.names("hello"));
        assert_eq!(Scenario::default().replies("hello"), None);
    }

    #[test]
    fn a_mistake_is_told_with_its_entry() {
        for (text, word) in [
            ("{}", "a list"),
            ("[1]", "entry 1"),
            (
                r#"[{"when": "x", "replies": []}, {"when": "", "replies": []}]"#,
                "entry 2",
            ),
            (r#"[{"when": "x", "replies": "say"}]"#, "must be a list"),
            (r#"[{"when": "x", "replys": []}]"#, "`replys`"),
            (r#"[{"when": "x", "replies": ["dance"]}]"#, "`dance`"),
            (r#"[{"when": "x", "replies": [5]}]"#, "a reply is"),
            ("[", "EOF"),
        ] {
            let error = Scenario::parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
