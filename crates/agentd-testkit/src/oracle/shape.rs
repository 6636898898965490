//! Small readers and shape tests that all four checkers use; none of them panics.

use serde_json::Value;

use super::violation::Report;

/// Longest tool name that every provider takes.
const MAX_NAME: usize = 64;

pub(super) fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// `[a-zA-Z0-9_-]{1,64}`: tool names everywhere, and Anthropic's tool ids.
pub(super) fn is_word(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

pub(super) fn text_at<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// The array under `key`, or nothing to walk when it is missing or of another type.
pub(super) fn list_at<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The value under `key`, where an explicit null counts as left out.
pub(super) fn given<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|found| !found.is_null())
}

pub(super) fn has_text(value: &Value, key: &str) -> bool {
    text_at(value, key).is_some_and(|text| !blank(text))
}

/// Standard base64 with its padding; providers refuse data URLs and line breaks in these fields.
pub(super) fn is_base64(text: &str) -> bool {
    let letters = text.trim_end_matches('=');
    !letters.is_empty()
        && text.len() - letters.len() <= 2
        && text.len().is_multiple_of(4)
        && letters
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// All four APIs refuse fields they do not know.
pub(super) fn known_fields(report: &mut Report, value: &Value, path: &str, allowed: &[&str]) {
    for key in value.as_object().into_iter().flat_map(|map| map.keys()) {
        report.require(
            allowed.contains(&key.as_str()),
            "unknown_field",
            path,
            format!("field {key:?} is not part of the API"),
        );
    }
}

/// A whole number of at least `least`.
pub(super) fn whole_from(value: &Value, least: u64) -> bool {
    value.as_u64().is_some_and(|number| number >= least)
}

pub(super) fn number_within(value: &Value, low: f64, high: f64) -> bool {
    value
        .as_f64()
        .is_some_and(|number| (low..=high).contains(&number))
}

/// A short description of a value for a violation's detail.
pub(super) fn kind(value: Option<&Value>) -> &'static str {
    match value {
        None => "nothing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "an array",
        Some(Value::Object(_)) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_are_short_and_plain() {
        assert!(is_word("read_file-2"));
        assert!(is_word(&"a".repeat(64)));
        assert!(!is_word(&"a".repeat(65)));
        assert!(!is_word(""));
        assert!(!is_word("fs.read"));
        assert!(!is_word("caf\u{e9}"));
    }

    #[test]
    fn readers_stay_calm_on_other_types() {
        let value = json!(["text"]);
        assert_eq!(text_at(&value, "x"), None);
        assert!(list_at(&value, "x").is_empty());
        assert!(given(&json!({"x": null}), "x").is_none());
        assert!(!has_text(&json!({"x": " \n"}), "x"));
    }

    #[test]
    fn numbers_and_base64() {
        assert!(whole_from(&json!(1), 1));
        assert!(!whole_from(&json!(1.5), 1));
        assert!(!whole_from(&json!(-1), 0));
        assert!(number_within(&json!(1), 0.0, 1.0));
        assert!(!number_within(&json!("1"), 0.0, 1.0));
        assert!(is_base64("aGk="));
        assert!(!is_base64("data:image/png;base64,aGk="));
        assert!(!is_base64(""));
        assert!(!is_base64("aGk"));
        assert!(!is_base64("a=k="));
    }
}
