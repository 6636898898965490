//! What the providers demand of a tool's parameter schema before they look at the conversation.

use serde_json::Value;

use super::shape::{kind, list_at, text_at};
use super::violation::Report;

/// Deeper schemas are not walked further: the checkers must not run out of stack.
const MAX_DEPTH: usize = 60;

/// The fields of Gemini's own Schema type; it answers "Unknown name" to any other.
const GEMINI_KEYWORDS: &[&str] = &[
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "propertyOrdering",
    "required",
    "title",
    "type",
];

/// The root must describe an object, with no choice between schemas at the top.
pub(super) fn root(report: &mut Report, schema: &Value, path: &str) {
    report.require(
        text_at(schema, "type") == Some("object"),
        "schema_not_object",
        path,
        "the root of a parameter schema must have type \"object\"",
    );
    for key in ["oneOf", "anyOf", "allOf"] {
        report.require(
            schema.get(key).is_none(),
            "schema_root_choice",
            path,
            format!("{key} is not supported at the root"),
        );
    }
}

/// OpenAI: the root rules, named properties, arrays with items, and the strict subset if asked.
pub(super) fn openai(report: &mut Report, schema: &Value, path: &str, strict: bool) {
    root(report, schema, path);
    if text_at(schema, "type") == Some("object") {
        report.require(
            schema.get("properties").is_some_and(Value::is_object),
            "schema_without_properties",
            path,
            "an object schema must name its properties, even if there are none",
        );
    }
    walk(path, schema, MAX_DEPTH, &mut |at, one| {
        array_items(report, at, one, is_type(one, "array"));
        if strict && is_type(one, "object") {
            strict_object(report, at, one);
        }
    });
}

fn strict_object(report: &mut Report, path: &str, schema: &Value) {
    report.require(
        schema.get("additionalProperties") == Some(&Value::Bool(false)),
        "schema_not_strict",
        path,
        "strict schemas need additionalProperties: false",
    );
    let required = list_at(schema, "required");
    for name in property_names(schema) {
        report.require(
            required.iter().any(|one| one.as_str() == Some(name)),
            "schema_not_strict",
            path,
            format!("strict schemas require every property, {name:?} is not"),
        );
    }
}

/// Gemini: its OpenAPI subset only, with one type per schema.
pub(super) fn gemini(report: &mut Report, schema: &Value, path: &str) {
    report.require(
        text_at(schema, "type").is_some_and(|name| name.eq_ignore_ascii_case("object")),
        "schema_not_object",
        path,
        "the root of a parameter schema must have type \"object\"",
    );
    walk(path, schema, MAX_DEPTH, &mut |at, one| {
        gemini_one(report, at, one);
    });
}

fn gemini_one(report: &mut Report, path: &str, schema: &Value) {
    for key in schema.as_object().into_iter().flat_map(|map| map.keys()) {
        report.require(
            GEMINI_KEYWORDS.contains(&key.as_str()),
            "schema_unknown_keyword",
            path,
            format!("{key:?} is not a field of Gemini's schema"),
        );
    }
    let name = text_at(schema, "type").unwrap_or_default();
    if let Some(given) = schema.get("type") {
        let known = [
            "string", "number", "integer", "boolean", "array", "object", "null",
        ];
        report.require(
            known.iter().any(|one| one.eq_ignore_ascii_case(name)),
            "schema_bad_type",
            path,
            format!("type must be one known name, not {given}"),
        );
    }
    array_items(report, path, schema, name.eq_ignore_ascii_case("array"));
    for (index, one) in list_at(schema, "required").iter().enumerate() {
        let defined = one
            .as_str()
            .is_some_and(|name| property_names(schema).any(|known| known == name));
        report.require(
            defined,
            "schema_required_undefined",
            format!("{path}.required[{index}]"),
            format!("{one} is not among the properties"),
        );
    }
    if let Some(values) = schema.get("enum") {
        let fine = name.eq_ignore_ascii_case("string")
            && values.as_array().is_some_and(|list| {
                list.iter()
                    .all(|one| one.as_str().is_some_and(|text| !text.is_empty()))
            });
        report.require(
            fine,
            "schema_bad_enum",
            path,
            "enum takes non-empty strings, on type string only",
        );
    }
}

fn array_items(report: &mut Report, path: &str, schema: &Value, array: bool) {
    let items = schema.get("items");
    report.require(
        !array || items.is_some_and(Value::is_object),
        "schema_array_without_items",
        path,
        format!("an array schema needs items, found {}", kind(items)),
    );
}

fn property_names(schema: &Value) -> impl Iterator<Item = &str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(|map| map.keys().map(String::as_str))
}

/// JSON Schema lets `type` be a list of names, too.
fn is_type(schema: &Value, name: &str) -> bool {
    text_at(schema, "type") == Some(name)
        || list_at(schema, "type")
            .iter()
            .any(|one| one.as_str() == Some(name))
}

/// Visits a schema and the schemas inside it, but no example or default value.
fn walk(path: &str, schema: &Value, depth: usize, visit: &mut impl FnMut(&str, &Value)) {
    if !schema.is_object() || depth == 0 {
        return;
    }
    visit(path, schema);
    for group in ["properties", "$defs", "definitions"] {
        let named = schema.get(group).and_then(Value::as_object);
        for (name, inner) in named.into_iter().flatten() {
            walk(&format!("{path}.{group}.{name}"), inner, depth - 1, visit);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(key) {
            walk(&format!("{path}.{key}"), inner, depth - 1, visit);
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for (index, inner) in list_at(schema, key).iter().enumerate() {
            walk(&format!("{path}.{key}[{index}]"), inner, depth - 1, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn places(run: impl Fn(&mut Report)) -> Vec<(&'static str, String)> {
        let mut report = Report::default();
        run(&mut report);
        let found = report.verdict().err().unwrap_or_default();
        found.into_iter().map(|one| (one.rule, one.path)).collect()
    }

    #[test]
    fn nested_arrays_are_found_wherever_they_stand() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": ["array", "null"]},
            "b": {"anyOf": [{"type": "string"}, {"type": "array"}]},
            "c": {"type": "array", "items": {"type": "array", "items": {}}},
            "default": {"default": {"type": "array"}},
        }});
        let found = places(|report| openai(report, &schema, "p", false));
        let rule = "schema_array_without_items";
        assert_eq!(
            found,
            [
                (rule, "p.properties.a".to_owned()),
                (rule, "p.properties.b.anyOf[1]".to_owned()),
            ]
        );
    }

    #[test]
    fn gemini_takes_upper_and_lower_case_types() {
        let schema = json!({"type": "OBJECT", "properties": {
            "unit": {"type": "string", "enum": ["c", "f"], "nullable": true},
        }, "required": ["unit"]});
        assert!(places(|report| gemini(report, &schema, "p")).is_empty());
    }

    #[test]
    fn a_very_deep_schema_does_not_hurt() {
        let mut schema = json!({"type": "string"});
        for _ in 0..500 {
            schema = json!({"type": "array", "items": schema});
        }
        assert!(!places(|report| openai(report, &schema, "p", true)).is_empty());
    }
}
