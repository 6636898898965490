//! Reads a spec from a journal or a session file, also one that an earlier version wrote: its key `reasoning` was
//! `thinking`. Agent files and the API have only the new key.

use super::AgentSpec;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

/// For `serde(deserialize_with)`.
pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Box<AgentSpec>, D::Error> {
    let mut spec = Value::deserialize(from)?;
    rename(&mut spec);
    if let Some(Value::Object(kinds)) = spec.get_mut("agents") {
        kinds.values_mut().for_each(rename);
    }
    serde_json::from_value(spec)
        .map(Box::new)
        .map_err(de::Error::custom)
}

fn rename(settings: &mut Value) {
    let Value::Object(settings) = settings else {
        return;
    };
    if let Some(value) = settings.remove("thinking") {
        settings.entry("reasoning").or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Body;
    use crate::spec::Reasoning;

    #[test]
    fn an_old_spec_is_read_and_written_with_the_new_key() {
        let old = r#"{"spec":{"thinking":"low","limits":{"turn":{"usd":2.5}},"agents":{"tester":{"thinking":"high"}}}}"#;
        let body = Body::from_json("spec_set", 1, old).unwrap();
        let Body::SpecSet(set) = &body else {
            panic!("{body:?}");
        };
        assert_eq!(set.spec.reasoning, Some(Reasoning::Low));
        assert_eq!(set.spec.agents["tester"].reasoning, Some(Reasoning::High));
        let new = body.to_json().unwrap().unwrap();
        assert!(!new.contains("thinking"), "{new}");
        assert_eq!(Body::from_json("spec_set", 2, &new).unwrap(), body);
    }

    #[test]
    fn an_unknown_key_is_still_an_error() {
        let wrong = r#"{"spec":{"thinkin":"low"}}"#;
        assert!(Body::from_json("spec_set", 1, wrong).is_err());
        assert!(serde_json::from_str::<AgentSpec>(r#"{"thinking":"low"}"#).is_err());
        assert!(crate::spec::parse("---\nthinking: low\n---\n").is_err());
    }
}
