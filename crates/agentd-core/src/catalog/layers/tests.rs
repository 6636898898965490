//! What a project may do to the settings of its user, for all combinations of both.

use super::*;
use crate::catalog::Fault;
use crate::spec::{AgentSpec, Decision, Rule};
use std::collections::BTreeSet;

fn user(text: &str) -> Catalog {
    let mut catalog = Catalog::built_in();
    catalog.extend(text, "config.toml").unwrap();
    catalog
}

fn project(text: &str) -> ProjectSettings {
    ProjectSettings::parse(text, ".agentd/config.toml").unwrap()
}

fn narrowed(own: &str, of_project: &str) -> Result<Catalog, Error> {
    user(own).narrowed(&project(of_project), None)
}

/// The line, the key and the reason of the refusal.
fn refused(own: &str, of_project: &str) -> (usize, String, String) {
    match narrowed(own, of_project).unwrap_err().fault {
        Fault::NotForProjects { line, key, reason } => (line, key, reason),
        other => panic!("{other}"),
    }
}

/// What a new agent without settings of its own gets.
fn spec(catalog: &Catalog) -> AgentSpec {
    let mut spec = AgentSpec::default();
    catalog.agents().apply(&mut spec, &BTreeSet::new());
    spec
}

const LEVELS: [Option<Sandbox>; 4] = [
    None,
    Some(Sandbox::ReadOnly),
    Some(Sandbox::WorkspaceWrite),
    Some(Sandbox::FullAccess),
];
const NETWORKS: [&str; 7] = [
    "",
    "\"on\"",
    "\"off\"",
    "[\"a.example\"]",
    "[\"*.example\", \"b.test:443\"]",
    "[\"a.example:80\", \"b.test\", \"10.0.0.7\"]",
    "[\"*.deep.example\", \"localhost\"]",
];
const MODES: [&str; 4] = ["", "\"on-request\"", "\"always\"", "\"never\""];

fn agents(keys: &[(&str, &str)]) -> String {
    let keys = keys.iter().filter(|(_, value)| !value.is_empty());
    let lines: Vec<String> = keys
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    format!("[agents]\n{}\n", lines.join("\n"))
}

fn level(sandbox: Option<Sandbox>) -> String {
    sandbox.map_or_else(String::new, |level| format!("\"{}\"", level.name()))
}

/// Every place that a tool could try to reach, and whether it may.
fn reached(sandbox: Sandbox, network: Option<&Network>) -> Vec<bool> {
    let hosts = [
        "a.example",
        "b.example",
        "x.deep.example",
        "b.test",
        "10.0.0.7",
        "localhost",
        "other.org",
    ];
    let reaches = |host: &str, port: u16| match network {
        _ if sandbox == Sandbox::FullAccess => true,
        None | Some(Network::On) => true,
        Some(Network::Off) => false,
        Some(Network::Hosts(hosts)) => hosts.allow(host, port),
    };
    let inside = ["10.0.0.7", "127.0.0.1", "192.168.0.1"].map(|address| match network {
        _ if sandbox == Sandbox::FullAccess => true,
        None | Some(Network::On) => true,
        Some(Network::Off) => false,
        Some(Network::Hosts(hosts)) => hosts.allow_address(address.parse().unwrap(), 80),
    });
    let pairs = hosts
        .iter()
        .flat_map(|host| [80, 443].map(|port| (host, port)));
    let outside = pairs.map(|(host, port)| reaches(host, port));
    outside.chain(inside).collect()
}

/// What happens under a mode without a question to the user: a call in the sandbox, a call that leaves it; and whether
/// the user can be asked.
fn unasked(mode: ApprovalMode) -> [bool; 2] {
    match mode {
        ApprovalMode::OnRequest => [true, true],
        ApprovalMode::Always => [false, true],
        ApprovalMode::Never => [true, false],
    }
}

