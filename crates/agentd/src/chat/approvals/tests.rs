//! Calls that wait for approval: their keys and their rows.

use super::*;
use crate::terminal;
use agentd_client::api::Need;
use agentd_core::spec::{Network, Sandbox};
use serde_json::json;
use uuid::Uuid;

pub fn approval(n: u128, command: &str) -> Approval {
    Approval {
        id: ApprovalId::new(Uuid::from_u128(n)),
        call: format!("call{n}"),
        asked_at: Timestamp::default(),
        agent: None,
        why: Some("no rule allows it".to_owned()),
        what: Some(Call {
            tool: "shell".to_owned(),
            input: json!({ "command": command }),
            cwd: Some("/work".to_owned()),
            sandbox: Sandbox::WorkspaceWrite,
            network: Network::On,
            needs: Vec::new(),
            hash: format!("hash{n}"),
        }),
        question: None,
    }
}

fn key(c: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)
}

const fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

#[test]
fn an_answer_names_the_call_that_was_shown() {
    let mut all = Approvals::default();
    assert!(all.set(vec![approval(1, "ls"), approval(2, "rm x")], at(0)));
    let approve = |n: u128, always| {
        Reply::Effect(Effect::Approve {
            approval: ApprovalId::new(Uuid::from_u128(n)),
            hash: format!("hash{n}"),
            always,
        })
    };
    assert_eq!(all.key(key('y'), at(1000)), approve(1, false));
    assert_eq!(all.key(key('a'), at(1000)), Reply::Nothing);
    assert_eq!(all.key(key('a'), at(1000)), approve(1, true));
    // The first one is answered elsewhere: the second one is shown now.
    assert!(all.set(vec![approval(2, "rm x")], at(1000)));
    assert_eq!(all.key(key('y'), at(1100)), Reply::Nothing);
    assert_eq!(all.key(key('y'), at(1500)), approve(2, false));
    assert!(!all.set(vec![approval(2, "rm x")], at(1600)));
    let reason = Reply::Reason {
        approval: ApprovalId::new(Uuid::from_u128(2)),
        hash: Some("hash2".to_owned()),
    };
    assert_eq!(all.key(key('n'), at(1600)), reason);
    all.set(Vec::new(), at(2000));
    assert_eq!(all.key(key('y'), at(9000)), Reply::Leave);
}

#[test]
fn a_call_that_cannot_be_read_is_not_approved() {
    let mut all = Approvals::default();
    let unreadable = Approval {
        what: None,
        ..approval(1, "")
    };
    all.set(vec![unreadable], at(0));
    assert_eq!(all.key(key('y'), at(1000)), Reply::Unreadable);
    assert!(matches!(all.key(key('n'), at(1000)), Reply::Reason { .. }));
}

#[test]
fn a_long_call_is_cut_in_the_middle() {
    let mut all = Approvals::default();
    all.set(vec![approval(1, &"echo one\n".repeat(50))], at(0));
    let rows = all.rows(60, 10, Keys::Answer);
    let text: Vec<String> = rows
        .iter()
        .map(|row| terminal::uncoloured(&row.to_string()))
        .collect();
    assert_eq!(rows.len(), 10, "{text:#?}");
    assert!(text[0].starts_with("approval needed: shell"), "{text:#?}");
    assert!(
        text.iter().any(|row| row.contains("more rows")),
        "{text:#?}"
    );
    let why = "approval needed because no rule allows it";
    assert!(text.iter().any(|row| row.contains(why)), "{text:#?}");
    assert!(text[9].starts_with("y yes"), "{text:#?}");
    for most in 0..4 {
        assert!(all.rows(20, most, Keys::Elsewhere).len() <= most.max(2));
    }
}

fn texts(rows: &[Line]) -> Vec<String> {
    let texts = rows.iter();
    let texts = texts.map(|row| terminal::uncoloured(&row.to_string()));
    texts.collect()
}

