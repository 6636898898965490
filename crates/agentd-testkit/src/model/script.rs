//! Scripts: prompts that tell the fake model what to do.
//!
//! A prompt that begins with `do:` is a script. `;;` separates replies, and `|` separates the items of one reply. The
//! first reply answers the prompt, the second the results of the first, and so on.
//!
//! ```text
//! do: think I should look | call shell {"command": "ls"} | call shell {"command": "pwd"} ;; say done
//! ```
//!
//! | item | what happens |
//! | --- | --- |
//! | `say TEXT` | text, in a few deltas |
//! | `slowly MS TEXT` | text, a word at a time, MS milliseconds apart |
//! | `think TEXT` | thinking, signed |
//! | `call NAME JSON` | a tool call |
//! | `native` | a block that only this provider knows |
//! | `search QUERY` | a search that the provider runs, and its result |
//! | `cite TEXT` | text with the source that the search found |
//! | `pause` | the provider pauses the reply here, if its format has that |
//! | `fail STATUS [SECONDS] [xN]` | an error, N times (once), with `retry-after` |
//! | `drop EVENTS [xN]` | the stream breaks after this many events |
//! | `malformed [xN]` | an event that is not JSON |
//! | `overflow BYTES` | a request larger than that is refused as too long |
//! | `echo STATUS` | an error that repeats the key; with 200 within the stream |
//! | `flood BYTES` | a reply of at least this many bytes |
//! | `hang [EVENTS]` | no answer after this many events (one) |
//! | `deltas N` | the text that follows comes in N deltas |
//! | `chunks BYTES` | the body is sent in chunks of this size, wherever they end |
//!
//! The request determines whether the reply is streamed; faults apply to a plain body too. A prompt that is not a script
//! is looked up in the [`super::scenario`], or else repeated.

use serde_json::Value;
use std::time::Duration;

/// One reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    pub items: Vec<Item>,
    pub faults: Vec<Fault>,
    /// How many bytes of the body are sent together; none means one event at a time.
    pub chunk: Option<usize>,
}

/// An item of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Text {
        text: String,
        deltas: usize,
        pause: Duration,
    },
    Thinking(String),
    Call {
        name: String,
        arguments: Value,
    },
    Native,
    /// A call of the provider's own search.
    Search(String),
    /// What the search before it found.
    Found,
    /// Text with the source that a search found.
    Cited(String),
    Pause,
}

/// A fault of the reply, and how often it happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub kind: FaultKind,
    pub times: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    Status {
        status: u16,
        retry_after: Option<u64>,
    },
    Drop {
        after: usize,
    },
    Malformed,
    Overflow {
        bytes: usize,
    },
    /// An error with the key in it.
    Echo {
        status: u16,
    },
    /// A reply that has at least this many bytes.
    Flood {
        bytes: usize,
    },
    /// Nothing comes after this many events.
    Hang {
        after: usize,
    },
}

impl Step {
    /// A reply that consists of this text.
    pub fn say(text: impl Into<String>) -> Self {
        let text = Item::Text {
            text: text.into(),
            deltas: 3,
            pause: Duration::ZERO,
        };
        Self {
            items: vec![text],
            ..Self::default()
        }
    }
}

/// A call of the shell tool, as an item of a script.
pub fn shell(command: &str) -> String {
    format!("call shell {}", serde_json::json!({"command": command}))
}

/// Whether a prompt is a script.
pub fn is_script(prompt: &str) -> bool {
    prompt.trim_start().starts_with("do:")
}

/// The replies that a prompt asks for; none if it is not a script.
pub fn parse(prompt: &str) -> Option<Result<Vec<Step>, String>> {
    let script = prompt.trim().strip_prefix("do:")?;
    Some(script.split(";;").map(reply).collect())
}

/// One reply, its items separated by `|`.
pub fn reply(text: &str) -> Result<Step, String> {
    step(text.split('|'))
}

