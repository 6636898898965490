//! A project's own settings, `.agentd/config.toml`: preferences, and what narrows the user's own settings. What it may
//! never set is refused here; what would widen the user's settings is refused in `layers`, where these are known.

use super::error::{Error, Fault};
use super::file::tree;
use crate::spec::{
    AgentSpec, ApprovalMode, Decision, Kind, LimitDefaults, Network, Node, Path, Reasoning, Rule,
    Sandbox, Verbosity, from_node,
};
use serde::Deserialize;

/// The settings of a project's file.
#[derive(Clone, Debug)]
pub struct ProjectSettings {
    pub(super) agents: Agents,
    /// The file as a tree, for the lines of later errors.
    root: Node,
    name_of_file: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    agents: Agents,
}

/// `[agents]` of a project.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Agents {
    pub provider: Option<String>,
    pub model: Option<String>,
    pub reasoning: Option<Reasoning>,
    pub verbosity: Option<Verbosity>,
    pub fast: Option<bool>,
    pub sandbox: Option<Sandbox>,
    pub network: Option<Network>,
    pub approval: Option<ApprovalMode>,
    pub permissions: Vec<Rule>,
    pub limits: LimitDefaults,
}

/// What only the user may set, and why.
const OF_USER: [(&[&str], &str); 14] = [
    (
        &["providers"],
        "a project may not define providers: it could send your conversations and your key to another address",
    ),
    (
        &["models"],
        "a project may not define models: limits in dollars depend on their prices",
    ),
    (&["daemon"], "a project may not change the daemon"),
    (&["ui"], "a project may not change your terminal"),
    (&["backup"], "a project may not change your backups"),
    (&["retention"], "a project may not choose what is deleted"),
    (
        &["notify"],
        "a project may not choose where notifications are sent",
    ),
    (
        &["agents", "pass"],
        "a project may not give your services to tools",
    ),
    (
        &["agents", "pass_env"],
        "a project may not give your variables to tools",
    ),
    (
        &["agents", "server_tools"],
        "a project may not switch on tools of the provider: they cost money, and the provider sees what they are used for",
    ),
    (
        &["agents", "mcp"],
        "the MCP servers of a project are in `.mcp.json`",
    ),
    (
        &["agents", "env"],
        "a project may not set variables of tools",
    ),
    (
        &["agents", "writable"],
        "a project may not widen the sandbox",
    ),
    (
        &["agents", "readable"],
        "a project may not widen the sandbox",
    ),
];

impl ProjectSettings {
    /// Reads a project's file. One forbidden key makes the whole file invalid, so that no part of it counts by accident.
    pub fn parse(text: &str, name_of_file: &str) -> Result<Self, Error> {
        read(text, name_of_file).map_err(|fault| fault.in_file(name_of_file))
    }

    /// The rules that it adds. They only `ask` and `deny`.
    pub fn rules(&self) -> &[Rule] {
        &self.agents.permissions
    }

    /// The error about a key of `[agents]` that is not narrower than the user's own setting.
    pub(super) fn wider(&self, key: &[&str], reason: impl Into<String>) -> Error {
        refused(&self.root, &below_agents(key), reason).in_file(&self.name_of_file)
    }
}

fn below_agents(key: &[&str]) -> Path {
    key.iter()
        .fold(Path::key("agents"), |path, key| path.then(key))
}

fn refused(root: &Node, path: &Path, reason: impl Into<String>) -> Fault {
    Fault::not_for_projects(root.line_of(path), path.to_string(), reason)
}

fn read(text: &str, name_of_file: &str) -> Result<ProjectSettings, Fault> {
    let root = tree(text)?;
    for (keys, reason) in OF_USER {
        if has(&root, keys) {
            let mut path = Path::default();
            for key in keys {
                path = path.then(key);
            }
            return Err(refused(&root, &path, reason));
        }
    }
    let file: File = from_node(&root)?;
    check(&root, &file.agents)?;
    Ok(ProjectSettings {
        agents: file.agents,
        name_of_file: name_of_file.to_owned(),
        root,
    })
}

/// Whether the file has this key.
fn has(node: &Node, keys: &[&str]) -> bool {
    let Some((first, rest)) = keys.split_first() else {
        return true;
    };
    let Kind::Map(entries) = &node.kind else {
        return false;
    };
    let mut found = entries.iter().filter(|entry| entry.key == **first);
    found.any(|entry| has(&entry.value, rest))
}