#[test]
fn no_project_grants_more_than_the_user() {
    let mut accepted = 0;
    let mut seen = 0;
    for own_level in LEVELS {
        for of_environment in LEVELS {
            for own_network in NETWORKS {
                let own = agents(&[("sandbox", &level(own_level)), ("network", own_network)]);
                let mut catalog = Catalog::built_in();
                if catalog.extend(&own, "config.toml").is_err() {
                    continue;
                }
                for wanted_level in LEVELS {
                    for wanted_network in NETWORKS {
                        let wanted = agents(&[
                            ("sandbox", &level(wanted_level)),
                            ("network", wanted_network),
                        ]);
                        let Ok(project) = ProjectSettings::parse(&wanted, "p") else {
                            continue;
                        };
                        seen += 1;
                        let Ok(narrowed) = catalog.narrowed(&project, of_environment) else {
                            continue;
                        };
                        accepted += 1;
                        let (before, after) = (spec(&catalog), spec(&narrowed));
                        let effective =
                            |spec: &AgentSpec| spec.sandbox.or(of_environment).unwrap_or_default();
                        let (was, is) = (effective(&before), effective(&after));
                        assert!(width(is) <= width(was), "{own}{wanted}");
                        let was = reached(was, before.network.as_ref());
                        let is = reached(is, after.network.as_ref());
                        let gained = was.iter().zip(&is).any(|(was, is)| *is && !was);
                        assert!(!gained, "{own}{wanted}{after:?}");
                        assert!(after.validate().is_ok(), "{own}{wanted}");
                    }
                }
            }
        }
    }
    assert!(accepted > 300 && accepted < seen, "{accepted} of {seen}");
}

#[test]
fn no_project_asks_less_often_than_the_user() {
    let mut accepted = 0;
    for own in MODES {
        for wanted in MODES {
            let (own, wanted) = (
                agents(&[("approval", own)]),
                agents(&[("approval", wanted)]),
            );
            let Ok(after) = narrowed(&own, &wanted) else {
                continue;
            };
            accepted += 1;
            let was = unasked(spec(&user(&own)).approval.unwrap_or_default());
            let is = unasked(spec(&after).approval.unwrap_or_default());
            assert!(
                was.iter().zip(is).all(|(was, is)| *was || !is),
                "{own}{wanted}"
            );
        }
    }
    assert_eq!(accepted, 12);
    let (line, key, reason) = refused(
        "[agents]\napproval = \"always\"",
        "# ours\n[agents]\napproval = \"never\"",
    );
    assert_eq!((line, key.as_str()), (3, "agents.approval"));
    assert!(reason.contains("not stricter than `always`"), "{reason}");
}

#[test]
fn every_limit_only_becomes_smaller() {
    let all = Limits::default().entries();
    for (key, built_in) in all {
        let text = |value: u64| {
            let value = match key.ends_with("usd") {
                true => format!("{}.{:06}", value / 1_000_000, value % 1_000_000),
                false => value.to_string(),
            };
            format!("[agents.limits]\n{key} = {value}\n")
        };
        for own in [None, Some(1000), Some(1)] {
            let own_text = own.map_or_else(String::new, text);
            let most = own.or(built_in);
            for wanted in [0, 1, 50, 1000, 1001, 2_000_000_000] {
                let found = narrowed(&own_text, &text(wanted));
                if most.is_some_and(|most| wanted > most) {
                    let Err(error) = found else {
                        panic!("{key} = {wanted} over {most:?}");
                    };
                    let text = error.to_string();
                    assert!(text.contains(&format!("`agents.limits.{key}`")), "{text}");
                    assert!(text.contains("line 2"), "{text}");
                    continue;
                }
                let limits = spec(&found.unwrap()).limits.entries();
                let after = limits.iter().find(|(known, _)| *known == key).unwrap();
                assert_eq!(after.1, Some(wanted), "{key}");
            }
        }
    }
}

