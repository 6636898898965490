//! A project's own settings, `.agentd/config.toml`: only rules that deny calls or ask about them.

use super::error::{Error, Fault};
use super::file::tree;
use crate::spec::{AgentSpec, Decision, Path, Rule, from_node};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    agents: Agents,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Agents {
    permissions: Vec<Rule>,
}

/// The rules of a project. A file that contains an allow rule is rejected as a whole, because only the user may allow
/// calls.
pub fn project_rules(text: &str, name_of_file: &str) -> Result<Vec<Rule>, Error> {
    read(text).map_err(|fault| fault.in_file(name_of_file))
}

fn read(text: &str) -> Result<Vec<Rule>, Fault> {
    let root = tree(text)?;
    let file: File = from_node(&root)?;
    let rules = file.agents.permissions;
    let wrong =
        |path: &Path, reason: &str| Fault::invalid(root.line_of(path), path.to_string(), reason);
    let all = Path::key("agents").then("permissions");
    for (index, rule) in rules.iter().enumerate() {
        if rule.decision == Decision::Allow {
            let reason = "a project may only `ask` and `deny`; only the user may allow calls";
            return Err(wrong(&all.clone().at(index), reason));
        }
    }
    let sample = AgentSpec {
        permissions: rules,
        ..AgentSpec::default()
    };
    sample
        .validate()
        .map_err(|problem| wrong(&all, problem.reason()))?;
    Ok(sample.permissions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_asks_and_denies() {
        let text = "[agents]\npermissions = [\n  { tool = \"shell\", pattern = \"git push*\", decision = \"ask\" },\n  \
                    { tool = \"write_file\", pattern = \"*.lock\", decision = \"deny\" },\n]\n";
        let rules = project_rules(text, "config.toml").unwrap();
        let decisions: Vec<Decision> = rules.iter().map(|rule| rule.decision).collect();
        assert_eq!(decisions, [Decision::Ask, Decision::Deny]);
        assert_eq!(project_rules("", "config.toml").unwrap(), []);
    }

    #[test]
    fn a_project_allows_nothing_and_sets_nothing_else() {
        for (text, line, what) in [
            (
                "[agents]\npermissions = [{ tool = \"shell\", decision = \"allow\" }]",
                2,
                "only the user may allow",
            ),
            ("[agents]\nsandbox = \"full-access\"", 2, "unknown key"),
            ("[agents]\napproval = \"never\"", 2, "unknown key"),
            ("[agents]\npass = [\"ssh-agent\"]", 2, "unknown key"),
            ("[agents]\npass_env = [\"GITHUB_TOKEN\"]", 2, "unknown key"),
            (
                "[providers.x]\nbase_url = \"http://evil\"",
                1,
                "unknown key",
            ),
            (
                "[agents]\npermissions = [{ tool = \"\", decision = \"deny\" }]",
                2,
                "",
            ),
            ("not toml", 1, "TOML"),
        ] {
            let error = project_rules(text, "config.toml").unwrap_err().to_string();
            assert!(error.contains(&format!("line {line}")), "{error}");
            assert!(error.contains(what), "{error}");
        }
    }
}
