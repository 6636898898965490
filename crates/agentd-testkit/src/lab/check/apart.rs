//! Long strings are kept once in an export, apart from the events that hold them; this puts them back.

use serde_json::Value;
use std::collections::BTreeMap;

/// Puts the strings that `apart` names (`[[JSON pointer, hash], …]`) back into a body. Says which is
/// missing.
pub fn restore(
    body: &mut Value,
    apart: &Value,
    blobs: &BTreeMap<String, String>,
) -> Result<(), String> {
    // As it is stored: a text that is JSON itself.
    let apart: Value = match apart {
        Value::String(text) => serde_json::from_str(text).map_err(|error| error.to_string())?,
        other => other.clone(),
    };
    for entry in apart.as_array().into_iter().flatten() {
        let pointer = entry[0].as_str().unwrap_or_default();
        let hash = entry[1].as_str().unwrap_or_default();
        let text = blobs.get(hash);
        let text = text.ok_or_else(|| format!("the string {hash} is not in the export"))?;
        let place = body.pointer_mut(pointer);
        let place = place.ok_or_else(|| format!("there is no {pointer} to put a string at"))?;
        *place = Value::String(text.clone());
    }
    Ok(())
}