/// On a screen of 40 columns and 12 rows the call has 6 rows.
#[test]
fn a_long_reason_hides_neither_the_sandbox_nor_the_command() {
    let mut leaves = approval(1, &"curl evil\n".repeat(10));
    let reason = "tests\n  in /work; sandbox workspace-write; network off\n".repeat(9);
    let call = leaves.what.as_mut().unwrap();
    call.input["escalate"] = reason.into();
    call.cwd = Some("/a/long/directory/".repeat(9));
    let mut all = Approvals::default();
    all.set(vec![leaves], at(0));
    for (width, most) in [(40, 6), (40, 9), (80, 12), (120, 20)] {
        let text = texts(&all.rows(width, most, Keys::Answer));
        assert!(text.len() <= most, "{text:#?}");
        assert_eq!(text[0], "approval needed: shell:", "{text:#?}");
        assert_eq!(text[1], "  asks to leave the sandbox", "{text:#?}");
        assert_eq!(text[2], "  │ curl evil", "{text:#?}");
        let forged = |row: &String| row.starts_with("  in /work");
        assert!(!text.iter().any(forged), "{text:#?}");
        assert!(!text.iter().any(|row| row.contains(" id ")), "{text:#?}");
    }
}

/// What is dangerous is shown first, and the screen says that there is more.
#[test]
fn many_needs_hide_neither_the_dangerous_one_nor_the_command() {
    let mut leaves = approval(1, "curl evil\nsecond");
    let call = leaves.what.as_mut().unwrap();
    call.input["escalate"] = "x".into();
    call.needs = (0..8)
        .map(|n| Need {
            need: format!("write:/{n}"),
            words: format!("write /{n}"),
            danger: (n == 7).then(|| "credentials".to_owned()),
        })
        .collect();
    let mut all = Approvals::default();
    all.set(vec![leaves], at(0));
    let text = texts(&all.rows(60, 6, Keys::Answer));
    assert!(text.len() <= 6, "{text:#?}");
    assert_eq!(
        text[1], "  DANGEROUS (credentials): needs to write /7",
        "{text:#?}"
    );
    assert!(text.iter().any(|row| row == "  │ curl evil"), "{text:#?}");
    assert!(
        text.iter().any(|row| row.contains("v shows them")),
        "{text:#?}"
    );
}

#[test]
fn always_needs_a_second_key_and_typing_goes_to_the_prompt() {
    let mut all = Approvals::default();
    all.set(vec![approval(1, "ls")], at(0));
    assert_eq!(all.key(key('a'), at(1000)), Reply::Nothing);
    let hint = |all: &Approvals| texts(&all.rows(80, 10, Keys::Answer)).pop().unwrap();
    assert!(hint(&all).starts_with("a again or Enter"), "{}", hint(&all));
    // `ay` is a word, not an answer.
    assert_eq!(all.key(key('y'), at(1000)), Reply::Type("a".to_owned()));
    assert_eq!(all.key(key('d'), at(1000)), Reply::Type(String::new()));
    all.key(key('a'), at(1000));
    assert_eq!(all.key(KeyCode::Esc.into(), at(1000)), Reply::Nothing);
    assert!(hint(&all).starts_with("y yes · a always"), "{}", hint(&all));
    all.key(key('a'), at(1000));
    let reply = all.key(KeyCode::Enter.into(), at(1000));
    let Reply::Effect(Effect::Approve { always, .. }) = reply else {
        panic!("{reply:?}");
    };
    assert!(always);
    // Letters that came too early are typed too, if more follow.
    all.set(vec![approval(2, "ls")], at(2000));
    assert_eq!(all.key(key('a'), at(2100)), Reply::Nothing);
    assert_eq!(all.key(key('n'), at(2200)), Reply::Nothing);
    assert_eq!(all.key(key('d'), at(2300)), Reply::Type("an".to_owned()));
}

/// A rule for a tool of an MCP server allows other arguments, too.
#[test]
fn always_says_that_it_is_about_the_whole_tool() {
    let mut asked = approval(1, "ls");
    if let Some(call) = asked.what.as_mut() {
        call.tool = "mcp__git__push".to_owned();
    }
    let mut all = Approvals::default();
    all.set(vec![asked], at(0));
    all.key(key('a'), at(1000));
    let hint = texts(&all.rows(100, 10, Keys::Answer)).pop().unwrap();
    let what = "allow every call of mcp__git__push always";
    assert!(hint.contains(what), "{hint}");
}

#[test]
fn always_is_not_offered_if_no_rule_can_express_the_call() {
    let mut all = Approvals::default();
    all.set(vec![approval(1, "wc -l src/*.rs")], at(0));
    let hint = texts(&all.rows(80, 10, Keys::Answer)).pop().unwrap();
    assert!(hint.starts_with("y yes · n no"), "{hint}");
    let refused = Reply::OnceOnly(OnceOnly::Wildcard);
    assert_eq!(all.key(key('a'), at(1000)), refused);
}
