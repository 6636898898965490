//! The hook contract, as users' files and programs rely on it.

use super::*;
use crate::event::{HookOutcome, ResetSource};
use crate::id::CallId;
use crate::message::{Arguments, ToolCall};
use serde_json::{Map, Value, json};
use std::path::Path;

fn config(text: Value) -> Config {
    Config::of_file(&text)
}

fn cwd() -> &'static Path {
    Path::new("/src")
}

fn one(event: &str, matcher: &str, command: &str) -> Config {
    config(json!({"hooks": {event: [
        {"matcher": matcher, "hooks": [{"type": "command", "command": command}]}
    ]}}))
}

fn answer(event: HookEvent, code: i32, stdout: &str, stderr: &str) -> Answer {
    let hook_input = HookInput::sample(event);
    read(&hook_input, Ended::Code(code), stdout, stderr, false)
}

#[test]
fn matchers_are_lists_of_names_or_regular_expressions() {
    for (pattern, yes, no) in [
        ("", "anything", None),
        ("*", "anything", None),
        ("shell", "shell", Some("shells")),
        ("write_file|edit_file", "edit_file", Some("file")),
        ("startup, clear", "clear", Some("resume")),
        ("^mcp__", "mcp__x", Some("x_mcp__")),
        ("file$", "read_file", Some("file_read")),
    ] {
        let matcher = Matcher::parse(pattern).unwrap();
        assert!(matcher.matches(yes), "{pattern}");
        assert!(!no.is_some_and(|no| matcher.matches(no)), "{pattern}");
    }
    assert!(Matcher::parse("(").is_err());
}

#[test]
fn a_tool_is_known_by_the_names_that_others_have_for_it() {
    let layers = [(Layer::User, one("PreToolUse", "Bash", "check"))];
    let chosen = chosen(&layers, &HookInput::sample(HookEvent::PreToolUse), cwd());
    assert_eq!(chosen.len(), 1);
    let input = HookInput::sample(HookEvent::PreToolUse);
    let input = input.input(&Setting::default(), chosen[0].call.as_ref());
    assert_eq!(input["tool_name"], "Bash");
    assert_eq!(input["tool_input"]["command"], "echo hello");
}

#[test]
fn the_same_handler_from_two_layers_runs_once() {
    let layers = [
        (Layer::User, one("SessionStart", "startup", "a")),
        (Layer::Spec, one("SessionStart", "", "a")),
        (Layer::Project, one("SessionStart", "", "b")),
    ];
    let chosen = chosen(
        &layers,
        &HookInput::session_start("startup", None, None),
        cwd(),
    );
    let shown: Vec<_> = chosen
        .iter()
        .map(|one| (one.layer, one.handler.run.shown()))
        .collect();
    assert_eq!(
        shown,
        [
            (Layer::User, "a".to_owned()),
            (Layer::Project, "b".to_owned())
        ]
    );
}

#[test]
fn what_is_wrong_in_a_file_is_said_and_the_rest_of_it_works() {
    let config = config(json!({"hooks": {
        "PreToolUs": [],
        "Stop": [{"hooks": [{"type": "command", "command": "ok", "timeout": 1.5, "statusMessage": "x"}]}],
        "PreToolUse": [{"matcher": "(", "hooks": []}, {"hooks": [{"type": "prompt", "prompt": "x"}]}],
    }}));
    let hint = config
        .problems
        .iter()
        .find_map(|problem| problem.hint.clone());
    assert_eq!(hint.as_deref(), Some("did you mean `PreToolUse`?"));
    assert!(config.has_errors());
    let handlers: Vec<_> = config
        .groups
        .iter()
        .flat_map(|group| &group.handlers)
        .collect();
    assert_eq!(handlers.len(), 1);
    assert_eq!(handlers[0].timeout_ms, Some(1500));
    let at: Vec<_> = config
        .problems
        .iter()
        .map(|problem| problem.at.as_str())
        .collect();
    assert!(at.contains(&"hooks.PreToolUse[0].matcher"), "{at:?}");
    assert!(
        at.contains(&"hooks.Stop[0].hooks[0].statusMessage"),
        "{at:?}"
    );
    for text in [
        "",
        "[]",
        "{",
        "{}",
        r#"{"hooks": 5}"#,
        r#"{"hooks": {"Stop": [5]}}"#,
    ] {
        assert!(Config::parse(text).has_errors(), "{text}");
    }
}

