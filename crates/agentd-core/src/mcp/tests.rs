//! Names, references and settings of servers.

use super::*;
use crate::spec::{AgentSpec, McpServer};
use std::collections::{BTreeMap, BTreeSet};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn program(command: &str, env: &[(&str, &str)]) -> McpServer {
    McpServer {
        command: Some(command.to_owned()),
        env: map(env),
        ..McpServer::default()
    }
}

fn one(entry: McpServer, values: &[(&str, &str)]) -> Server {
    let values = map(values);
    let agent = BTreeMap::from([("x".to_owned(), entry)]);
    let value_of = |name: &str| values.get(name).cloned();
    let mut servers = resolve(
        &agent,
        &BTreeMap::new(),
        &BTreeMap::new(),
        &BTreeSet::new(),
        &value_of,
    );
    servers.remove(0)
}

#[test]
fn names_are_what_every_provider_accepts_and_differ() {
    let long = "a".repeat(100);
    let longer = format!("{long}b");
    let tools = [
        "read",
        "read.file",
        "read/file",
        "",
        &long,
        &longer,
        "größe",
    ];
    let names = tool_names("fs", tools);
    assert_eq!(names[0], "mcp__fs__read");
    // Two tools that would have the same name: neither gets it, whatever their order.
    assert!(names[1].starts_with("mcp__fs__read_file_"), "{}", names[1]);
    assert!(names[2].starts_with("mcp__fs__read_file_"), "{}", names[2]);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    for name in &names {
        assert!(name.len() <= 64 && name.chars().all(is_plain), "{name}");
        assert_eq!(server_of(name), Some("fs"), "{name}");
    }
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    assert_eq!(names, tool_names("fs", tools));
}

#[test]
fn names_do_not_depend_on_the_order_and_a_hostile_list_has_no_equal_ones() {
    let names = tool_names("fs", ["read.file", "read_file", "list.dir"]);
    assert_eq!(names[1], "mcp__fs__read_file");
    assert_eq!(names[2], "mcp__fs__list_dir");
    let turned = tool_names("fs", ["list.dir", "read_file", "read.file"]);
    assert_eq!(
        [&turned[2], &turned[1], &turned[0]],
        [&names[0], &names[1], &names[2]]
    );
    // The name that `read.file` got is the own name of another tool.
    let copied = names[0].strip_prefix("mcp__fs__").unwrap();
    let hostile = ["a", "a", "a", "read.file", "read_file", copied];
    let names = tool_names("fs", hostile);
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), hostile.len(), "{names:?}");
    assert!(names.iter().all(|name| name.len() <= 64));
}

#[test]
fn a_name_of_another_tool_has_no_server() {
    for name in ["shell", "mcp__", "mcp__a", "mcp_a__b"] {
        assert_eq!(server_of(name), None, "{name}");
    }
}

#[test]
fn references_are_replaced_and_a_missing_one_is_named() {
    let entry = program(
        "x",
        &[
            ("A", "Bearer ${TOKEN}"),
            ("B", "${NONE:-7}"),
            ("C", "$5 ${ x"),
        ],
    );
    let server = one(entry.clone(), &[("TOKEN", "secret")]);
    let Ok(Transport::Stdio { env, .. }) = &server.transport else {
        panic!("{server:?}");
    };
    let expected = map(&[("A", "Bearer secret"), ("B", "7"), ("C", "$5 ${ x")]);
    assert_eq!(*env, expected);
    assert!(!format!("{server:?}").contains("secret"));
    let error = one(entry, &[]).transport.unwrap_err();
    assert!(error.contains("agentd secret set TOKEN"), "{error}");
}

#[test]
fn the_variables_that_settings_refer_to_are_known() {
    let entry = program("x", &[("A", "${B} ${C:-d}"), ("E", "$F")]);
    let names = references(&BTreeMap::from([("x".to_owned(), entry)]));
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["B", "C"]);
}

#[test]
fn other_values_are_the_same_settings_and_another_program_is_not() {
    let of = |entry: McpServer| one(entry, &[]).settings;
    assert_eq!(
        of(program("x", &[("A", "1")])),
        of(program("x", &[("A", "2")]))
    );
    assert_ne!(of(program("x", &[])), of(program("y", &[])));
}

#[test]
fn an_agents_own_entry_takes_precedence() {
    let entries = |command: &str| BTreeMap::from([("x".to_owned(), program(command, &[]))]);
    let (own, project) = (entries("own"), entries("project"));
    let servers = resolve(&own, &BTreeMap::new(), &project, &BTreeSet::new(), &|_| {
        None
    });
    assert_eq!(servers.len(), 1);
    assert_eq!(servers[0].source, Source::Agent);
    assert_eq!(servers[0].transport.as_ref().unwrap().to_string(), "own");
}

