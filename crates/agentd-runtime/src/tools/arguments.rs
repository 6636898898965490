//! Parsing a call's arguments into the type that its tool expects.

use super::failure::Failure;
use agentd_core::message::Arguments;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Parses the arguments. The failure names the wrong one and lists what the tool takes.
pub(super) fn read<T: DeserializeOwned>(
    tool: &str,
    parameters: &Value,
    arguments: &Arguments,
) -> Result<T, Failure> {
    let Arguments::Object(map) = arguments else {
        let text = "The arguments were not a JSON object; nothing was run. Send them again.";
        return Err(Failure::new(text));
    };
    serde_path_to_error::deserialize(Value::Object(map.clone())).map_err(|error| {
        let path = error.path().to_string();
        let place = match path.as_str() {
            "." => String::new(),
            path => format!(" `{path}`:"),
        };
        let takes = takes(parameters);
        Failure::new(format!(
            "Invalid arguments for {tool}; nothing was run.{place} {}. {takes}",
            error.inner()
        ))
    })
}

/// The tool's parameters, in one line.
fn takes(parameters: &Value) -> String {
    let required: Vec<&str> = parameters["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let properties = parameters["properties"].as_object();
    let mut each: Vec<String> = Vec::new();
    for (name, schema) in properties.into_iter().flatten() {
        let kind = schema["type"].as_str().unwrap_or("value");
        let optional = match required.contains(&name.as_str()) {
            true => "",
            false => ", optional",
        };
        each.push(format!("`{name}` ({kind}{optional})"));
    }
    match each.is_empty() {
        true => "The tool takes no arguments.".to_owned(),
        false => format!("The tool takes {}.", each.join(", ")),
    }
}

/// A whole number; some models write `10.0` for 10.
pub(super) fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(from)? else {
        return Ok(None);
    };
    if let Some(whole) = number.as_u64() {
        return Ok(Some(whole));
    }
    match number.as_f64() {
        Some(it) if it >= 0.0 && it.fract() == 0.0 && it < 9e15 => Ok(Some(it as u64)),
        _ => Err(D::Error::custom(format!(
            "`{number}` is not a whole number of 0 or more"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::{read, whole};
    use agentd_core::message::Arguments;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Two {
        path: String,
        #[serde(default, deserialize_with = "whole")]
        limit: Option<u64>,
    }

    fn parse(text: &str) -> Result<Two, String> {
        let parameters = json!({
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["path"],
        });
        let arguments = Arguments::parse(text);
        read("look", &parameters, &arguments).map_err(|failure| failure.text().to_owned())
    }

    #[test]
    fn good_ones_are_read() {
        for (text, limit) in [
            (r#"{"path":"a"}"#, None),
            (r#"{"path":"a","limit":null}"#, None),
            (r#"{"path":"a","limit":3}"#, Some(3)),
            (r#"{"path":"a","limit":3.0}"#, Some(3)),
        ] {
            let two = parse(text).unwrap();
            assert_eq!((two.path.as_str(), two.limit), ("a", limit));
        }
    }

    #[test]
    fn a_wrong_one_is_named_with_what_is_expected() {
        for (text, said) in [
            (r#"{}"#, "missing field `path`"),
            (
                r#"{"path":3}"#,
                "`path`: invalid type: integer `3`, expected a string",
            ),
            (
                r#"{"path":"a","limit":-1}"#,
                "`limit`: `-1` is not a whole number",
            ),
            (
                r#"{"path":"a","limit":1.5}"#,
                "`limit`: `1.5` is not a whole number",
            ),
            (
                r#"{"path":"a","limit":"3"}"#,
                "`limit`: invalid type: string",
            ),
            (r#"{"path":"a","lines":3}"#, "unknown field `lines`"),
            ("[", "not a JSON object"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
            assert!(text == "[" || error.contains("`path` (string), `limit` (integer, optional)"));
        }
    }
}
