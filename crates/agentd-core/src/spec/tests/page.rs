//! The page about agent files names every key.

use super::full;
use serde_json::Value;

const PAGE: &str = include_str!("../../../../../docs/agents.md");

/// Maps whose keys the user chooses.
const NAMED: [&str; 4] = ["agents", "env", "hooks", "mcp"];

fn keys(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                into.push(key.clone());
                match value {
                    // Skip the names that the user chose, and check the keys below them.
                    Value::Object(named) if ["agents", "mcp"].contains(&key.as_str()) => {
                        named.values().for_each(|value| keys(value, into));
                    }
                    _ if NAMED.contains(&key.as_str()) => {}
                    _ => keys(value, into),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, into)),
        _ => {}
    }
}

#[test]
fn the_page_names_every_key() {
    let mut found = Vec::new();
    keys(&serde_json::to_value(full()).unwrap(), &mut found);
    assert!(found.len() > 40, "{found:?}");
    for key in found {
        assert!(
            PAGE.contains(&format!("`{key}`")),
            "`{key}` is not in docs/agents.md"
        );
    }
}
