//! The keys that an agent file sets, so that defaults replace only the others.

use super::tree::{Kind, Node};
use super::{Error, front_matter};
use std::collections::BTreeSet;

/// The keys of the front matter with dots for nesting: `limits`, `limits.turn`, `limits.turn.usd`.
pub fn keys(text: &str) -> Result<BTreeSet<String>, Error> {
    let mut found = BTreeSet::new();
    if let Some(root) = front_matter(text)? {
        collect(&root, "", &mut found);
    }
    Ok(found)
}

fn collect(node: &Node, above: &str, found: &mut BTreeSet<String>) {
    let Kind::Map(entries) = &node.kind else {
        return;
    };
    for entry in entries {
        let key = match above.is_empty() {
            true => entry.key.clone(),
            false => format!("{above}.{}", entry.key),
        };
        collect(&entry.value, &key, found);
        found.insert(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_keys_have_dots() {
        let found = keys("---\nmodel: x\nlimits:\n  turn: {usd: 2}\n---\nHi").unwrap();
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, ["limits", "limits.turn", "limits.turn.usd", "model"]);
        assert!(keys("Only a prompt.").unwrap().is_empty());
    }
}
