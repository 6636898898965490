//! For every rule about single parts and tools a body that breaks it and nothing else.

use serde_json::{Value, json};

use super::super::super::judge::{with, without};
use super::{asked, call, images, plain, response, round_trip, thinking};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    [bad_shapes(), bad_files(), bad_tools()].concat()
}

fn bad_files() -> Vec<(&'static str, Value)> {
    let file = |media: &str, data: &str| json!({"inlineData": {"mimeType": media, "data": data}});
    let of = |files: Vec<Value>| with(plain(), "/contents/0/parts", json!(files));
    let image = |bytes: usize| file("image/png", &"A".repeat(bytes));
    let pdf = |bytes: usize| {
        let data = format!("JVBERi0x{}", "A".repeat(bytes));
        file("application/pdf", &data)
    };
    vec![
        ("too_many_files", of(vec![image(4); 3601])),
        ("files_too_large", of(vec![pdf(10_000_000); 2])),
        ("bad_inline_data", of(vec![file("image/gif", "aGk=")])),
        ("bad_inline_data", of(vec![file("application/pdf", "aGk=")])),
        ("bad_inline_data", of(vec![file("image/png", "aGk")])),
    ]
}

fn bad_shapes() -> Vec<(&'static str, Value)> {
    let part = |part: Value| with(plain(), "/contents/0/parts", json!([part]));
    vec![
        ("bad_part", part(json!({"text": "Hello", "thought": "yes"}))),
        ("bad_part", part(json!({"executableCode": "print(1)"}))),
        (
            "bad_response",
            with(
                images(),
                "/contents/2/parts/0/functionResponse/parts",
                json!({}),
            ),
        ),
        (
            "bad_inline_data",
            with(
                images(),
                "/contents/2/parts/0/functionResponse/parts",
                json!([{}]),
            ),
        ),
        (
            "bad_system_instruction",
            with(
                plain(),
                "/systemInstruction/parts/0",
                json!({"inlineData": {}}),
            ),
        ),
        ("body_not_object", json!(1)),
        ("unknown_field", with(plain(), "/messages", json!([]))),
        (
            "unknown_field",
            with(plain(), "/generationConfig/maxTokens", json!(1)),
        ),
        (
            "unknown_field",
            part(json!({"text": "Hello", "type": "text"})),
        ),
        ("bad_contents", without(plain(), "/contents")),
        ("empty_contents", with(plain(), "/contents", json!([]))),
        (
            "bad_role",
            with(plain(), "/contents/0/role", json!("assistant")),
        ),
        (
            "bad_parts",
            with(plain(), "/contents/0/parts", json!("Hello")),
        ),
        ("empty_parts", with(plain(), "/contents/0/parts", json!([]))),
        ("bad_part", part(json!("Hello"))),
        ("bad_part", part(json!({"text": 5}))),
        ("part_without_data", part(json!({}))),
        (
            "part_with_two_kinds",
            part(json!({"text": "Hello", "fileData": {"fileUri": "files/a"}})),
        ),
        ("blank_text", part(json!({"text": " \n"}))),
        (
            "bad_inline_data",
            part(json!({"inlineData": {"data": "aGk="}})),
        ),
        (
            "bad_inline_data",
            part(json!({"inlineData": {"mimeType": "image/png", "data": ""}})),
        ),
        (
            "bad_file_data",
            part(json!({"fileData": {"mimeType": "image/png"}})),
        ),
        (
            "bad_system_instruction",
            with(plain(), "/systemInstruction", json!("Be brief.")),
        ),
        (
            "blank_system_instruction",
            with(plain(), "/systemInstruction/parts/0/text", json!("")),
        ),
        (
            "bad_generation_config",
            with(plain(), "/generationConfig", json!(5)),
        ),
        (
            "bad_max_tokens",
            with(plain(), "/generationConfig/maxOutputTokens", json!(0)),
        ),
        (
            "bad_sampling",
            with(plain(), "/generationConfig/topP", json!(2)),
        ),
        (
            "bad_stop_sequences",
            with(
                plain(),
                "/generationConfig/stopSequences",
                json!(["a", "b", "c", "d", "e", "f"]),
            ),
        ),
        (
            "two_thinking_settings",
            with(
                plain(),
                "/generationConfig/thinkingConfig",
                json!({"thinkingBudget": 100, "thinkingLevel": "low"}),
            ),
        ),
        (
            "bad_thought_signature",
            with(
                thinking(),
                "/contents/1/parts/0/thoughtSignature",
                json!("no base64!"),
            ),
        ),
        (
            "thought_without_signature",
            without(thinking(), "/contents/1/parts/0/thoughtSignature"),
        ),
        (
            "thought_outside_model",
            part(json!({"text": "Hm.", "thought": true, "thoughtSignature": "c2ln"})),
        ),
        (
            "bad_args",
            with(
                thinking(),
                "/contents/1/parts/1/functionCall/args",
                json!("{}"),
            ),
        ),
        (
            "bad_response",
            with(
                thinking(),
                "/contents/2/parts/0/functionResponse/response",
                json!("done"),
            ),
        ),
        (
            "bad_call_id",
            asked(
                json!([call("read", Some(""))]),
                json!([response("read", Some(""))]),
            ),
        ),
    ]
}

