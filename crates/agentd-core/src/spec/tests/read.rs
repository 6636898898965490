//! Where the front matter ends and the prompt begins, and what the defaults are.

use super::*;

fn system(text: &str) -> String {
    let spec = parse(text).unwrap();
    let expected = AgentSpec {
        system: spec.system.clone(),
        ..AgentSpec::default()
    };
    assert_eq!(spec, expected, "{text:?}");
    spec.system
}

#[test]
fn every_key_is_read() {
    assert_eq!(parse(FULL).unwrap(), full());
}

/// Ensures that a test that uses [`FULL`] or [`full`] uses every key, including future ones.
#[test]
fn the_full_file_has_every_key() {
    let keys = |json: &str| {
        let error = serde_json::from_str::<AgentSpec>(json)
            .unwrap_err()
            .to_string();
        let known = error.split_once("expected one of").unwrap().1.to_owned();
        let keys: Vec<_> = known
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect();
        keys
    };
    let top = keys(r#"{"?": 1}"#);
    assert_eq!(top.len(), 34);
    // The body of the file, and a map whose entries have tests of their own.
    let elsewhere = ["system", "mcp"];
    for key in top.iter().filter(|key| !elsewhere.contains(&key.as_str())) {
        assert!(FULL.contains(&format!("\n{key}:")), "{key}");
    }
    for key in keys(r#"{"limits": {"?": 1}}"#) {
        assert!(FULL.contains(&format!("\n  {key}:")), "{key}");
    }
    let nested = [
        r#"{"limits": {"turn": {"?": 1}}}"#,
        r#"{"agents": {"x": {"?": 1}}}"#,
        r#"{"permissions": [{"?": 1}]}"#,
        r#"{"command": {"?": 1}}"#,
    ];
    for key in nested.into_iter().flat_map(keys) {
        assert!(FULL.contains(&format!("{key}: ")), "{key}");
    }
}

#[test]
fn line_ends_and_a_byte_order_mark_change_nothing_but_the_body() {
    let mut expected = full();
    expected.system = expected.system.replace('\n', "\r\n");
    let crlf = FULL.replace('\n', "\r\n");
    assert_eq!(parse(&crlf).unwrap(), expected);
    assert_eq!(parse(&format!("\u{feff}{crlf}")).unwrap(), expected);
}

#[test]
fn an_empty_file_is_the_default() {
    for text in [
        "",
        "\u{feff}",
        "\n",
        " \n\t\n",
        "---\n---",
        "---\n---\n",
        "---\r\n---\r\n",
        "---\n# only a comment\n\n---\n\n\n",
    ] {
        assert_eq!(parse(text).unwrap(), AgentSpec::default(), "{text:?}");
    }
}

#[test]
fn the_defaults_are_as_documented() {
    let spec = AgentSpec::default();
    assert_eq!(spec.runtime, Runtime::Native);
    assert_eq!(spec.on_crash, OnCrash::Continue);
    assert_eq!(spec.restart, Restart::OnFailure);
    assert_eq!((spec.idle_ms, spec.compact_at), (300_000, 0.8));
    let limits = spec.limits;
    assert_eq!(
        (limits.max_iterations, limits.max_output_tokens),
        (100, None)
    );
    assert_eq!((limits.max_tasks, limits.max_queue), (16, 100));
    assert_eq!(limits.tool_output_bytes, 32_768);
    assert!(limits.turn.is_unlimited() && limits.subtree.is_unlimited());
    assert_eq!(AgentSpec::default().validate(), Ok(()));
}

#[test]
fn a_file_without_front_matter_is_a_prompt() {
    assert_eq!(system("You help.\n"), "You help.");
    assert_eq!(system("a\n---\nmodel: x\n---\n"), "a\n---\nmodel: x\n---");
    assert_eq!(system("---- \nx"), "---- \nx");
    assert_eq!(system("--- title\nx"), "--- title\nx");
    assert_eq!(system(" ---\nx"), " ---\nx");
}

#[test]
fn one_leading_newline_and_trailing_space_go() {
    assert_eq!(system("---\n---\nx"), "x");
    assert_eq!(system("---\n---\n\nx \t\n\n"), "x");
    assert_eq!(system("---\n---\n\n\nx"), "\nx");
    assert_eq!(system("---\r\n---\r\n\r\n\r\nx\r\n"), "\r\nx");
    assert_eq!(system("---\n---\n\n  x"), "  x");
    assert_eq!(system("\nx"), "x");
}

#[test]
fn a_fence_in_the_body_is_body() {
    assert_eq!(system("---\n---\n---\n---\n"), "---\n---");
    assert_eq!(system("---\n---\nmodel: x\n---\n"), "model: x\n---");
}

#[test]
fn blank_lines_before_the_front_matter_do_not_make_it_a_prompt() {
    let spec = parse("\n \r\n---  \nmodel: x\n--- \nhi").unwrap();
    assert_eq!((spec.model.as_deref(), &*spec.system), (Some("x"), "hi"));
}

#[test]
fn the_schema_of_the_json_form_is_that_of_the_file() {
    let json = serde_json::to_string(&full()).unwrap();
    assert_eq!(serde_json::from_str::<AgentSpec>(&json).unwrap(), full());
    assert!(json.contains(r#""usd":2.5"#), "{json}");
    // The whole spec without its prompt is valid front matter.
    let mut value = serde_json::to_value(full()).unwrap();
    value.as_object_mut().unwrap().remove("system");
    let mut expected = full();
    expected.system.clear();
    assert_eq!(parse(&format!("---\n{value}\n---\n")).unwrap(), expected);
}

#[test]
fn the_json_form_refuses_unknown_keys_and_fills_in_defaults() {
    let read = serde_json::from_str::<AgentSpec>;
    assert_eq!(read("{}").unwrap(), AgentSpec::default());
    for json in [
        r#"{"modle": "x"}"#,
        r#"{"limits": {"max_iteration": 1}}"#,
        r#"{"limits": {"turn": {"token": 1}}}"#,
        r#"{"mcp": {"x": {"comand": "y"}}}"#,
        r#"{"command": {"program": "x", "arg": []}}"#,
        r#"{"permissions": [{"tool": "x", "decision": "ask", "why": "y"}]}"#,
    ] {
        let error = read(json).unwrap_err().to_string();
        assert!(error.contains("unknown field"), "{json}: {error}");
    }
}

#[test]
fn numbers_are_written_to_the_journal_even_if_default() {
    let value = serde_json::to_value(AgentSpec::default()).unwrap();
    assert_eq!(value["limits"]["max_iterations"], 100);
    assert_eq!(value["compact_at"], 0.8);
    assert!(value.get("model").is_none());
}