/// One reply of these items.
pub fn step<'a>(items: impl IntoIterator<Item = &'a str>) -> Result<Step, String> {
    let mut step = Step::default();
    let mut deltas = 3;
    for item in items {
        let item = item.trim();
        let (verb, rest) = item.split_once(' ').unwrap_or((item, ""));
        let rest = rest.trim();
        match verb {
            "" => {}
            "deltas" => deltas = number(rest)?,
            "chunks" => step.chunk = Some(number::<usize>(rest)?.max(1)),
            "say" => step.items.push(Item::Text {
                text: rest.to_owned(),
                deltas,
                pause: Duration::ZERO,
            }),
            "slowly" => {
                let (millis, text) = rest.split_once(' ').unwrap_or((rest, ""));
                step.items.push(Item::Text {
                    text: text.to_owned(),
                    deltas: text.split(' ').count(),
                    pause: Duration::from_millis(number(millis)?),
                });
            }
            "think" => step.items.push(Item::Thinking(rest.to_owned())),
            "native" => step.items.push(Item::Native),
            "search" => step
                .items
                .extend([Item::Search(rest.to_owned()), Item::Found]),
            "cite" => step.items.push(Item::Cited(rest.to_owned())),
            "pause" => step.items.push(Item::Pause),
            "call" => {
                let (name, json) = rest.split_once(' ').unwrap_or((rest, "{}"));
                let arguments =
                    serde_json::from_str(json).map_err(|error| format!("`{item}`: {error}"))?;
                let name = name.to_owned();
                step.items.push(Item::Call { name, arguments });
            }
            "fail" | "drop" | "malformed" | "overflow" | "echo" | "flood" | "hang" => {
                step.faults.push(fault(verb, rest)?);
            }
            _ => return Err(format!("`{verb}` is not something the fake model can do")),
        }
    }
    Ok(step)
}

fn fault(verb: &str, rest: &str) -> Result<Fault, String> {
    let mut times = 1;
    let mut numbers = Vec::new();
    for word in rest.split_whitespace() {
        match word.strip_prefix('x') {
            Some(count) => times = number(count)?,
            None => numbers.push(number::<u64>(word)?),
        }
    }
    let first = numbers.first().copied().unwrap_or(0);
    let kind = match verb {
        "fail" => FaultKind::Status {
            status: u16::try_from(first).map_err(|error| error.to_string())?,
            retry_after: numbers.get(1).copied(),
        },
        "drop" => FaultKind::Drop {
            after: first as usize,
        },
        "echo" => {
            times = usize::MAX;
            FaultKind::Echo {
                status: u16::try_from(first).map_err(|error| error.to_string())?,
            }
        }
        "flood" => {
            times = usize::MAX;
            FaultKind::Flood {
                bytes: first as usize,
            }
        }
        "malformed" => FaultKind::Malformed,
        // A request that is too long stays too long.
        "overflow" => {
            times = usize::MAX;
            FaultKind::Overflow {
                bytes: first as usize,
            }
        }
        _ => {
            times = usize::MAX;
            FaultKind::Hang {
                after: (first as usize).max(1),
            }
        }
    };
    Ok(Fault { kind, times })
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse()
        .map_err(|error: T::Err| format!("`{text}` is not a number: {error}"))
}

/// The text in this many pieces. No piece is empty, unless the text is.
pub fn pieces(text: &str, deltas: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let size = chars.len().div_ceil(deltas.max(1)).max(1);
    chars
        .chunks(size)
        .map(|chunk| chunk.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_replies_of_items() {
        let script =
            r#"do: fail 429 2 x3 | think hm | call shell {"command":"ls"} ;; deltas 2 | say hi"#;
        let steps = parse(script).unwrap().unwrap();
        assert_eq!(steps.len(), 2);
        assert_eq!(
            steps[0].faults,
            [Fault {
                kind: FaultKind::Status {
                    status: 429,
                    retry_after: Some(2)
                },
                times: 3
            }]
        );
        assert_eq!(steps[0].items.len(), 2);
        let Item::Text { text, deltas, .. } = &steps[1].items[0] else {
            panic!("no text")
        };
        assert_eq!((text.as_str(), *deltas), ("hi", 2));
    }

    #[test]
    fn what_is_no_script_is_left_alone_and_a_bad_one_is_refused() {
        assert_eq!(parse("what is this?"), None);
        assert!(parse("do: dance").unwrap().is_err());
        assert!(parse("do: call shell {").unwrap().is_err());
    }

    #[test]
    fn pieces_add_up() {
        for deltas in 1..10 {
            assert_eq!(pieces("häppy days", deltas).concat(), "häppy days");
        }
    }
}
