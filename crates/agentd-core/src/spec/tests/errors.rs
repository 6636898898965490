//! Errors: the variant, the line, the message. Invalid values are in `invalid`.

use super::*;

fn refused(text: &str) -> Error {
    let error = parse(text).unwrap_err();
    assert!(!error.to_string().contains('\n'), "{error}");
    error
}

/// The error of a front matter, whose first line is line 2 of its file. Neither line endings nor a byte order mark
/// may change it.
pub(super) fn refused_front(yaml: &str) -> Error {
    let file = format!("---\n{yaml}\n---\nbody\n");
    let error = refused(&file);
    let crlf = file.replace('\n', "\r\n");
    assert_eq!(refused(&crlf), error, "CRLF: {yaml:?}");
    assert_eq!(refused(&format!("\u{feff}{crlf}")), error, "BOM: {yaml:?}");
    error
}

fn unknown(key: &str, line: usize, nearest: Option<&str>) -> Error {
    Error::UnknownKey {
        key: key.to_owned(),
        line,
        nearest: nearest.map(str::to_owned),
    }
}

#[track_caller]
fn assert_yaml(yaml: &str, line: usize, words: &str) {
    match refused_front(yaml) {
        Error::Yaml { line: l, reason } => {
            assert_eq!(l, line, "{yaml:?}: {reason}");
            assert!(reason.contains(words), "{yaml:?}: {reason}");
        }
        other => panic!("{yaml:?}: {other:?}"),
    }
}

#[test]
#[rustfmt::skip]
fn unknown_keys_have_a_path_a_line_and_a_guess() {
    for (yaml, key, line, nearest) in [
        ("provider: x\nmodle: y", "modle", 3, Some("model")),
        ("# c\n\nPermissions: []", "Permissions", 4, Some("permissions")),
        ("limits:\n  max_tasks: 1\n  max_iteration: 3", "limits.max_iteration", 4, Some("max_iterations")),
        ("limits:\n  turn:\n    token: 3", "limits.turn.token", 4, Some("tokens")),
        ("limits: {turn: {\n  token: 3}}", "limits.turn.token", 3, Some("tokens")),
        ("mcp:\n  x:\n    comand: y", "mcp.x.comand", 4, Some("command")),
        ("permissions:\n- tols: x", "permissions[0].tols", 3, Some("tool")),
        ("permissions:\n- {tool: a, decision: ask}\n- tool: b\n  patern: c", "permissions[1].patern", 5, Some("pattern")),
        ("command:\n  programm: x", "command.programm", 3, Some("program")),
        ("zzzzzz: 1", "zzzzzz", 2, None),
        ("sytem: hello", "sytem", 2, None),
        ("\"a\\u001bb\": 1", "a\u{fffd}b", 2, None),
        ("<<: {model: x}", "<<", 2, None),
        ("1: x", "1", 2, None),
        ("~: x", "~", 2, None),
    ] {
        assert_eq!(refused_front(yaml), unknown(key, line, nearest), "{yaml:?}");
    }
}

#[test]
fn the_words_say_what_where_and_what_next() {
    let words = |yaml| refused_front(yaml).to_string();
    assert_eq!(
        words("provider: x\nmodle: y"),
        "line 3: unknown key `modle`; did you mean `model`?"
    );
    assert_eq!(
        words("thinking: high"),
        "line 2: unknown key `thinking`; did you mean `reasoning`?"
    );
    assert_eq!(
        words("zzzzzz: 1"),
        "line 2: unknown key `zzzzzz`; correct or remove it"
    );
    assert_eq!(
        words("tools: read"),
        "line 2: `tools`: expected a list such as `[a, b]`, found text"
    );
    assert_eq!(
        words("a: 1\na: 2"),
        "line 3: duplicate key `a`; remove one of the two"
    );
    assert_eq!(
        words("runtime: acpp"),
        "line 2: `runtime`: `acpp` is not one of: native, acp, command"
    );
}

#[test]
fn lines_count_from_the_top_of_the_file() {
    assert_eq!(
        refused("\n\n---\nmodle: x\n---\n"),
        unknown("modle", 4, Some("model"))
    );
}

#[test]
#[rustfmt::skip]
fn duplicate_keys_have_a_path_and_the_second_line() {
    for (yaml, key, line) in [
        ("model: x\nmodel: x", "model", 3),
        (
            "limits:\n  turn:\n    usd: 1\n    tokens: 1\n    usd: 2",
            "limits.turn.usd",
            6,
        ),
        (
            "permissions:\n- {tool: x, decision: ask}\n- tool: x\n  tool: y",
            "permissions[1].tool",
            5,
        ),
        ("env: {A: x,\n  \"A\": y}", "env.A", 3),
        ("hooks:\n  a: [{b: 1,\n    b: 2}]", "hooks.a[0].b", 4),
    ] {
        let expected = Error::DuplicateKey {
            key: key.to_owned(),
            line,
        };
        assert_eq!(refused_front(yaml), expected, "{yaml:?}");
    }
}

#[test]
fn front_matter_that_is_not_closed() {
    for text in [
        "---",
        "---\n",
        "---\nmodel: x\n",
        "\n---\nmodel: x\n ---\n----\n",
    ] {
        assert_eq!(refused(text), Error::UnclosedFrontMatter, "{text:?}");
    }
}

#[test]
fn front_matter_that_is_no_mapping() {
    for yaml in [
        "- a\n- b",
        "just words",
        "5",
        "null",
        "[]",
        "\"model: x\"",
        "modelx",
    ] {
        assert_eq!(refused_front(yaml), Error::NotAMapping, "{yaml:?}");
    }
}

#[test]
fn yaml_that_cannot_be_read() {
    assert_yaml("model: x\nprovider: a: b", 3, "");
    assert_yaml("model: x\n\ttools: [a]", 3, "");
    assert_yaml("model: \"\\q\"", 2, "");
    assert_yaml("model: *none", 2, "");
    assert_yaml("model: x\n...\nprovider: y", 4, "second document");
    assert_yaml("model: x\n--- {}", 3, "second document");
    assert_yaml("model: x\ncwd: !!str 5", 3, "tags");
    assert_yaml("model: x\ntools: !x [a]", 3, "tags");
    assert_yaml("model: x\nlimits: !x {}", 3, "tags");
    assert_yaml("model: x\n[a]: b", 3, "a key must be a word");
    assert_yaml("env: &a {b: *a}", 2, "inside the node that it names");
    assert_yaml("%YAML 1.2\n", 2, "");
}

#[test]
fn a_spec_that_is_too_large() {
    let fits = "x".repeat(MAX_BYTES);
    assert_eq!(parse(&fits).unwrap().system, fits);
    assert_eq!(
        refused(&format!("{fits}x")),
        Error::TooLarge { limit: MAX_BYTES }
    );
}
