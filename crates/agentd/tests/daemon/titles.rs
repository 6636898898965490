//! Titles of conversations.

use crate::test_daemon::TestDaemon;
use agentd_client::api::{Purge, Reset, Rewind};

fn titles(daemon: &TestDaemon) -> Vec<Option<String>> {
    let all = daemon
        .block(daemon.client().conversations("coder"))
        .unwrap();
    let each = all.conversations.iter();
    each.map(|it| it.title.clone()).collect()
}

#[test]
fn by_their_first_words_or_as_the_user_says() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    assert_eq!(daemon.show("coder").title, None);
    daemon.completed("coder", "  Fix the tests\nand then some");
    daemon.completed("coder", "do: say more");
    assert_eq!(daemon.show("coder").title.as_deref(), Some("Fix the tests"));
    // A generated one goes with its conversation.
    let reset = Reset::default();
    let receipt = daemon
        .block(daemon.client().reset("coder", &reset))
        .unwrap();
    assert_eq!(daemon.show("coder").title, None);
    daemon.completed("coder", "Write the docs");
    let two = [
        Some("Fix the tests".to_owned()),
        Some("Write the docs".to_owned()),
    ];
    assert_eq!(titles(&daemon), two);
    // A branch is called as what it branched off.
    let back = Rewind {
        to: "1".to_owned(),
        conversation: Some(receipt.old),
        ..Rewind::default()
    };
    daemon
        .block(daemon.client().rewind("coder", &back))
        .unwrap();
    assert_eq!(daemon.show("coder").title.as_deref(), Some("Fix the tests"));
    // The user's own stays.
    let mut spec = daemon.spec();
    spec.title = Some("The review".to_owned());
    daemon
        .block(daemon.client().set_spec("coder", &spec))
        .unwrap();
    assert_eq!(daemon.show("coder").title.as_deref(), Some("The review"));
    daemon
        .block(daemon.client().reset("coder", &reset))
        .unwrap();
    assert_eq!(daemon.show("coder").title.as_deref(), Some("The review"));
    // What is purged has no words to be called by.
    let purge = Purge {
        conversation: Some(receipt.new),
        dry_run: false,
    };
    daemon
        .block(daemon.client().purge("coder", &purge))
        .unwrap();
    assert_eq!(titles(&daemon)[1], None);
}

/// A prompt that waits while a turn makes many calls is far from the turn that answers it.
#[test]
fn a_turn_has_the_words_of_a_prompt_that_waited_long() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let wait = r#"call shell {"command":"until [ -e go ]; do sleep 0.02; done"}"#;
    let calls = "call list_files {} ;; ".repeat(45);
    let first = daemon.send("coder", &format!("do: {wait} ;; {calls}say done"));
    let second = daemon.send("coder", "do: say I waited");
    let long = format!("do: say {}", "xxx ".repeat(25_000));
    let third = daemon.send("coder", &long);
    std::fs::write(daemon.work().join("go"), "").unwrap();
    for sent in [first, second, third] {
        daemon.answer("coder", sent.prompt);
    }
    let all = daemon
        .block(daemon.client().conversation("coder", "1"))
        .unwrap();
    let words: Vec<_> = all
        .ended
        .iter()
        .map(|turn| turn.prompt.as_deref())
        .collect();
    assert!(words[0].is_some_and(|words| words.starts_with("do: call shell")));
    assert_eq!(words[1], Some("do: say I waited"));
    assert!(words[2].is_some_and(|words| words.starts_with("do: say xxx")));
}
