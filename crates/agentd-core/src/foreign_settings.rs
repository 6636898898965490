//! A project's `.claude/settings.json`: the settings of another program, of which agentd uses what only restricts agents. The
//! hooks in it are read by [`crate::hook::Config::of_settings`].

use crate::foreign_rule::{ForeignRule, RuleDirs};
use crate::spec::{AgentSpec, Decision, Rule};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Keys without a meaning for agents.
const BESIDE: [&str; 1] = ["$schema"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignSettings {
    /// The rules of `permissions.deny`.
    pub rules: Vec<Rule>,
    pub has_hooks: bool,
    /// What was found and is not used, one line for all settings and one for each rule.
    pub unused: Vec<String>,
}

impl ForeignSettings {
    pub fn parse(text: &str, dirs: RuleDirs<'_>) -> serde_json::Result<Self> {
        let file: Map<String, Value> = serde_json::from_str(text)?;
        let mut found = Self {
            has_hooks: file
                .get("hooks")
                .and_then(Value::as_object)
                .is_some_and(|hooks| !hooks.is_empty()),
            ..Self::default()
        };
        let permissions = file.get("permissions").and_then(Value::as_object);
        let is_beside = |key: &str| BESIDE.contains(&key) || matches!(key, "hooks" | "permissions");
        let own = file.keys().filter(|key| !is_beside(key)).cloned();
        let of_permissions = permissions.into_iter().flat_map(Map::keys);
        let of_permissions = of_permissions.filter(|key| *key != "deny");
        let of_permissions = of_permissions.map(|key| format!("permissions.{key}"));
        // Sorted: whether a JSON object keeps its order depends on how the program is built.
        let own: BTreeSet<String> = own.collect();
        let of_permissions: BTreeSet<String> = of_permissions.collect();
        let keys: Vec<String> = own.into_iter().chain(of_permissions).collect();
        if !keys.is_empty() {
            found.unused.push(format!("not used: {}", keys.join(", ")));
        }
        let deny = permissions.and_then(|it| it.get("deny")?.as_array());
        for rule in deny.into_iter().flatten() {
            match denied(rule, dirs) {
                Ok(rules) => found.rules.extend(rules),
                Err(why) => found.unused.push(format!(
                    "not used: the rule {rule} of permissions.deny: {why}"
                )),
            }
        }
        Ok(found)
    }

    /// Whether there is anything that would be used.
    pub fn is_of_use(&self) -> bool {
        self.has_hooks || !self.rules.is_empty()
    }
}

/// The rules that a rule of `permissions.deny` becomes, or why there are none.
fn denied(rule: &Value, dirs: RuleDirs<'_>) -> Result<Vec<Rule>, String> {
    let text = rule.as_str().ok_or("it is not a text")?;
    let rule = ForeignRule::parse(text).map_err(|error| error.to_string())?;
    let permissions = rule
        .rules(Decision::Deny, dirs)
        .map_err(|error| error.to_string())?;
    let sample = AgentSpec {
        permissions,
        ..AgentSpec::default()
    };
    sample
        .validate()
        .map_err(|problem| problem.reason().to_owned())?;
    Ok(sample.permissions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(file: &Value) -> ForeignSettings {
        let dirs = RuleDirs {
            dir: "/src",
            home: None,
        };
        ForeignSettings::parse(&file.to_string(), dirs).unwrap()
    }

    #[test]
    fn only_denials_and_hooks_are_used_and_the_rest_is_named() {
        let found = parsed(&json!({
            "$schema": "x",
            "env": {"TOKEN": "x"},
            "model": "opus",
            "permissions": {
                "allow": ["Bash(*)"],
                "deny": ["Bash(curl:*)", "WebSearch", "Read(./.env)", 5],
                "defaultMode": "bypassPermissions",
            },
            "hooks": {"Stop": []},
        }));
        assert!(
            found
                .rules
                .iter()
                .all(|rule| rule.decision == Decision::Deny)
        );
        let tools: Vec<&str> = found.rules.iter().map(|rule| rule.tool.as_str()).collect();
        assert_eq!(tools[..3], ["shell", "shell", "read_file"]);
        assert_eq!(
            found.unused,
            [
                "not used: env, model, permissions.allow, permissions.defaultMode",
                "not used: the rule \"WebSearch\" of permissions.deny: agentd has no tool `WebSearch`",
                "not used: the rule 5 of permissions.deny: it is not a text",
            ]
        );
        assert!(found.is_of_use() && found.has_hooks);
    }

    #[test]
    fn a_file_that_only_allows_is_of_no_use() {
        let found = parsed(&json!({"permissions": {"allow": ["Bash"]}, "hooks": {}}));
        assert!(!found.is_of_use(), "{found:?}");
        let dirs = RuleDirs {
            dir: "/",
            home: None,
        };
        assert!(ForeignSettings::parse("[]", dirs).is_err());
    }
}