fn check(root: &Node, agents: &Agents) -> Result<(), Fault> {
    let wider = |key: &str, reason: &str| Err(refused(root, &below_agents(&[key]), reason));
    if agents.sandbox == Some(Sandbox::FullAccess) {
        return wider(
            "sandbox",
            "a project may only narrow the sandbox: write `read-only` or `workspace-write`",
        );
    }
    if agents.network == Some(Network::On) {
        return wider(
            "network",
            "a project may only narrow the network: write `off` or a list of hosts",
        );
    }
    let rules = below_agents(&["permissions"]);
    for (index, rule) in agents.permissions.iter().enumerate() {
        if rule.decision == Decision::Allow {
            let reason = "a project may only `ask` and `deny`; only the user may allow calls";
            return Err(refused(root, &rules.clone().at(index), reason));
        }
    }
    for (key, name) in [("provider", &agents.provider), ("model", &agents.model)] {
        if name.as_ref().is_some_and(|name| name.trim().is_empty()) {
            let path = below_agents(&[key]);
            let reason = "it is empty; give it a value, or remove it";
            return Err(Fault::invalid(
                root.line_of(&path),
                path.to_string(),
                reason,
            ));
        }
    }
    let sample = AgentSpec {
        permissions: agents.permissions.clone(),
        sandbox: agents.sandbox,
        network: agents.network.clone(),
        ..AgentSpec::default()
    };
    sample.validate().map_err(|problem| {
        let path = problem.below("agents");
        Fault::invalid(root.line_of(&path), path.to_string(), problem.reason())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<Rule> {
        let read = ProjectSettings::parse(text, "config.toml").unwrap();
        read.rules().to_vec()
    }

    #[test]
    fn a_project_asks_and_denies() {
        let text = "[agents]\npermissions = [\n  { tool = \"shell\", pattern = \"git push*\", decision = \"ask\" },\n  \
                    { tool = \"write_file\", pattern = \"*.lock\", decision = \"deny\" },\n]\n";
        let decisions: Vec<Decision> = rules(text).iter().map(|rule| rule.decision).collect();
        assert_eq!(decisions, [Decision::Ask, Decision::Deny]);
        assert_eq!(rules(""), []);
    }

    #[test]
    fn what_only_the_user_may_set_is_refused_with_its_line() {
        for (text, line, key, what) in [
            (
                "[agents]\npermissions = [{ tool = \"shell\", decision = \"allow\" }]",
                2,
                "agents.permissions[0]",
                "only the user may allow",
            ),
            (
                "[agents]\nsandbox = \"full-access\"",
                2,
                "agents.sandbox",
                "only narrow",
            ),
            (
                "[agents]\n\nnetwork = \"on\"",
                3,
                "agents.network",
                "only narrow",
            ),
            (
                "[agents]\npass = [\"ssh-agent\"]",
                2,
                "agents.pass",
                "services",
            ),
            (
                "[agents]\npass_env = [\"GITHUB_TOKEN\"]",
                2,
                "agents.pass_env",
                "variables",
            ),
            (
                "[agents]\nserver_tools = [\"web_search\"]",
                2,
                "agents.server_tools",
                "tools of the provider",
            ),
            (
                "[agents]\nenv = { PATH = \"/x\" }",
                2,
                "agents.env",
                "variables",
            ),
            (
                "[agents]\nwritable = [\"/\"]",
                2,
                "agents.writable",
                "sandbox",
            ),
            (
                "[agents]\nreadable = [\"/\"]",
                2,
                "agents.readable",
                "sandbox",
            ),
            (
                "\n[providers.x]\nbase_url = \"http://evil\"",
                2,
                "providers",
                "another address",
            ),
            ("[models.x]\nwindow = 1", 1, "models", "prices"),
            ("[daemon]\nlog = \"debug\"", 1, "daemon", "daemon"),
            ("[ui]\ntheme = \"dark\"", 1, "ui", "terminal"),
            ("[backup]\nkeep = 1", 1, "backup", "backups"),
            ("[retention]\noneshots = \"1d\"", 1, "retention", "deleted"),
            ("[notify]\ndesktop = true", 1, "notify", "notifications"),
        ] {
            let error = ProjectSettings::parse(text, "config.toml").unwrap_err();
            let Fault::NotForProjects {
                line: found,
                key: named,
                reason,
            } = &error.fault
            else {
                panic!("{error}");
            };
            assert_eq!((*found, named.as_str()), (line, key), "{error}");
            assert!(reason.contains(what), "{error}");
        }
    }

    #[test]
    fn a_mistake_is_an_error_with_its_line() {
        for (text, line, what) in [
            (
                "[agents]\nsandbx = \"read-only\"",
                2,
                "did you mean `sandbox`?",
            ),
            ("[agents]\nhooks = {}", 2, "unknown key"),
            ("[agents]\nmodel = \" \"", 2, "empty"),
            ("[agents]\nverbosity = \"brief\"", 2, "low, medium, high"),
            (
                "[agents]\n[agents.limits]\nmax_iteration = 2",
                3,
                "max_iterations",
            ),
            (
                "[agents]\npermissions = [{ tool = \"\", decision = \"deny\" }]",
                2,
                "",
            ),
            ("not toml", 1, "TOML"),
        ] {
            let error = ProjectSettings::parse(text, "config.toml").unwrap_err();
            let error = error.to_string();
            assert!(error.contains(&format!("line {line}")), "{error}");
            assert!(error.contains(what), "{error}");
        }
    }
}