#[test]
fn rules_are_added_and_the_users_stay() {
    let own = "[agents]\npermissions = [{ tool = \"shell\", pattern = \"git *\", decision = \"allow\" }]\n\
               pass_env = [\"DATABASE_URL\"]\n";
    let wanted = "[agents]\npermissions = [{ tool = \"shell\", pattern = \"git push*\", decision = \"deny\" }]\n";
    let before = spec(&user(own));
    let after = spec(&narrowed(own, wanted).unwrap());
    assert_eq!(after.permissions[..1], before.permissions[..]);
    let is_strict = |rule: &Rule| rule.decision != Decision::Allow;
    assert!(after.permissions[1..].iter().all(is_strict));
    assert_eq!(after.permissions.len(), 2);
    assert_eq!((after.pass_env, after.pass), (before.pass_env, before.pass));
}

#[test]
fn preferences_and_models_are_the_projects() {
    let own =
        "[agents]\nreasoning = \"low\"\nfast = true\nprovider = \"openai\"\nmodel = \"gpt-5\"\n";
    let wanted = "[agents]\nreasoning = \"high\"\nverbosity = \"low\"\nfast = false\n";
    let after = narrowed(own, wanted).unwrap();
    let given = spec(&after);
    assert_eq!(given.reasoning, Some(crate::spec::Reasoning::High));
    assert_eq!(given.verbosity, Some(crate::spec::Verbosity::Low));
    assert_eq!(given.fast, Some(false));
    let chosen = |of_project: &str, keyed: &[&str]| {
        let keyed = keyed.iter().map(|&name| name.to_owned()).collect();
        let catalog = narrowed(own, of_project).unwrap();
        let choice = catalog.choose(None, None, &keyed).unwrap();
        format!("{}/{}", choice.provider.name, choice.model)
    };
    assert_eq!(chosen(wanted, &[]), "openai/gpt-5");
    // A model alone is chosen as with --model; a provider alone has its own default model.
    let claude = "[agents]\nmodel = \"claude-sonnet-5-5\"\n";
    assert_eq!(
        chosen(claude, &["anthropic"]),
        "anthropic/claude-sonnet-5-5"
    );
    assert_eq!(
        chosen("[agents]\nmodel = \"gpt-5-mini\"", &[]),
        "openai/gpt-5-mini"
    );
    assert_eq!(
        chosen("[agents]\nprovider = \"gemini\"", &[]),
        "gemini/gemini-2.5-flash"
    );
    let catalog = narrowed(own, claude).unwrap();
    let choice = catalog
        .choose(Some("demo"), None, &BTreeSet::new())
        .unwrap();
    assert_eq!(
        choice.model, "demo",
        "an explicit provider has its own model"
    );
    let (line, key, reason) = refused(own, "[agents]\nprovider = \"evil\"");
    assert_eq!((line, key.as_str()), (2, "agents.provider"));
    assert!(reason.contains("unknown provider `evil`"), "{reason}");
}

#[test]
fn of_two_projects_the_inner_one_narrows_the_outer_one() {
    let outer = narrowed("", "[agents]\nsandbox = \"read-only\"\n").unwrap();
    let wider = outer.narrowed(&project("[agents]\nsandbox = \"workspace-write\"\n"), None);
    assert!(wider.unwrap_err().to_string().contains("`read-only`"));
    let hosts = "[agents]\nnetwork = [\"a.example\", \"b.example\"]\n";
    let outer = narrowed("", hosts).unwrap();
    let inner = outer.narrowed(
        &project("[agents]\nnetwork = [\"b.example\", \"c.example\"]\n"),
        None,
    );
    let network = spec(&inner.unwrap()).network.unwrap();
    assert_eq!(network.to_string(), "b.example");
    let none = outer.narrowed(&project("[agents]\nnetwork = [\"c.example\"]\n"), None);
    assert_eq!(spec(&none.unwrap()).network, Some(Network::Off));
}

#[test]
fn a_network_cannot_be_narrowed_without_a_sandbox() {
    let own = "[agents]\nsandbox = \"full-access\"\n";
    let (_, key, reason) = refused(own, "[agents]\nnetwork = \"off\"\n");
    assert_eq!(key, "agents.network");
    assert!(reason.contains("set `sandbox` too"), "{reason}");
    let both = "[agents]\nsandbox = \"workspace-write\"\nnetwork = \"off\"\n";
    assert_eq!(
        spec(&narrowed(own, both).unwrap()).network,
        Some(Network::Off)
    );
}