#[test]
fn exit_2_blocks_where_the_event_can_be_blocked_and_json_does_not_help() {
    let allow = r#"{"decision": "approve"}"#;
    let no = answer(HookEvent::PreToolUse, 2, allow, "not that\n");
    assert_eq!(
        (no.decision, no.reason.as_deref()),
        (Decision::Deny, Some("not that"))
    );
    for event in HookEvent::ALL {
        let is_no = answer(event, 2, "", "no").decision == Decision::Deny;
        assert_eq!(is_no, event.can_block(), "{event}");
    }
}

#[test]
fn other_exits_are_warnings_unless_there_is_json() {
    let warned = answer(HookEvent::PreToolUse, 1, "text", "broke");
    assert_eq!(warned.decision, Decision::None);
    assert!(warned.warning.unwrap().contains("broke"));
    let deny = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "because"}}"#;
    let denied = answer(HookEvent::PreToolUse, 1, deny, "");
    assert_eq!(
        (denied.decision, denied.reason.as_deref()),
        (Decision::Deny, Some("because"))
    );
    let hook_input = HookInput::sample(HookEvent::PreToolUse);
    assert_eq!(
        read(&hook_input, Ended::TimedOut, "", "", false).decision,
        Decision::None
    );
    assert_eq!(
        read(&hook_input, Ended::TimedOut, "", "", true).decision,
        Decision::Deny
    );
}

#[test]
fn plain_words_are_context_for_two_events_only() {
    for event in HookEvent::ALL {
        let context = answer(event, 0, "it is Monday\n", "").context;
        assert_eq!(context.is_some(), event.takes_plain_context(), "{event}");
    }
    let bad = answer(HookEvent::SessionStart, 0, "{not json", "");
    assert!(bad.context.is_none() && bad.warning.is_some());
}

