//! Long strings are stored once in an export, separate from the events that contain them; this puts them back.

use serde_json::Value;
use std::collections::BTreeMap;

/// Puts the strings that `apart` names (`[[JSON pointer, hash], …]`, as text) back into a body. Returns an error
/// that names a missing one.
pub fn restore(
    body: &mut Value,
    apart: &Value,
    blobs: &BTreeMap<String, String>,
) -> Result<(), String> {
    let Some(apart) = apart.as_str() else {
        return Ok(());
    };
    let apart: Vec<(String, String)> =
        serde_json::from_str(apart).map_err(|error| format!("`apart` cannot be read: {error}"))?;
    for (pointer, hash) in apart {
        let text = blobs.get(&hash);
        let text = text.ok_or_else(|| format!("the string {hash} is not in the export"))?;
        let place = body.pointer_mut(&pointer);
        let place = place.ok_or_else(|| format!("there is no {pointer} to put a string at"))?;
        *place = Value::String(text.clone());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::restore;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    #[test]
    fn a_string_that_was_taken_out_is_put_back() {
        let blobs = BTreeMap::from([("abc".to_owned(), "long".to_owned())]);
        let mut body = json!({"blocks": [{"type": "text", "text": ""}]});
        let apart = json!(r#"[["/blocks/0/text","abc"]]"#);
        restore(&mut body, &apart, &blobs).unwrap();
        assert_eq!(body["blocks"][0]["text"], "long");
        restore(&mut body, &Value::Null, &blobs).unwrap();
        for wrong in [
            r#"[["/blocks/0/text","x"]]"#,
            r#"[["/nowhere","abc"]]"#,
            "[",
        ] {
            assert!(
                restore(&mut body, &json!(wrong), &blobs).is_err(),
                "{wrong}"
            );
        }
    }
}
