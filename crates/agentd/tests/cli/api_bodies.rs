//! docs/api.md lists every field of the bodies of requests.

use agentd_client::api::*;
use agentd_core::event::{Direction, Mode};
use agentd_core::id::{ConversationId, OpId, Seq};
use agentd_core::spec::AgentSpec;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

const PAGE: &str = include_str!("../../../../docs/api.md");
const ID: Uuid = Uuid::from_u128(1);

/// The fields in the row of a body: the words in code of its second cell that no parenthesis contains.
fn listed(body: &str) -> BTreeSet<String> {
    let table = PAGE.split("| body of | fields |\n").nth(1).unwrap();
    let mut rows = table.lines().take_while(|line| line.starts_with('|'));
    let named = format!("`{body}`");
    let row = rows.find(|row| row.split('|').nth(1).unwrap().contains(&named));
    let row = row.unwrap_or_else(|| panic!("no row `{body}`"));
    let mut depth = 0;
    let plain: String = row
        .split('|')
        .nth(2)
        .unwrap()
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '(');
            let is_plain = depth == 0;
            depth -= i32::from(*c == ')');
            is_plain
        })
        .collect();
    let words = plain.split('`').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}

#[track_caller]
fn same(body: &str, object: &Value) {
    let found: BTreeSet<String> = object.as_object().unwrap().keys().cloned().collect();
    assert_eq!(listed(body), found, "docs/api.md, body of `{body}`");
}

fn env() -> Env {
    [("A".to_owned(), "b".to_owned())].into()
}

/// Regression: the bodies of the routes that have the names of commands were documented nowhere.
#[test]
fn the_page_lists_every_field_of_every_body() {
    let (op, text) = (Some(OpId::new(ID)), || Some("x".to_owned()));
    let conversation = Some(ConversationId::new(ID));
    let release = Some(Release {
        keep: Vec::new(),
        head: Some(Seq(1)),
    });
    let start = json!(Start {
        env: env(),
        release
    });
    for body in ["start", "continue", "env"] {
        same(body, &start);
    }
    same(
        "stop",
        &json!(Stop {
            kill_background: true,
            grace_ms: Some(1)
        }),
    );
    let grace_ms = Some(1);
    same(
        "restart",
        &json!(Restart {
            grace_ms,
            env: env()
        }),
    );
    let reset = Reset {
        step: Some(Direction::Undo),
        clear_log: true,
        reason: text(),
        force: true,
        skip_hooks: true,
        kill_background: true,
        keep_queue: true,
        grace_ms,
        op,
        if_generation: Some(1),
    };
    same("reset", &json!(reset));
    let rewind = Rewind {
        to: "x".to_owned(),
        conversation,
        reason: text(),
        force: true,
        skip_hooks: true,
        kill_background: true,
        keep_queue: true,
        grace_ms,
        op,
        if_generation: Some(1),
    };
    same("rewind", &json!(rewind));
    let fork = Fork {
        name: text(),
        mode: Some(Mode::Oneshot),
        spec: Some(Box::new(AgentSpec::default())),
        prompt: text(),
        attachments: vec![NewAttachment {
            name: "x".to_owned(),
            media_type: None,
            data: String::new(),
        }],
        at: text(),
        conversation,
        op,
        if_generation: Some(1),
        env: env(),
    };
    same("fork", &json!(fork));
    let compact = Compact {
        instructions: text(),
        op,
        env: env(),
    };
    same("compact", &json!(compact));
    same("checkpoint", &json!(Checkpoint { label: text() }));
    same("rename", &json!(Rename { to: "x".to_owned() }));
    same("archive", &json!(Archive { reason: text() }));
    same("restore", &json!(Restore { name: text() }));
    let purge = Purge {
        conversation,
        dry_run: true,
    };
    same("purge", &json!(purge));
    let (hash, always) = (text(), true);
    same("approve", &json!(Approve { hash, always }));
    let (hash, reason) = (text(), text());
    same("deny", &json!(Deny { hash, reason }));
}
