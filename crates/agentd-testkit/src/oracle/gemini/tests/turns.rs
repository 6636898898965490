//! For every rule about the order of turns a body that breaks it and nothing else.

use serde_json::{Value, json};

use super::super::super::judge::{with, without};
use super::{asked, call, content, response, round_trip, thinking, tooled, user, with_ids};

pub(super) fn all() -> Vec<(&'static str, Value)> {
    let said = content("model", json!([{"text": "Hi"}]));
    let read = content("model", json!([call("read", None)]));
    let done = content("user", json!([response("read", None)]));
    vec![
        ("first_not_user", tooled(json!([said, user("Hello")]))),
        ("trailing_model", tooled(json!([user("Hello"), said]))),
        (
            "call_outside_model",
            tooled(json!([content("user", json!([call("read", None)]))])),
        ),
        (
            "response_outside_user",
            tooled(json!([
                user("Hello"),
                content("model", json!([response("read", None)])),
                user("And?"),
            ])),
        ),
        (
            "call_after_model",
            tooled(json!([user("Hello"), said, read, done])),
        ),
        (
            "unanswered_call",
            tooled(json!([user("Hello"), read, user("And?")])),
        ),
        (
            "unanswered_call",
            tooled(json!([
                user("Hello"),
                read,
                user("And?"),
                said,
                user("So?")
            ])),
        ),
        (
            "late_response",
            tooled(json!([user("Hello"), read, user("And?"), done])),
        ),
        (
            "orphan_response",
            tooled(json!([user("Hello"), said, done])),
        ),
        (
            "orphan_response",
            tooled(json!([user("Hello"), read, done, done])),
        ),
        (
            "response_not_first",
            with(
                thinking(),
                "/contents/2/parts",
                json!([{"text": "Here:"}, response("read", None)]),
            ),
        ),
        (
            "response_count_mismatch",
            without(round_trip(), "/contents/2/parts/0"),
        ),
        (
            "response_count_mismatch",
            with(thinking(), "/contents/2/parts/-", response("read", None)),
        ),
        (
            "response_name_mismatch",
            with(thinking(), "/contents/2/parts/0", response("list", None)),
        ),
        (
            "response_name_mismatch",
            with(
                with_ids(),
                "/contents/2/parts/0",
                response("list", Some("c2")),
            ),
        ),
        (
            "response_id_mismatch",
            with(
                with_ids(),
                "/contents/2/parts/0",
                response("read", Some("c3")),
            ),
        ),
        (
            "response_id_mismatch",
            with(with_ids(), "/contents/2/parts/0", response("read", None)),
        ),
        (
            "duplicate_call_id",
            asked(
                json!([call("read", Some("c1")), call("read", Some("c1"))]),
                json!([response("read", Some("c1")), response("read", Some("c1"))]),
            ),
        ),
    ]
}
