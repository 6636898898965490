//! Known keys with invalid values.

use super::errors::refused_front;
use super::*;

#[track_caller]
fn assert_invalid(yaml: &str, key: &str, line: usize, words: &str) {
    match refused_front(yaml) {
        Error::Invalid {
            key: k,
            line: l,
            reason,
        } => {
            assert_eq!((&*k, l), (key, line), "{yaml:?}: {reason}");
            assert!(reason.contains(words), "{yaml:?}: {reason}");
        }
        other => panic!("{yaml:?}: {other:?}"),
    }
}

#[test]
#[rustfmt::skip]
fn a_wrong_type_is_named() {
    for (yaml, key, line, words) in [
        ("model: [a]", "model", 2, "expected text, found a list"),
        ("model:\n  a: b", "model", 2, "expected text, found a mapping"),
        ("tools:\n  - read\n  - [x]", "tools[1]", 4, "expected text"),
        ("tools: {a: b}", "tools", 2, "expected a list"),
        ("limits: 5", "limits", 2, "expected a mapping such as `{key: value}`, found a number"),
        ("limits: []", "limits", 2, "found a list"),
        ("limits:\n  turn: true", "limits.turn", 3, "found true or false"),
        ("limits:\n  max_iterations: many", "limits.max_iterations", 3, "expected a whole number, found text"),
        ("limits:\n  max_iterations: \"5\"", "limits.max_iterations", 3, "found text"),
        ("limits:\n  max_iterations: -1", "limits.max_iterations", 3, "from 0 to 4294967295"),
        ("limits:\n  max_iterations: 4294967296", "limits.max_iterations", 3, "from 0 to 4294967295"),
        ("limits:\n  max_iterations: 1.5", "limits.max_iterations", 3, "from 0 to"),
        ("idle_ms: 18446744073709551616", "idle_ms", 2, "from 0 to 18446744073709551615"),
        ("temperature: hot", "temperature", 2, "expected a number, found text"),
        ("temperature: .nan", "temperature", 2, "finite"),
        ("compact_at: .inf", "compact_at", 2, "finite"),
        ("hooks:\n  a:\n    - 1\n    - -.inf", "hooks.a[1]", 5, "finite"),
        ("on_crash: 5", "on_crash", 2, "not one of: continue, wait"),
        ("on_crash: []", "on_crash", 2, "expected one of: continue, wait, found a list"),
        ("restart: sometimes", "restart", 2, "not one of: always, on_failure, never"),
        ("sandbox: none", "sandbox", 2, "not one of: read-only, workspace-write, full-access"),
        ("network: some", "network", 2, "on, off"),
        ("network: []", "network", 2, "write `off`"),
        ("network: [a.example, http://b.example]", "network[1]", 2, "is not a host"),
        ("sandbox: full-access\nnetwork: [a.example]", "network", 3, "limited to hosts"),
        ("writable: [out]", "writable[0]", 2, "give an absolute path"),
        ("writable: [/srv/../out]", "writable[0]", 2, "contains `..`"),
        ("readable: [/srv/a..b, ~/work/..]", "readable[1]", 2, "contains `..`"),
        ("sandbox: read-only\nwritable: [/x]", "writable", 3, "cannot write"),
        ("sandbox: full-access\nnetwork: off", "network", 3, "cannot be off"),
        ("reasoning: max", "reasoning", 2, "not one of: off, low, medium, high"),
        ("verbosity: brief", "verbosity", 2, "not one of: low, medium, high"),
        ("fast: often", "fast", 2, "expected"),
        ("env:\n  A: [x]", "env.A", 3, "expected text"),
        ("env:\n  A: ~", "env.A", 3, "expected text"),
        ("mcp:\n  x: y", "mcp.x", 3, "expected a mapping"),
        ("permissions:\n- tool: x\n  decision: maybe", "permissions[0].decision", 4, "not one of: allow, ask, deny"),
        ("command: {program: x, contract: other}", "command.contract", 2, "not one of: agent"),
        ("system: hello", "system", 2, "below the closing"),
    ] {
        assert_invalid(yaml, key, line, words);
    }
}

#[test]
fn a_key_without_a_value_is_no_default() {
    for key in ["model", "tools", "temperature", "command", "reasoning"] {
        assert_invalid(&format!("{key}:"), key, 2, "it has no value");
    }
    for key in ["limits", "env", "permissions", "runtime", "idle_ms"] {
        assert_invalid(
            &format!("provider: x\n{key}:\n# c\ncwd: y"),
            key,
            3,
            "found nothing",
        );
    }
    assert_invalid(
        "limits:\n  turn:\n    usd:",
        "limits.turn.usd",
        4,
        "it has no value",
    );
    assert_eq!(
        parse("---\nmodel: null\ntools: ~\nhooks:\n---").unwrap(),
        AgentSpec::default()
    );
}

#[test]
fn a_missing_key_is_named() {
    assert_invalid(
        "\npermissions:\n- decision: ask",
        "permissions[0].tool",
        4,
        "missing",
    );
    assert_invalid(
        "permissions:\n- tool: x",
        "permissions[0].decision",
        3,
        "missing",
    );
    assert_invalid(
        "runtime: acp\ncommand:\n  args: [x]",
        "command.program",
        3,
        "missing",
    );
}

