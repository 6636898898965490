//! Writes YAML for users: one key per line, and JSON quotes where quotes are needed.

use super::scalar::Scalar;
use crate::canonical;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;

/// A list of words up to this length is written on one line.
const LINE: usize = 80;

/// A value to be written, with its keys in order.
pub(super) enum Out {
    /// One line: a word, a number, an empty list or mapping.
    Line(String),
    List(Vec<Out>),
    Map(Fields),
}

#[derive(Default)]
pub(super) struct Fields(Vec<(String, Out)>);

impl Fields {
    pub fn push(&mut self, key: &str, value: Out) {
        self.0.push((key.to_owned(), value));
    }

    /// Adds a field, unless it has the default value.
    pub fn put<T: Serialize + PartialEq>(&mut self, key: &str, value: &T, default: &T) {
        if value != default {
            self.push(key, leaf(value));
        }
    }

    /// Adds a field that is a mapping, unless everything in it has the default value.
    pub fn put_map(&mut self, key: &str, fields: Self) {
        if !fields.0.is_empty() {
            self.push(key, Out::Map(fields));
        }
    }

    pub fn to_yaml(&self) -> String {
        let mut out = String::new();
        map(&mut out, self, 0);
        out
    }
}

/// A value whose own JSON needs no order: words, numbers, and sorted maps.
pub(super) fn leaf<T: Serialize>(value: &T) -> Out {
    // It fails only for a map whose keys are not strings, and no field is one.
    let value = serde_json::to_value(value).unwrap_or(Value::Null);
    Out::from(canonical::sorted(value))
}

impl From<Value> for Out {
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Line(word(&text)),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(entries) => Self::Map(Fields(
                entries
                    .into_iter()
                    .map(|(key, value)| (key, Self::from(value)))
                    .collect(),
            )),
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::Line(value.to_string()),
        }
    }
}

/// One `key: value` per line.
fn map(out: &mut String, fields: &Fields, indent: usize) {
    for (key, value) in &fields.0 {
        let _ = write!(out, "{:indent$}{}:", "", word(key));
        match value {
            Out::Map(inner) if !inner.0.is_empty() => {
                out.push('\n');
                map(out, inner, indent + 2);
            }
            Out::List(items) if !fits_a_line(items) => {
                out.push('\n');
                list(out, items, indent + 2);
            }
            _ => {
                let _ = writeln!(out, " {}", flow(value));
            }
        }
    }
}

/// One `- item` per line.
fn list(out: &mut String, items: &[Out], indent: usize) {
    for item in items {
        let _ = write!(out, "{:indent$}- ", "");
        match item {
            Out::Map(fields) if !fields.0.is_empty() => {
                let mut inner = String::new();
                map(&mut inner, fields, indent + 2);
                // Its first key follows the dash.
                out.push_str(inner.trim_start_matches(' '));
            }
            _ => {
                let _ = writeln!(out, "{}", flow(item));
            }
        }
    }
}

fn fits_a_line(items: &[Out]) -> bool {
    let mut length = 0;
    items.iter().all(|item| {
        length += 2 + match item {
            Out::Line(line) => line.len(),
            _ => LINE,
        };
        length <= LINE
    })
}

/// The value on one line.
fn flow(value: &Out) -> String {
    match value {
        Out::Line(line) => line.clone(),
        Out::List(items) => {
            let items: Vec<_> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Out::Map(fields) => {
            let pair = |(key, value): &(String, Out)| format!("{}: {}", word(key), flow(value));
            let pairs: Vec<_> = fields.0.iter().map(pair).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

/// A text without quotes if nothing in it can be read as YAML, otherwise quoted.
fn word(text: &str) -> String {
    let harmless = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/' | '@');
    let plain = text.starts_with(|c: char| c.is_alphabetic() || c == '/')
        && text.chars().all(harmless)
        && !text.ends_with(' ')
        && matches!(Scalar::of_plain(text), Scalar::Text(_));
    if plain { text.to_owned() } else { quoted(text) }
}

/// JSON's quotes, which are also YAML's, with more escapes: YAML forbids some characters and treats others as line
/// breaks.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
