//! `parse(to_markdown(s)) == s`, for all kinds of text in all fields.

use super::*;
use serde_json::json;

#[track_caller]
fn comes_back(spec: &AgentSpec) -> String {
    let file = spec.to_markdown();
    match parse(&file) {
        Ok(read) => assert_eq!(&read, spec, "{file}"),
        Err(error) => panic!("{error}\n{file}"),
    }
    assert_eq!(spec.to_markdown(), file);
    file
}

#[rustfmt::skip]
const ODD: &[&str] = &[
    "", " ", "x", " x", "x ", "a b", "a  b", "\t", "\n", "\r", "\r\n", "a\nb", "a\n\nb\n",
    "\u{0}", "\u{1b}[2J", "\u{7f}", "\u{85}", "\u{a0}", "\u{2028}", "\u{2029}", "\u{feff}",
    "\u{fffe}", "\u{ffff}", "\u{fffd}", "\u{10ffff}", "é", "日本語", "👩‍👩‍👧", "e\u{301}",
    "\u{202e}x", "\"", "'", "\\", "\\n", "\"\"\"", "''", "a\"b'c\\d", ":", ": ", "a: b", "a:b",
    "a:", "#", "# x", "a #b", "a#b", "-", "- a", "---", "--- ", "---\n", "...", "----", "?",
    "? a", "!", "!x", "&a", "*a", "|", ">", "|\n x", "%", "%YAML", "@", "@a", "`", "`a`", "[",
    "]", "{", "}", "[a]", "{a: b}", ",", "a, b", "<<", "=", "~", "null", "Null", "true", "FALSE",
    "yes", "off", "0", "-1", "+1", "007", "1.10", "1e3", ".5", "5.", "0x1F", "0o7", ".nan",
    "-.inf", "inf", "1_000", "2024-01-01", "/", "/a/b", "./x", "../x", "a/b@c-d.e", "${HOME}",
    "$(x)", "{{x}}", "<a href=\"b\">", "system", "model",
];

/// Puts a text into every field that can hold one.
fn everywhere(text: &str) -> AgentSpec {
    let text = || text.to_owned();
    let texts = || vec![text(), "x".to_owned(), text()];
    let map = || BTreeMap::from([(text(), text()), ("other".to_owned(), text())]);
    AgentSpec {
        description: Some(text()),
        title: Some(text()),
        provider: Some(text()),
        model: Some(text()),
        runtime: Runtime::Command,
        command: Some(Command {
            program: format!("x{}", text()),
            args: texts(),
            per_turn: false,
            first_args: Vec::new(),
            later_args: Vec::new(),
            contract: Some(Contract::Agent),
            extra_args: texts(),
        }),
        cwd: Some(text()),
        tools: Some(texts()),
        permissions: vec![
            Rule {
                tool: text(),
                pattern: Some(text()),
                decision: Decision::Deny,
                needs: Vec::new(),
            },
            Rule {
                tool: text(),
                pattern: None,
                decision: Decision::Allow,
                needs: texts(),
            },
        ],
        hooks: json!({ text(): [[text()], {text(): text(), "n": null}], "e": [{}, [], text()] }),
        env: map(),
        system: text().trim_end().to_owned(),
        ..AgentSpec::default()
    }
}

#[test]
fn odd_texts_in_every_place() {
    for text in ODD {
        comes_back(&everywhere(text));
        comes_back(&everywhere(&format!("{text}{}", "long ".repeat(300))));
        for other in ODD {
            let spec = AgentSpec {
                description: Some(format!("{text}{other}")),
                env: pairs([(&format!("{other}{text}"), text)]),
                system: format!("{text}{other}").trim_end().to_owned(),
                ..AgentSpec::default()
            };
            comes_back(&spec);
        }
    }
}

#[test]
fn prompts_that_look_like_something_else() {
    for system in ODD {
        for start in [
            "",
            "\n",
            "\n\n",
            "\r\n",
            " \n",
            "---",
            "---\n",
            "\u{feff}",
            "---\nmodel: x\n---\n",
        ] {
            for model in [None, Some("m".to_owned())] {
                let spec = AgentSpec {
                    system: format!("{start}{system}").trim_end().to_owned(),
                    model,
                    ..AgentSpec::default()
                };
                comes_back(&spec);
            }
        }
    }
}

#[test]
fn every_letter_there_is() {
    let letters: Vec<char> = ('\0'..=char::MAX).collect();
    for chunk in letters.chunks(2048) {
        let text: String = chunk.iter().collect();
        let spec = AgentSpec {
            system: text.trim_end().to_owned(),
            runtime: Runtime::Command,
            command: Some(Command {
                program: "x".to_owned(),
                ..Command::default()
            }),
            tools: Some(chunk.iter().step_by(7).map(char::to_string).collect()),
            env: BTreeMap::from([(text.clone(), text.clone())]),
            description: Some(text),
            ..AgentSpec::default()
        };
        comes_back(&spec);
    }
}