fn bad_tools() -> Vec<(&'static str, Value)> {
    let first = "/tools/0/functionDeclarations/0";
    let property = |schema: Value| {
        with(
            round_trip(),
            "/tools/0/functionDeclarations/0/parameters/properties/path",
            schema,
        )
    };
    let config = |config: Value| {
        with(
            round_trip(),
            "/toolConfig",
            json!({"functionCallingConfig": config}),
        )
    };
    vec![
        ("bad_tools", with(plain(), "/tools", json!([{}]))),
        (
            "bad_tools",
            with(
                round_trip(),
                "/tools/0/functionDeclarations/-",
                json!("read"),
            ),
        ),
        (
            "bad_tools",
            with(
                round_trip(),
                "/tools/0/functionDeclarations/1/description",
                json!(5),
            ),
        ),
        (
            "schema_not_object",
            with(
                round_trip(),
                "/tools/0/functionDeclarations/1/parametersJsonSchema",
                json!({}),
            ),
        ),
        ("bad_tools", with(plain(), "/tools", json!({}))),
        (
            "bad_tools",
            with(plain(), "/tools", json!([{"functionDeclarations": []}])),
        ),
        ("tools_missing", without(round_trip(), "/tools")),
        (
            "duplicate_tool",
            with(
                round_trip(),
                "/tools/0/functionDeclarations/1/name",
                json!("read"),
            ),
        ),
        (
            "bad_tool_name",
            with(
                round_trip(),
                "/tools/0/functionDeclarations/1/name",
                json!("fs.list"),
            ),
        ),
        (
            "bad_tool_name",
            asked(json!([call("a b", None)]), json!([response("a b", None)])),
        ),
        (
            "bad_parameters",
            with(round_trip(), &format!("{first}/parameters"), json!([])),
        ),
        (
            "bad_parameters",
            with(
                round_trip(),
                &format!("{first}/parametersJsonSchema"),
                json!({"type": "object"}),
            ),
        ),
        (
            "schema_not_object",
            with(
                round_trip(),
                &format!("{first}/parameters"),
                json!({"type": "string"}),
            ),
        ),
        (
            "schema_unknown_keyword",
            property(json!({"type": "string", "const": "a"})),
        ),
        (
            "schema_bad_type",
            property(json!({"type": ["string", "null"]})),
        ),
        (
            "schema_array_without_items",
            property(json!({"type": "array"})),
        ),
        (
            "schema_bad_enum",
            property(json!({"type": "integer", "enum": [1, 2]})),
        ),
        (
            "schema_required_undefined",
            with(
                round_trip(),
                &format!("{first}/parameters/required"),
                json!(["name"]),
            ),
        ),
        (
            "search_with_functions",
            with(round_trip(), "/tools/-", json!({"googleSearch": {}})),
        ),
        (
            "tool_config_without_tools",
            with(
                plain(),
                "/toolConfig",
                json!({"functionCallingConfig": {"mode": "AUTO"}}),
            ),
        ),
        ("bad_tool_config", config(json!({"mode": "required"}))),
        (
            "bad_tool_config",
            config(json!({"mode": "AUTO", "allowedFunctionNames": ["read"]})),
        ),
        (
            "bad_tool_config",
            config(json!({"mode": "ANY", "allowedFunctionNames": ["write"]})),
        ),
    ]
}