#[test]
fn json_says_the_rest() {
    let said = answer(
        HookEvent::SessionStart,
        0,
        &json!({
            "continue": false, "stopReason": "enough", "systemMessage": "hello, user",
            "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "c",
                "sessionTitle": "t", "initialUserMessage": "go"}
        })
        .to_string(),
        "",
    );
    assert_eq!(said.stop.as_deref(), Some("enough"));
    assert_eq!(said.message.as_deref(), Some("hello, user"));
    assert_eq!(said.context.as_deref(), Some("c"));
    assert_eq!(said.title.as_deref(), Some("t"));
    assert_eq!(said.initial_prompt.as_deref(), Some("go"));
    let clear = HookInput::session_start("clear", None, None);
    let text = r#"{"hookSpecificOutput": {"sessionTitle": "t"}}"#;
    assert_eq!(read(&clear, Ended::Code(0), text, "", false).title, None);
    let other = r#"{"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "c"}}"#;
    assert!(
        answer(HookEvent::SessionStart, 0, other, "")
            .context
            .is_none()
    );
    let text = r#"{"hookSpecificOutput": {"updatedToolOutput": {"a": 1}}}"#;
    let replaced = answer(HookEvent::PostToolUse, 0, text, "").updated_output;
    assert_eq!(replaced.as_deref(), Some(r#"{"a":1}"#));
    let text = r#"{"hookSpecificOutput": {"decision": {"behavior": "allow", "updatedInput": {"command": "ls"}}}}"#;
    let allowed = answer(HookEvent::PermissionRequest, 0, text, "");
    assert_eq!(allowed.decision, Decision::Allow);
    assert_eq!(allowed.updated_input.unwrap()["command"], "ls");
}

#[test]
fn the_strictest_prevails() {
    let of = |decision: Decision, reason: &str| {
        let reason = Some(reason.to_owned());
        let answer = Answer {
            decision,
            reason,
            ..Answer::default()
        };
        (HookOutcome::Ran, answer)
    };
    let all = [
        of(Decision::Allow, "a"),
        of(Decision::Deny, "b"),
        of(Decision::Ask, "c"),
        of(Decision::Deny, "d"),
        of(Decision::Defer, "e"),
    ];
    let verdict = Verdict::of(HookEvent::PreToolUse, all);
    assert_eq!(verdict.decision, Decision::Deny);
    assert_eq!(verdict.reason.as_deref(), Some("b\nd"));
    let unknown = Verdict::of(
        HookEvent::PreToolUse,
        [
            of(Decision::Allow, "a"),
            (HookOutcome::Unknown, Answer::default()),
        ],
    );
    assert_eq!(unknown.decision, Decision::Ask);
    assert_eq!(Verdict::unheard(HookEvent::Stop), Verdict::default());
}

#[test]
fn a_long_context_is_cut_and_says_where_the_rest_is() {
    assert_eq!(capped(&"ä".repeat(CONTEXT_CHARACTERS), "f"), None);
    let cut = capped(&"ä".repeat(CONTEXT_CHARACTERS + 1), "/x/y").unwrap();
    assert!(cut.starts_with("ä") && cut.ends_with("/x/y]"));
    assert_eq!(cut.matches('ä').count(), CONTEXT_CHARACTERS);
}

#[test]
fn an_input_says_where_and_what() {
    let setting = Setting {
        session_id: Some("s".into()),
        transcript_path: Some("/t".into()),
        cwd: "/w".into(),
        permission_mode: Some("plan".into()),
        agent: Some(("coder".into(), "id".into())),
        generation: Some(3),
        turn: None,
        op: Some("op".into()),
        session_title: Some("t".into()),
        background_tasks: vec![json!({"id": "t1"})],
    };
    let input = HookInput::pre_reset("clear", ResetSource::User, Some("why")).input(&setting, None);
    assert_eq!(
        input,
        json!({"session_id": "s", "transcript_path": "/t", "cwd": "/w", "hook_event_name": "PreReset",
            "permission_mode": "plan", "source": "clear", "by": "user", "reason": "why", "op": "op",
            "agentd": {"schema": 1, "agent": "coder", "agent_id": "id", "generation": 3, "turn": null, "op": "op"}})
    );
    let input = HookInput::session_start("clear", None, Some("p".into())).input(&setting, None);
    assert_eq!(input["background_tasks"][0]["id"], "t1");
    assert_eq!(input["parent_session_id"], "p");
    assert_eq!(input["session_title"], "t");
}

#[test]
fn an_id_follows_from_what_it_is_about() {
    use crate::id::{AgentId, ConversationId, InvocationId, OpId};
    let (agent, op) = (AgentId::from_bytes([1; 16]), OpId::from_bytes([2; 16]));
    let first = HookInvocation::of_op(
        agent,
        op,
        HookInput::pre_reset("clear", ResetSource::User, None),
    );
    let again = HookInvocation::of_op(
        agent,
        op,
        HookInput::pre_reset("clear", ResetSource::User, Some("x")),
    );
    assert_eq!(first.id, again.id);
    assert_ne!(
        first.id,
        HookInvocation::of_op(agent, op, HookInput::session_end("clear", None)).id
    );
    assert_ne!(
        InvocationId::of(HookEvent::Stop, &[b"ab", b"c"]),
        InvocationId::of(HookEvent::Stop, &[b"a", b"bc"])
    );
    let new = ConversationId::of_op(agent, op);
    assert_eq!(new.uuid().get_version_num(), 7);
    assert_eq!(new, ConversationId::of_op(agent, op));
}

#[test]
fn a_handler_of_a_tool_for_one_file_is_told_of_each_file_of_a_patch() {
    let patch = "*** Begin Patch\n*** Update File: src/../.env\n-a\n+b\n*** Add File: /etc/x\n+new\n*** Update File: m\n\
                 *** Move to: n\n-1\n+2\n*** End Patch";
    let call = ToolCall {
        id: CallId::new("1"),
        name: "apply_patch".to_owned(),
        arguments: Arguments::parse(&json!({ "input": patch }).to_string()),
        signature: None,
    };
    let hook_input = HookInput::before_call(HookEvent::PreToolUse, &call);
    let setting = Setting {
        cwd: "/src".to_owned(),
        ..Setting::default()
    };
    let told = |matcher: &str| -> Vec<(String, String)> {
        let layers = [(Layer::User, one("PreToolUse", matcher, "check"))];
        let chosen = chosen(&layers, &hook_input, cwd());
        let inputs = chosen
            .iter()
            .map(|it| hook_input.input(&setting, it.call.as_ref()));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let told = inputs.map(|it| (text(&it["tool_name"]), text(&it["tool_input"]["file_path"])));
        told.collect()
    };
    let all = ["/src/.env", "/etc/x", "/src/m", "/src/n"];
    for (matcher, names) in [
        ("Write|Edit", ["Edit", "Write", "Edit", "Write"]),
        ("Edit", ["Edit"; 4]),
        ("Write", ["Write"; 4]),
        (
            "write_file|edit_file",
            ["edit_file", "write_file", "edit_file", "write_file"],
        ),
    ] {
        let names = names.map(str::to_owned).into_iter();
        let expected: Vec<_> = names.zip(all.map(str::to_owned)).collect();
        assert_eq!(told(matcher), expected, "{matcher}");
    }
    // A handler that knows the tool gets the whole patch once.
    for matcher in ["", "apply_patch|Edit"] {
        assert_eq!(told(matcher), [("apply_patch".to_owned(), String::new())]);
    }
    // The input of one file does not replace the patch.
    let answer = Answer {
        updated_input: Some(Map::from_iter([("file_path".to_owned(), json!("/tmp/x"))])),
        decision: Decision::Allow,
        ..Answer::default()
    };
    let verdict = Verdict::of(HookEvent::PreToolUse, [(HookOutcome::Ran, answer)]);
    let verdict = verdict.of_call(hook_input.subject());
    assert_eq!(
        (verdict.decision, verdict.updated_input),
        (Decision::Ask, None)
    );
}

/// Regression: a guard that does not exist in the sandbox ends with 127, which was ignored.
#[test]
fn a_program_that_could_not_run_is_told_from_one_that_failed() {
    for (code, stderr) in [
        (127, "sh: 1: guard.sh: not found"),
        (126, "sh: 1: guard.sh: Permission denied"),
        (1, "Error: Cannot find module '/home/me/guard.js'"),
        (1, "Could not open input file: guard.php"),
    ] {
        let why = could_not_run(code, "", stderr);
        assert!(why.is_some_and(|why| why.contains(stderr)), "{stderr}");
    }
    for (code, stdout, stderr) in [
        (0, "", "Cannot find module"),
        (2, "", "python3: can't open file"),
        (1, "", "the call looks wrong"),
        (127, "{\"decision\": \"block\"}", "jq: not found"),
    ] {
        assert_eq!(could_not_run(code, stdout, stderr), None, "{code}");
    }
    let hook_input = HookInput::sample(HookEvent::PreToolUse);
    let closed = read(&hook_input, Ended::NotRun("x"), "", "", true);
    assert_eq!(closed.decision, Decision::Deny);
}

fn call_of(tool: &str, arguments: &Value) -> HookInput {
    let call = ToolCall {
        id: CallId::new("c"),
        name: tool.to_owned(),
        arguments: Arguments::parse(&arguments.to_string()),
        signature: None,
    };
    HookInput::before_call(HookEvent::PreToolUse, &call)
}

/// Regression: `if` was ignored, so that a hook for `git` commands ran for all of them.
#[test]
fn a_hook_runs_only_for_the_calls_that_its_condition_matches() {
    let runs = |condition: &str, input: &HookInput| {
        let handler = json!({"type": "command", "command": "x", "if": condition});
        let file = json!({"hooks": {"PreToolUse": [{"hooks": [handler]}]}});
        let layers = [(Layer::User, config(file))];
        assert_eq!(layers[0].1.problems, []);
        chosen(&layers, input, cwd()).len()
    };
    let shell = |line: &str| call_of("shell", &json!({"command": line}));
    for (line, expected) in [
        ("git push", 1),
        ("ls && git push -f", 1),
        ("ls", 0),
        ("$x push", 1),
    ] {
        assert_eq!(runs("Bash(git *)", &shell(line)), expected, "{line}");
    }
    let write = |path: &str| call_of("write_file", &json!({"file_path": path, "content": "x"}));
    for (path, expected) in [("a.ts", 1), ("/src/b/c.ts", 1), ("a.rs", 0), ("/x/a.ts", 0)] {
        assert_eq!(runs("Edit(*.ts)", &write(path)), expected, "{path}");
    }
    assert_eq!(runs("Bash(git *)", &write("a.ts")), 0);
    // Only for the files of a patch that match.
    let patch = "*** Begin Patch\n*** Add File: a.ts\n+x\n*** Add File: b.rs\n+x\n*** End Patch\n";
    let patch = call_of("apply_patch", &json!({"input": patch}));
    assert_eq!(runs("Write(*.ts)", &patch), 1);
    assert_eq!(runs("Write(*.md)", &patch), 0);
    // It may be a guard: it runs where nothing can be told.
    assert_eq!(
        runs(
            "Read(~/x)",
            &call_of("read_file", &json!({"file_path": "x"}))
        ),
        1
    );
    assert_eq!(
        runs(
            "Bash(rm *)",
            &call_of("execute", &json!({"command": "rm x"}))
        ),
        1
    );
}

#[test]
fn a_condition_that_cannot_be_used_is_reported() {
    let problems = |event: &str, condition: Value| {
        let handler = json!({"type": "command", "command": "x", "if": condition});
        let file = config(json!({"hooks": {event: [{"hooks": [handler]}]}}));
        let handlers: usize = file.groups.iter().map(|group| group.handlers.len()).sum();
        (handlers, file.problems[0].severity)
    };
    let unread = problems("PreToolUse", json!("tool_input.command matches 'git'"));
    assert_eq!(unread, (1, Severity::Warning));
    assert_eq!(problems("PreToolUse", json!(5)), (1, Severity::Warning));
    assert_eq!(problems("Stop", json!("Bash(git *)")), (0, Severity::Error));
}