#[test]
fn numbers_and_choices() {
    for value in [
        0.1,
        0.7,
        1.0,
        0.30000000000000004,
        f64::MIN_POSITIVE,
        2.0,
        0.0,
    ] {
        let mut spec = AgentSpec {
            temperature: Some(value),
            hooks: json!({"f": [value, -value, 1e300, 1e-300, f64::MAX, 1.0, 1, -1, u64::MAX, i64::MIN]}),
            idle_ms: u64::MAX,
            ..AgentSpec::default()
        };
        spec.compact_at = value.clamp(0.1, 1.0);
        comes_back(&spec);
    }
    for (reasoning, restart) in [
        (Reasoning::Off, Restart::Always),
        (Reasoning::Low, Restart::OnFailure),
        (Reasoning::Medium, Restart::Never),
        (Reasoning::High, Restart::Never),
    ] {
        comes_back(&AgentSpec {
            reasoning: Some(reasoning),
            restart,
            tools: Some(Vec::new()),
            hooks: json!({}),
            ..AgentSpec::default()
        });
    }
}

#[test]
fn only_what_differs_from_the_default_is_written() {
    assert_eq!(comes_back(&AgentSpec::default()), "");
    let spec = parse("You help.").unwrap();
    assert_eq!(comes_back(&spec), "You help.\n");
    let spec = parse("---\nmodel: x\nidle_ms: 300000\nlimits: {max_tasks: 16}\n---\nHi").unwrap();
    assert_eq!(comes_back(&spec), "---\nmodel: x\n---\n\nHi\n");
}

#[test]
fn the_file_reads_well() {
    let expected = r#"---
description: Reviews pull requests
title: The review
provider: openrouter
model: some/model-4.1
runtime: command
command:
  program: /usr/bin/agent
  args: ["--fast", "-v"]
  contract: agent
  extra_args: ["--profile", x y]
cwd: /srv/work tree
tools: [read, bash]
server_tools: [web_search]
permissions:
  - tool: bash
    pattern: "git push*"
    decision: ask
  - tool: read
    decision: allow
    needs: ["service:gh"]
  - tool: write
    decision: deny
approval: always
sandbox: workspace-write
network: off
writable: [/srv/out, "~/notes"]
readable: [/srv/in]
pass: [ssh-agent, gh]
agents:
  helper: {}
  reviewer:
    description: Looks at a change
    model: small-model
    tools: [read]
    reasoning: low
    budget:
      usd: 0.5
    system: You find faults.
limits:
  max_iterations: 7
  max_output_tokens: 4096
  turn:
    tokens: 100000
    usd: 2.5
    wall_ms: 60000
  conversation:
    usd: 10
  day:
    usd: 1e-6
  subtree:
    tokens: 18446744073709551615
  max_tasks: 2
  max_children: 4
  max_depth: 3
  max_queue: 3
  tool_output_bytes: 1024
  task_output_bytes: 4096
  kept_output_bytes: 8192
  file_history_bytes: 16384
  task_memory_bytes: 500000000
  task_processes: 64
  task_open_files: 256
  program_calls: 50
  program_bytes: 65536
  memory_bytes: 4000000000
  cpu_percent: 150
hooks:
  PreToolUse:
    - hooks:
        - command: "true"
          timeout: 1.5
          type: command
      matcher: bash
on_crash: wait
idle_ms: 1000
restart: always
env:
  GREETING: "a: b # c"
  PORT: "8080"
pass_env: [DATABASE_URL]
temperature: 0.7
reasoning: off
verbosity: low
fast: true
compact_at: 0.5
auto_reset:
  by_tool: true
  idle_ms: 3600000
  over_tokens: 150000
notify:
  on: [failed, approval]
  to: [desktop, team]
instructions: false
---

You review code.

---
Be kind.
"#;
    assert_eq!(comes_back(&full()), expected);
}

#[test]
fn the_arguments_of_first_and_later_turns_are_written() {
    let spec = AgentSpec {
        runtime: Runtime::Command,
        command: Some(Command {
            program: "goose".to_owned(),
            per_turn: true,
            first_args: vec!["run".to_owned()],
            later_args: vec!["run".to_owned(), "--resume".to_owned()],
            ..Command::default()
        }),
        ..AgentSpec::default()
    };
    let file = comes_back(&spec);
    assert!(file.contains("later_args: [run, \"--resume\"]"), "{file}");
}

#[test]
fn mcp_servers_are_written() {
    let search = McpServer {
        command: Some("mcp-search".to_owned()),
        args: texts(["--port", "8080"]),
        env: pairs([("LEVEL", "1.10")]),
        cwd: Some("/srv".to_owned()),
        read_only: texts(["find"]),
        timeout_ms: Some(5000),
        ..McpServer::default()
    };
    let wiki = McpServer {
        url: Some("https://wiki.example/mcp".to_owned()),
        headers: pairs([("Authorization", "Bearer ${TOKEN}")]),
        ..McpServer::default()
    };
    let spec = AgentSpec {
        mcp: BTreeMap::from([("search".to_owned(), search), ("wiki".to_owned(), wiki)]),
        ..AgentSpec::default()
    };
    let expected = r#"mcp:
  search:
    command: mcp-search
    args: ["--port", "8080"]
    env:
      LEVEL: "1.10"
    cwd: /srv
    read_only: [find]
    timeout_ms: 5000
  wiki:
    url: "https://wiki.example/mcp"
    headers:
      Authorization: "Bearer ${TOKEN}"
"#;
    assert!(
        spec.to_markdown().contains(expected),
        "{}",
        spec.to_markdown()
    );
}
