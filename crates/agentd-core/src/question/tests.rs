//! What the user types, the defaults, the limits and the titles of forms.

use super::*;
use serde_json::json;

fn question() -> Question {
    Question {
        server: "fs".to_owned(),
        message: "Where?".to_owned(),
        form: Some(
            json!({"type": "object", "required": ["path"], "properties": {
                "path": {"type": "string", "description": "A directory."},
                "depth": {"type": "integer"},
                "sure": {"type": "boolean"},
                "mode": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
                "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
            }}),
        ),
        url: None,
    }
}

#[test]
fn what_the_user_types_becomes_a_value_of_the_field() {
    let question = question();
    let typed = [
        ("path", "/a b", json!("/a b")),
        ("depth", "3", json!(3)),
        ("sure", "Yes", json!(true)),
        ("mode", "b", json!("b")),
        ("tags", "x, y", json!(["x", "y"])),
    ];
    let mut content = Map::new();
    for (name, text, expected) in typed {
        let field = question.fields().into_iter().find(|it| it.name == name);
        let value = field.unwrap().value(text).unwrap();
        assert_eq!(value, expected, "{name}");
        content.insert(name.to_owned(), value);
    }
    assert_eq!(question.check(&content), Ok(()));
}

#[test]
fn a_wrong_answer_is_named() {
    let question = question();
    for (content, expected) in [
        (json!({}), "the field `path` is missing"),
        (json!({"path": 1}), "`path` must be of type string"),
        (json!({"path": "a", "mode": "c"}), "one of: a, b"),
        (json!({"path": "a", "tags": ["z"]}), "one of: x, y"),
        (json!({"path": "a", "other": 1}), "no field `other`"),
    ] {
        let Value::Object(content) = content else {
            panic!()
        };
        let error = question.check(&content).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    for (name, typed) in [("depth", "x"), ("sure", "maybe"), ("mode", "c")] {
        let field = question.fields().into_iter().find(|it| it.name == name);
        assert!(field.unwrap().value(typed).is_err(), "{name}");
    }
}

fn with(properties: &Value, required: &Value) -> Question {
    let form = json!({"type": "object", "required": required, "properties": properties});
    Question {
        form: Some(form),
        ..question()
    }
}

#[test]
fn the_defaults_of_the_server_are_filled_in() {
    let properties = json!({
        "branch": {"type": "string", "default": "main"},
        "depth": {"type": "integer", "default": 3, "maximum": 5},
        "odd": {"type": "integer", "default": 9, "maximum": 5},
        "name": {"type": "string"},
    });
    let question = with(&properties, &json!(["branch", "name"]));
    let filled = question.filled(&["name=Ann".to_owned(), "depth=1".to_owned()]);
    let expected = json!({"branch": "main", "depth": 1, "name": "Ann"});
    assert_eq!(Value::Object(filled.unwrap()), expected);
    assert_eq!(question.to_fill_in(), ["name=…"]);
    assert!(
        question
            .filled(&[])
            .unwrap_err()
            .contains("`name` is missing")
    );
}

#[test]
fn the_limits_of_the_server_are_checked() {
    let properties = json!({
        "name": {"type": "string", "minLength": 2, "maxLength": 3},
        "depth": {"type": "integer", "minimum": 1, "maximum": 5},
        "ratio": {"type": "number", "maximum": 0.5},
        "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"enum": ["a", "b", "c"]}},
    });
    let question = with(&properties, &json!([]));
    for (given, expected) in [
        ("name=x", Some("at least 2 characters")),
        ("name=wxyz", Some("at most 3 characters")),
        ("name=äöü", None),
        ("depth=0", Some("at least 1")),
        ("depth=6", Some("at most 5")),
        ("depth=5", None),
        ("ratio=0.6", Some("at most 0.5")),
        ("tags=", Some("at least 1 values")),
        ("tags=a,b,c", Some("at most 2 values")),
        ("tags=a,c", None),
    ] {
        let filled = question.filled(&[given.to_owned()]);
        match expected {
            None => assert!(filled.is_ok(), "{given}: {filled:?}"),
            Some(why) => assert!(filled.unwrap_err().contains(why), "{given}"),
        }
    }
}

#[test]
fn fields_and_values_have_titles() {
    let properties = json!({
        "mode": {"type": "string", "title": "How", "description": "Be careful.",
                 "oneOf": [{"const": "a", "title": "All of it"}, {"const": "b"}]},
        "old": {"type": "string", "enum": ["x", "y"], "enumNames": ["Ex", "Why"]},
    });
    let fields = with(&properties, &json!([])).fields();
    assert_eq!(fields[0].title.as_deref(), Some("How"));
    assert_eq!(fields[0].option_titles, ["All of it", "b"]);
    assert_eq!(fields[1].option_titles, ["Ex", "Why"]);
}

#[test]
fn fields_are_given_by_name() {
    let question = question();
    let of = |given: &[&str]| {
        let given: Vec<String> = given.iter().map(|&it| it.to_owned()).collect();
        question.filled(&given)
    };
    let expected = json!({"depth": 7, "path": "a=b"});
    assert_eq!(
        Value::Object(of(&["depth=7", "path=a=b"]).unwrap()),
        expected
    );
    assert!(of(&["path"]).unwrap_err().contains("FIELD=VALUE"));
    assert!(of(&["path=a", "x=2"]).unwrap_err().contains("no field `x`"));
    assert!(of(&[]).unwrap_err().contains("`path` is missing"));
    let line = question.fields_in(" depth=7  path=some more words ");
    assert_eq!(line, ["depth=7", "path=some more words"]);
    let form = json!({"properties": {"name": {"type": "string"}}});
    let one = Question {
        form: Some(form),
        ..question
    };
    assert_eq!(one.fields_in("Ann Lee"), ["name=Ann Lee"]);
}
