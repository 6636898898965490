//! The help: every verb has one, with an example. Users rely on it, so each text is a golden file; `docs/cli.md` consists
//! of the same texts. `AGENTD_WRITE_GOLDEN=1` writes them again.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in what it calls too"
)]

#[path = "fixture/golden.rs"]
mod golden;

use agentd_testkit::harness::Program;
use golden::check;
use std::fs;
use std::process::Output;

/// The greatest width of the help.
const COLUMNS: &str = "100";

/// Each code has a test in tests/cli/exit_codes.rs.
const EXIT_CODES: &str = "\
## Exit codes

| code | meaning |
| --- | --- |
| 0 | success. With `--no-wait` or `--detach`: the prompt is accepted and durable |
| 1 | the turn failed or was lost, the agent failed, the command of `exec` failed, or a check (`verify`, `hooks check`) found something wrong |
| 2 | usage: a wrong argument or setting, a shortened id that several ids begin with, an empty prompt, a file or directory that is missing or cannot be parsed |
| 3 | refused or in conflict: a name that is taken, an old generation, a size past its limit, a prompt that a reset set aside or the user removed |
| 4 | unavailable: no daemon, a disk that cannot be written, a turn that has not ended yet; try again |
| 5 | the turn reached a limit |
| 6 | waiting for you: an approval, a provider's key, a stopped or failed agent, or an imported one that is held. A prompt is accepted and durable |
| 7 | not found: an agent (an archived one too), a conversation, a turn, a prompt, a label or a task |
| 124 | the `--timeout` has passed; the turn continues, and the command of `exec` was ended |
| 130 | interrupted: the turn, or this command by Ctrl-C |

Inside a hook, where 2 blocks, usage errors exit with 64 (`AGENTD_HOOK_EVENT` is set there).

## agentd

";

fn agentd(args: &[&str]) -> Output {
    // The help uses no directory. Its width is that of a terminal, wherever one can be found, or else what COLUMNS says.
    let program = Program::new(env!("CARGO_BIN_EXE_agentd"), "/nowhere", "/");
    let mut command = program.env("COLUMNS", COLUMNS).command();
    command.args(args).output().unwrap()
}

