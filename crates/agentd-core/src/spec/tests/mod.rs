//! Tests of the spec: what is read, what is refused, what survives a round trip.

mod errors;
mod invalid;
mod junk;
mod money;
mod page;
mod read;
mod round_trip;
mod values;

use super::*;
use crate::usage::MicroUsd;
use std::collections::BTreeMap;

fn texts<const N: usize>(list: [&str; N]) -> Vec<String> {
    list.map(str::to_owned).to_vec()
}

fn pairs<const N: usize>(list: [(&str, &str); N]) -> BTreeMap<String, String> {
    list.map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// A file that uses every key except `mcp`. It reads as [`full`].
const FULL: &str = r#"---
description: Reviews pull requests
title: The review
provider: openrouter
model: some/model-4.1
runtime: command
command:
  program: /usr/bin/agent
  args: [--fast, "-v"]
  per_turn: false
  first_args: []
  later_args: []
  contract: agent
  extra_args: ["--profile", "x y"]
cwd: /srv/work tree
tools: [read, bash]
server_tools: [web_search]
permissions:
  - tool: bash
    pattern: "git push*"
    decision: ask
  - {tool: read, decision: allow, needs: ["service:gh"]}
  - tool: write
    decision: deny
approval: always
sandbox: workspace-write
network: off
writable: [/srv/out, ~/notes]
readable:
  - /srv/in
pass: [ssh-agent, gh]
agents:
  helper: {}
  reviewer:
    description: Looks at a change
    model: small-model
    tools: [read]
    reasoning: low
    budget: {usd: 0.5}
    system: You find faults.
limits:
  max_iterations: 7
  max_output_tokens: 4096
  turn: {tokens: 100000, usd: 2.50, wall_ms: 60000}
  conversation:
    usd: 10
  day:
    usd: 0.000001
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
    - matcher: bash
      hooks: [{type: command, command: "true", timeout: 1.5}]
on_crash: wait
idle_ms: 1000
restart: always
env:
  PORT: 8080
  GREETING: "a: b # c"
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

fn full() -> AgentSpec {
    let rule = |tool: &str, pattern: Option<&str>, decision| Rule {
        tool: tool.to_owned(),
        pattern: pattern.map(str::to_owned),
        decision,
        needs: Vec::new(),
    };
    let usd = |micros| Budget {
        usd: Some(MicroUsd(micros)),
        ..Budget::default()
    };
    let reviewer = Subagent {
        description: Some("Looks at a change".to_owned()),
        provider: None,
        model: Some("small-model".to_owned()),
        tools: Some(texts(["read"])),
        reasoning: Some(Reasoning::Low),
        budget: usd(500_000),
        system: Some("You find faults.".to_owned()),
    };
    AgentSpec {
        description: Some("Reviews pull requests".to_owned()),
        title: Some("The review".to_owned()),
        provider: Some("openrouter".to_owned()),
        model: Some("some/model-4.1".to_owned()),
        runtime: Runtime::Command,
        command: Some(Command {
            program: "/usr/bin/agent".to_owned(),
            args: texts(["--fast", "-v"]),
            per_turn: false,
            first_args: Vec::new(),
            later_args: Vec::new(),
            contract: Some(Contract::Agent),
            extra_args: texts(["--profile", "x y"]),
        }),
        cwd: Some("/srv/work tree".to_owned()),
        tools: Some(texts(["read", "bash"])),
        server_tools: vec![ServerTool::WebSearch],
        permissions: vec![
            rule("bash", Some("git push*"), Decision::Ask),
            Rule {
                needs: vec!["service:gh".to_owned()],
                ..rule("read", None, Decision::Allow)
            },
            rule("write", None, Decision::Deny),
        ],
        approval: Some(ApprovalMode::Always),
        sandbox: Some(Sandbox::WorkspaceWrite),
        network: Some(Network::Off),
        writable: texts(["/srv/out", "~/notes"]),
        readable: texts(["/srv/in"]),
        pass: vec![Pass::SshAgent, Pass::Gh],
        // It is an error: tests/invalid.rs.
        mcp: BTreeMap::new(),
        agents: BTreeMap::from([
            ("helper".to_owned(), Subagent::default()),
            ("reviewer".to_owned(), reviewer),
        ]),
        limits: Limits {
            max_iterations: 7,
            max_output_tokens: Some(4096),
            turn: Budget {
                tokens: Some(100_000),
                usd: Some(MicroUsd(2_500_000)),
                wall_ms: Some(60_000),
            },
            conversation: usd(10_000_000),
            day: usd(1),
            subtree: Budget {
                tokens: Some(u64::MAX),
                ..Budget::default()
            },
            max_tasks: 2,
            max_children: 4,
            max_depth: 3,
            max_queue: 3,
            tool_output_bytes: 1024,
            task_output_bytes: 4096,
            kept_output_bytes: Some(8192),
            file_history_bytes: Some(16384),
            task_memory_bytes: Some(500_000_000),
            task_processes: Some(64),
            task_open_files: Some(256),
            program_calls: Some(50),
            program_bytes: Some(65_536),
            memory_bytes: Some(4_000_000_000),
            cpu_percent: Some(150),
        },
        hooks: serde_json::json!({"PreToolUse": [{
            "matcher": "bash",
            "hooks": [{"type": "command", "command": "true", "timeout": 1.5}],
        }]}),
        on_crash: OnCrash::Wait,
        idle_ms: 1000,
        restart: Restart::Always,
        env: pairs([("PORT", "8080"), ("GREETING", "a: b # c")]),
        pass_env: texts(["DATABASE_URL"]),
        temperature: Some(0.7),
        reasoning: Some(Reasoning::Off),
        verbosity: Some(Verbosity::Low),
        fast: Some(true),
        compact_at: 0.5,
        auto_reset: AutoReset {
            by_tool: true,
            idle_ms: Some(3_600_000),
            over_tokens: Some(150_000),
        },
        notify: Notify {
            on: Some(vec![Topic::Failed, Topic::Approval]),
            to: Some(texts(["desktop", "team"])),
        },
        instructions: false,
        system: "You review code.\n\n---\nBe kind.".to_owned(),
    }
}
