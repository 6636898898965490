//! Words and numbers of YAML, aliases, and their limits.

use super::super::scalar::Scalar;
use super::*;
use serde_json::json;

fn hooks(yaml: &str) -> serde_json::Value {
    parse(&format!("---\nhooks: {{v: {yaml}}}\n---\n"))
        .unwrap()
        .hooks["v"]
        .take()
}

#[test]
fn plain_words_follow_the_core_schema() {
    for (yaml, value) in [
        ("~", json!(null)),
        ("null", json!(null)),
        ("", json!(null)),
        ("true", json!(true)),
        ("FALSE", json!(false)),
        ("yes", json!("yes")),
        ("off", json!("off")),
        ("12", json!(12)),
        ("+12", json!(12)),
        ("007", json!(7)),
        ("-12", json!(-12)),
        ("-0", json!(0)),
        ("0x1F", json!(31)),
        ("0o17", json!(15)),
        ("0x", json!("0x")),
        ("0x+1", json!("0x+1")),
        ("0o8", json!("0o8")),
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551616", json!(18446744073709551616.0)),
        ("1.50", json!(1.5)),
        ("1.", json!(1.0)),
        (".5", json!(0.5)),
        ("-.5", json!(-0.5)),
        ("1e3", json!(1000.0)),
        ("1E-2", json!(0.01)),
        ("inf", json!("inf")),
        ("nan", json!("nan")),
        ("1_000", json!("1_000")),
        ("1.2.3", json!("1.2.3")),
        ("2024-01-01", json!("2024-01-01")),
        ("\"12\"", json!("12")),
        ("'true'", json!("true")),
        ("'it''s'", json!("it's")),
        ("[1, [a], {b: c}]", json!([1, ["a"], {"b": "c"}])),
    ] {
        assert_eq!(hooks(yaml), value, "{yaml:?}");
    }
    assert!(matches!(Scalar::of_plain("-.INF"), Scalar::Float(f) if f == f64::NEG_INFINITY));
}

#[test]
fn a_text_field_keeps_the_spelling() {
    let yaml = "---\nmodel: 4.10\nenv: {A: 0x1F, B: true, C: 1e3, D: 2024-01-01}\n---\n";
    let spec = parse(yaml).unwrap();
    assert_eq!(spec.model.as_deref(), Some("4.10"));
    let env = [
        ("A", "0x1F"),
        ("B", "true"),
        ("C", "1e3"),
        ("D", "2024-01-01"),
    ];
    assert_eq!(spec.env, pairs(env));
}

#[test]
fn block_texts_are_read() {
    let spec = parse("---\ndescription: |\n  a\n   b\n\n  c\ncwd: >-\n  x\n  y\n---\n").unwrap();
    assert_eq!(spec.description.as_deref(), Some("a\n b\n\nc\n"));
    assert_eq!(spec.cwd.as_deref(), Some("x y"));
}

#[test]
fn aliases_are_copies() {
    let spec = parse("---\nlimits:\n  turn: &b {usd: 1}\n  day: *b\n---\n").unwrap();
    assert_eq!(spec.limits.day, spec.limits.turn);
    assert_eq!(spec.limits.day.usd, Some(MicroUsd(1_000_000)));
    // An error inside a copy is reported at the original.
    let error = parse("---\nhooks:\n  x: &b {usdd: 1}\nlimits:\n  day: *b\n---\n").unwrap_err();
    let expected = Error::UnknownKey {
        key: "limits.day.usdd".to_owned(),
        line: 3,
        nearest: Some("usd".to_owned()),
    };
    assert_eq!(error, expected);
}

#[test]
fn aliases_that_multiply_are_refused() {
    let mut bomb = "---\nhooks:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let inner = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("  a{level}: &a{level} [{inner}]\n"));
    }
    // One long text, many times over.
    let long = "x".repeat(100_000);
    let wide = format!(
        "---\nhooks:\n  a: &a {long}\n  b: [{}]\n",
        "*a, ".repeat(10_000)
    );
    for text in [bomb, wide] {
        let error = parse(&format!("{text}---\n")).unwrap_err();
        assert!(
            matches!(&error, Error::Yaml { reason, .. } if reason.contains("too large")),
            "{error:?}"
        );
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let flow = |depth| parse(&format!("---\nhooks: {{v: {}}}\n---\n", nested(depth)));
    assert!(flow(60).is_ok());
    let block = |depth: usize| {
        let lines = (0..depth).map(|n| format!("{:n$}a:\n", ""));
        parse(&format!(
            "---\nhooks:\n{} x: y\n---\n",
            lines.collect::<String>()
        ))
    };
    // Copies of copies do not evade the limit.
    let inner = nested(40);
    let alias = |wrap: &str| {
        let yaml = format!("hooks: {{a: &a {inner}, b: {wrap}}}");
        parse(&format!("---\n{yaml}\n---\n"))
    };
    assert!(alias("[[*a]]").is_ok());
    let deep = format!("{}*a{}", "[".repeat(30), "]".repeat(30));
    for result in [flow(64), flow(10_000), block(100), block(300), alias(&deep)] {
        assert!(matches!(result, Err(Error::Yaml { .. })), "{result:?}");
    }
}

/// Inputs that make a careless reader quadratic. They only have to end quickly.
#[test]
fn large_files_do_not_take_long() {
    for unit in [
        "a", "a ", "a: ", "- ", "? ", "{a", "a,", "'", "\"", "&a ", "*a ", "!", "\n", "#", "|\n",
        "a:\n ",
    ] {
        let yaml = unit.repeat(200_000 / unit.len());
        let _ = parse(&format!("---\n{yaml}\n---\n"));
        let _ = parse(&format!("---\nhooks: [{yaml}]\n---\n"));
        let _ = parse(&format!("---\nhooks: {{\"{yaml}\": 1}}\n---\n"));
    }
}