fn help(args: &[&str]) -> String {
    let output = agentd(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The verbs that a help lists, in groups or under one heading.
fn verbs_in(help: &str) -> Vec<String> {
    const HEADINGS: [&str; 6] = [
        "Talk to agents:",
        "Watch agents:",
        "Conversations:",
        "Manage agents:",
        "Service:",
        "Commands:",
    ];
    let mut verbs = Vec::new();
    let mut is_list = false;
    for line in help.lines() {
        is_list = HEADINGS.contains(&line) || is_list && !line.trim().is_empty();
        // A line that is indented further continues the one before.
        let verb = line
            .strip_prefix("  ")
            .filter(|rest| is_list && !rest.starts_with(' '));
        verbs.extend(verb.and_then(|line| line.split_whitespace().next()));
    }
    verbs.retain(|verb| *verb != "help");
    verbs.into_iter().map(str::to_owned).collect()
}

/// Every verb there is, with those below it, and its help.
fn all() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for verb in verbs_in(&help(&["--help"])) {
        let text = help(&[&verb, "--help"]);
        let below = verbs_in(&text);
        found.push((verb.clone(), text));
        for second in below {
            let text = help(&[&verb, &second, "--help"]);
            found.push((format!("{verb} {second}"), text));
        }
    }
    found
}

#[test]
fn every_verb_of_the_design_is_there() {
    let verbs = verbs_in(&help(&["--help"]));
    for verb in [
        "run",
        "create",
        "start",
        "stop",
        "restart",
        "reset",
        "send",
        "interrupt",
        "continue",
        "wait",
        "approve",
        "deny",
        "list",
        "status",
        "show",
        "logs",
        "replay",
        "conversations",
        "tasks",
        "edit",
        "set",
        "apply",
        "rename",
        "checkpoint",
        "export",
        "import",
        "rm",
        "purge",
        "completions",
        "config",
        "daemon",
        "acp",
        "agent",
        "demo",
        "doctor",
        "verify",
    ] {
        assert!(verbs.iter().any(|found| found == verb), "{verb}: {verbs:?}");
    }
}

#[test]
fn every_verb_has_an_example() {
    for (verb, help) in all() {
        let examples = help.split("Examples:\n").nth(1).unwrap_or_default();
        let example = format!("agentd {verb}");
        assert!(examples.contains(&example), "{verb}: {help}");
    }
    assert!(help(&["--help"]).contains("Examples:\n  agentd demo"));
}

#[test]
fn every_verb_has_json() {
    for (verb, help) in all() {
        // These have nothing to say, or are about others that do.
        const WITHOUT: [&str; 10] = [
            "acp",
            "chat",
            "daemon",
            "daemon run",
            "demo",
            "files",
            "hooks",
            "mcp",
            "schedule",
            "secret",
        ];
        if !WITHOUT.contains(&verb.as_str()) {
            assert!(help.contains("--json"), "{verb}: {help}");
        }
    }
}

#[test]
fn the_help_is_as_it_was() {
    check("help/agentd.txt", &help(&["--help"]));
    for (verb, help) in all() {
        check(&format!("help/{}.txt", verb.replace(' ', "-")), &help);
    }
}

#[test]
fn completions_are_as_they_were() {
    for shell in ["bash", "zsh", "fish"] {
        let script = help(&["completions", shell]);
        check(&format!("completions/agentd.{shell}"), &script);
    }
}

#[test]
fn the_page_of_the_command_line_is_made_of_the_help() {
    let mut page = String::from(
        "# The command line\n\n\
         <!-- Made of the help texts by crates/agentd/tests/help.rs with AGENTD_WRITE_GOLDEN=1. -->\n\n\
         The output of `agentd VERB --help` for every verb. With `--json`, a command prints one JSON object or JSON \
         lines;\nmessages for people go to standard error.\n\n",
    );
    page.push_str(EXIT_CODES);
    page.push_str(&format!("```text\n{}\n```\n", help(&["--help"]).trim_end()));
    for (verb, help) in all() {
        let text = help.trim_end();
        page.push_str(&format!("\n## agentd {verb}\n\n```text\n{text}\n```\n"));
    }
    check("../../../../docs/cli.md", &page);
}

#[test]
fn every_verb_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    let man = dir.path().join("man");
    assert_eq!(help(&["man", man.to_str().unwrap()]), "");
    let page = |verb: &str| fs::read_to_string(man.join(format!("{}.1", verb.replace(' ', "-"))));
    for (verb, _) in all() {
        let text = page(&format!("agentd {verb}")).unwrap_or_default();
        assert!(text.contains(".SH SYNOPSIS"), "{verb}: {text}");
        assert!(text.contains("Examples:"), "{verb}: {text}");
    }
    let title = page("agentd schedule add").unwrap();
    assert!(title.contains(".TH agentd-schedule-add 1 "), "{title}");
    let first = page("agentd").unwrap();
    assert!(first.contains("agentd\\-send(1)"), "{first}");
    for hidden in ["agentd man", "agentd runtime", "agentd help"] {
        assert!(page(hidden).is_err(), "{hidden}");
    }
}

/// Builds for users have the commit and the date of the build, as the unit tests of build/commit.rs describe them.
#[test]
fn the_version_is_the_package_s_and_says_what_it_was_built_from() {
    let text = help(&["--version"]);
    let start = format!("agentd {} (", env!("CARGO_PKG_VERSION"));
    let built = text.strip_prefix(&start).unwrap();
    let built = built.strip_suffix(")\n").unwrap();
    if cfg!(debug_assertions) {
        assert_eq!(built, "debug build");
        return;
    }
    let (commit, date) = built
        .strip_prefix("commit ")
        .unwrap()
        .split_once(", ")
        .unwrap();
    assert!(
        commit.len() == 12 || commit == "unknown: built without git",
        "{text}"
    );
    assert_eq!(date.len(), "2026-11-17".len(), "{text}");
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_is_right() {
    for args in [&["demon"][..], &["verify", "--jsn"], &[]] {
        let output = agentd(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("Usage:"), "{args:?}: {text}");
    }
}