/// The file of a project chooses the address that a value is sent to.
#[test]
fn a_projects_file_gets_no_key_that_the_users_settings_do_not_name() {
    let entry = McpServer {
        url: Some("https://example.com/mcp".to_owned()),
        headers: map(&[("Authorization", "Bearer ${SOME_KEY:-none}")]),
        ..McpServer::default()
    };
    let entries = BTreeMap::from([("x".to_owned(), entry)]);
    let keys = BTreeSet::from(["SOME_KEY".to_owned(), "OTHER_KEY".to_owned()]);
    let value_of = |_: &str| Some("value".to_owned());
    let of = |spec: &AgentSpec, agent: &BTreeMap<String, McpServer>| {
        let withheld = withheld(spec, keys.clone());
        let mut servers = resolve(agent, &BTreeMap::new(), &entries, &withheld, &value_of);
        servers.remove(0)
    };
    let none = BTreeMap::new();
    let server = of(&AgentSpec::default(), &none);
    assert_eq!(server.source, Source::Project);
    let error = server.transport.unwrap_err();
    assert!(error.contains("add SOME_KEY to `pass_env`"), "{error}");
    let passing = AgentSpec {
        pass_env: vec!["SOME_KEY".to_owned()],
        ..AgentSpec::default()
    };
    assert!(of(&passing, &none).transport.is_ok());
    let naming = AgentSpec {
        mcp: BTreeMap::from([("y".to_owned(), program("z", &[("A", "${SOME_KEY}")]))]),
        ..AgentSpec::default()
    };
    assert!(of(&naming, &none).transport.is_ok());
    let referring = AgentSpec {
        env: map(&[("TOKEN", "${SOME_KEY}")]),
        ..AgentSpec::default()
    };
    assert!(of(&referring, &none).transport.is_ok());
    // The user's own entry gets what it names.
    assert!(of(&AgentSpec::default(), &entries).transport.is_ok());
}

#[test]
fn a_file_of_another_program_is_read() {
    let text = r#"{"mcpServers": {
        "fs": {"command": "npx", "args": ["-y", "server"], "env": {"A": "b"}, "type": "stdio"},
        "docs": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${T}"}},
        "off": {"command": "x", "disabled": true}
    }, "other": 1}"#;
    let found = file::parse(text).unwrap();
    assert_eq!(found.skipped, [""; 0]);
    let servers = found.servers;
    assert_eq!(servers.keys().collect::<Vec<_>>(), ["docs", "fs"]);
    assert_eq!(servers["fs"].args, ["-y", "server"]);
}

/// Regression: one entry that cannot be used made the whole file, and the project with it, untrustable.
#[test]
fn an_unusable_entry_is_skipped_and_named() {
    for (entry, expected) in [
        (r#"{"command": "x", "comand": "y"}"#, "comand"),
        (
            r#"{"type": "sse", "url": "https://x"}"#,
            "a legacy SSE server",
        ),
        ("{}", "neither"),
        (r#"{"command": "x", "read_only": ["y"]}"#, "set it there"),
        ("[]", "expected an object"),
    ] {
        let text = format!(r#"{{"mcpServers": {{"a": {entry}, "b": {{"command": "x"}}}}}}"#);
        let found = file::parse(&text).unwrap();
        assert_eq!(found.servers.keys().collect::<Vec<_>>(), ["b"]);
        let [skipped] = found.skipped.as_slice() else {
            panic!("{found:?}");
        };
        assert!(
            skipped.contains("mcpServers.a") && skipped.contains(expected),
            "{skipped}"
        );
    }
    let found = file::parse(r#"{"mcpServers": {"a b": {"command": "x"}}}"#).unwrap();
    assert!(
        found.skipped[0].contains("the name of a server"),
        "{found:?}"
    );
    assert!(file::parse("{").is_err());
}

#[test]
fn what_a_url_has_as_its_password_or_query_is_a_secret() {
    let entry = McpServer {
        url: Some("https://me:pass-word-1@example.com/mcp?key=${KEY}&mode=x".to_owned()),
        headers: map(&[("Authorization", "Bearer token-12345")]),
        ..McpServer::default()
    };
    let server = one(entry, &[("KEY", "value-of-the-key")]);
    let found = secrets(std::slice::from_ref(&server));
    for secret in ["pass-word-1", "value-of-the-key", "token-12345"] {
        assert!(found.iter().any(|it| it == secret), "{secret}: {found:?}");
    }
}
