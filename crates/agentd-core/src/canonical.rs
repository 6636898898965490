//! JSON in one order. A dependency makes `serde_json` keep the keys of an object in the order in which they were written,
//! so the same object can have several texts. What is hashed, compared as text or sent to a model has its keys sorted.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The value with the keys of all its objects sorted.
pub fn sorted(mut value: Value) -> Value {
    value.sort_all_objects();
    value
}

/// The text of an object with sorted keys.
pub fn text(object: Map<String, Value>) -> String {
    sorted(Value::Object(object)).to_string()
}

/// For `serde(deserialize_with)`: free JSON in a type that is hashed.
pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    Value::deserialize(from).map(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Body;
    use crate::spec::AgentSpec;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_level_is_sorted() {
        let written = parsed(r#"{"b":[{"z":1,"a":{"y":2,"x":3}}],"a":null}"#);
        let expected = r#"{"a":null,"b":[{"a":{"x":3,"y":2},"z":1}]}"#;
        assert_eq!(sorted(written).to_string(), expected);
    }

    #[test]
    fn the_hooks_of_a_spec_have_one_order_in_ops_journals_and_agent_files() {
        let spec = |hooks: &str| {
            let spec = format!(r#"{{"hooks":{hooks}}}"#);
            serde_json::from_str::<AgentSpec>(&spec).unwrap()
        };
        let one = spec(r#"{"Stop":[{"hooks":[]}],"PreToolUse":[{"matcher":"a","hooks":[]}]}"#);
        let other = spec(r#"{"PreToolUse":[{"hooks":[],"matcher":"a"}],"Stop":[{"hooks":[]}]}"#);
        // `SpecSet` and `Create` record a digest of this text under their op.
        let text = |spec: &AgentSpec| serde_json::to_string(spec).unwrap();
        assert_eq!(text(&one), text(&other));
        assert!(text(&one).contains(r#"{"PreToolUse":[{"hooks":[],"matcher":"a"}],"Stop""#));
        assert_eq!(one.to_markdown(), other.to_markdown());
    }

    #[test]
    fn a_body_that_an_earlier_version_wrote_is_written_again_with_the_same_text() {
        // Earlier versions sorted the arguments of a call when they read them from the model.
        let old = r#"{"call":"c1","arguments":{"command":"ls","cwd":"/"}}"#;
        let body = Body::from_json("call_revised", 1, old).unwrap();
        assert_eq!(body.to_json().unwrap().unwrap(), old);
    }
}
