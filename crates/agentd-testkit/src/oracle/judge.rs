//! Test helpers: run many bodies through one checker and say clearly which one was misjudged.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Verdict;

/// A body with one place replaced (or added), by JSON pointer.
pub(super) fn with(mut body: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    match body.pointer_mut(parent).expect("the parent exists") {
        Value::Object(map) => {
            map.insert(key.to_owned(), value);
        }
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => list[key.parse::<usize>().expect("an index")] = value,
        other => panic!("{parent} is {other}"),
    }
    body
}

/// A body with one place removed, by JSON pointer.
pub(super) fn without(mut body: Value, pointer: &str) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    match body.pointer_mut(parent).expect("the parent exists") {
        Value::Object(map) => {
            map.remove(key).expect("the key exists");
        }
        Value::Array(list) => {
            list.remove(key.parse().expect("an index"));
        }
        other => panic!("{parent} is {other}"),
    }
    body
}

pub(super) fn accepts(check: fn(&Value) -> Verdict, bodies: &[(&str, Value)]) {
    for (name, body) in bodies {
        if let Err(found) = check(body) {
            panic!("{name} must be accepted, but: {found:#?}");
        }
    }
}

/// Every body must break its named rule and no other; together they must cover all `rules`.
pub(super) fn rejects(
    check: fn(&Value) -> Verdict,
    rules: &[&'static str],
    bodies: &[(&'static str, Value)],
) {
    for (rule, body) in bodies {
        let found = check(body).expect_err(rule);
        let names: BTreeSet<_> = found.iter().map(|one| one.rule).collect();
        assert_eq!(names, BTreeSet::from([*rule]), "{found:#?}\nin {body:#}");
    }
    let tried: BTreeSet<_> = bodies.iter().map(|(rule, _)| *rule).collect();
    let listed: BTreeSet<_> = rules.iter().copied().collect();
    assert_eq!(tried, listed, "tested rules on the left, listed ones right");
    assert_eq!(listed.len(), rules.len(), "a rule is listed twice");
}

/// Replaces every place of every body by junk: no panic, and only listed rules are reported.
pub(super) fn survives(
    check: fn(&Value) -> Verdict,
    rules: &[&'static str],
    bodies: &[(&str, Value)],
) {
    let junk = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(""),
        json!("\u{1F980} "),
        json!([]),
        json!({}),
        json!([null, 1, [], {}]),
        json!({"type": [], "role": 1, "parts": null, "content": {"a": [{}]}}),
    ];
    let try_one = |body: &Value| {
        if let Err(found) = check(body) {
            assert!(!found.is_empty());
            for one in found {
                assert!(rules.contains(&one.rule), "{one} is not listed");
            }
        }
    };
    junk.iter().for_each(try_one);
    for (_, body) in bodies {
        let mut pointers = Vec::new();
        collect(body, String::new(), &mut pointers);
        for pointer in pointers {
            for value in &junk {
                try_one(&with(body.clone(), &pointer, value.clone()));
            }
            try_one(&without(body.clone(), &pointer));
        }
    }
}

fn collect(value: &Value, here: String, pointers: &mut Vec<String>) {
    if !here.is_empty() {
        pointers.push(here.clone());
    }
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                collect(inner, format!("{here}/{key}"), pointers);
            }
        }
        Value::Array(list) => {
            for (index, inner) in list.iter().enumerate() {
                collect(inner, format!("{here}/{index}"), pointers);
            }
        }
        _ => {}
    }
}