#[test]
#[rustfmt::skip]
fn fields_that_need_or_exclude_each_other() {
    for (yaml, key, line, words) in [
        ("model: x\nruntime: acp", "runtime", 3, "needs a program"),
        ("runtime: command", "runtime", 2, "needs a program"),
        ("model: x\ncommand:\n  program: y", "command", 3, "native runtime starts no program"),
        ("runtime: native\ncommand: {program: y}", "command", 3, "native"),
        ("runtime: acp\ncommand:\n  program: y\n  contract: agent", "command.contract", 5, "only `runtime: command`"),
        ("runtime: command\ncommand:\n  program: y\n  extra_args: [x]", "command.extra_args", 5, "contract"),
        ("runtime: command\ncommand:\n  program: \"\"", "command.program", 4, "expected a path"),
        ("runtime: acp\ncommand:\n  program: y\n  per_turn: true", "command.per_turn", 5, "all its turns"),
        ("runtime: command\ncommand:\n  program: y\n  first_args: [x]", "command.first_args", 5, "per_turn"),
        ("runtime: command\ncommand:\n  program: y\n  later_args: [x]", "command.later_args", 5, "per_turn"),
        ("runtime: command\ncommand:\n  contract: agent\n  per_turn: true", "command.per_turn", 5, "remove one"),
        ("mcp:\n  a: {url: \"http://x\"}\n  b:\n    url: x\n    command: y", "mcp.b", 4, "both"),
        ("mcp:\n  b: {}", "mcp.b", 3, "neither"),
        ("mcp:\n  b: {url: x}", "mcp.b.url", 3, "expected an http://"),
        ("tools: [shell, bash]", "tools[1]", 2, "unknown tool `bash`; the tools are: shell, read_file"),
        ("tools:\n  - shell\n  - raed_file", "tools[1]", 4, "did you mean `read_file`?"),
        ("tools: [reset_conversation]", "tools[0]", 2, "auto_reset"),
        ("notify:\n  to: [desktop, \"https://x\"]", "notify.to[1]", 3, "no address"),
        ("notify: {on: [often]}", "notify.on[0]", 2, "completed"),
        ("permissions:\n- {tool: '*', decision: ask}\n- tool: Shell\n  decision: deny", "permissions[1].tool", 4, "did you mean `shell`?"),
        ("agents:\n  a:\n    tools: [Bash]", "agents.a.tools[0]", 4, "unknown tool `Bash`"),
        ("mcp:\n  a.b:\n    args: [x]", "mcp.a.b", 3, "the name of a server"),
        ("mcp:\n  b:\n    url: x\n    args: [y]", "mcp.b.args", 5, "agentd does not start"),
        ("mcp:\n  b:\n    url: x\n    env: {A: b}", "mcp.b.env", 5, "agentd does not start"),
        ("mcp:\n  b:\n    url: x\n    cwd: /a", "mcp.b.cwd", 5, "agentd does not start"),
        ("mcp:\n  b:\n    command: x\n    headers: {A: b}", "mcp.b.headers", 5, "no HTTP headers"),
        ("mcp:\n  b:\n    command: x\n    timeout_ms: 0", "mcp.b.timeout_ms", 5, "more than 0"),
        ("mcp:\n  a__b: {command: x}", "mcp.a__b", 3, "the name of a server"),
        ("temperature: 2.01", "temperature", 2, "from 0 to 2"),
        ("temperature: -0.1", "temperature", 2, "from 0 to 2"),
        ("compact_at: 0.09", "compact_at", 2, "from 0.1 to 1.0"),
        ("compact_at: 1.1", "compact_at", 2, "from 0.1 to 1.0"),
        ("hooks: [a]", "hooks", 2, "expected a mapping"),
        ("hooks: x", "hooks", 2, "expected a mapping"),
    ] {
        assert_invalid(yaml, key, line, words);
    }
    for yaml in [
        "temperature: 0",
        "temperature: 2",
        "compact_at: 1",
        "compact_at: 0.1",
        "hooks: {}",
    ] {
        parse(&format!("---\n{yaml}\n---\n")).unwrap();
    }
}

#[test]
#[rustfmt::skip]
fn the_needs_of_a_rule_are_checked() {
    let rule = |tool: &str, decision: &str, needs: &str| {
        format!("permissions:\n- tool: {tool}\n  decision: {decision}\n  needs: [{needs}]")
    };
    for needs in ["\"write:~/a\"", "\"read:/srv\", everything", "\"service:gh\"", "\"host:a.org:443\"", "git-config"] {
        super::super::parse(&format!("---\n{}\n---\n", rule("shell", "allow", needs))).unwrap();
    }
    assert_invalid(&rule("shell", "ask", "git-config"), "permissions[0].needs", 5, "only an allow rule");
    assert_invalid(&rule("fetch_url", "allow", "git-config"), "permissions[0].needs", 5, "stay in the sandbox");
    for needs in ["\"write:a\"", "\"service:dbus\"", "all", "\"exec:/bin/sh\""] {
        assert_invalid(&rule("shell", "allow", needs), "permissions[0].needs[0]", 5, "`write:PATH`");
    }
}
