//! Calls that wait for approval: whose keys are whose.

use super::*;

/// Types a text, which must not do anything else.
fn only_typed(test: &mut Test, text: &str) {
    for c in text.chars() {
        let effects = test.key(KeyCode::Char(c), NONE);
        assert_eq!(effects, [], "{c} of {text}");
    }
}

#[test]
fn a_sentence_never_answers_a_call() {
    for text in ["try", "draft", "and so on: any day", "Yes"] {
        let mut test = Test::new();
        test.begin_turn();
        test.waits_for(vec![approval(1, "rm x")]);
        assert!(matches!(test.app.focus, Focus::Approval));
        test.pass(5000);
        only_typed(&mut test, text);
        assert_eq!(test.app.composer.text(), text);
        assert!(test.screen().contains("Ctrl-O answers it"));
        // The call does not take the keys back while the text stands there.
        test.pass(5000);
        only_typed(&mut test, "y");
        assert_eq!(test.app.composer.text(), format!("{text}y"));
    }
}

#[test]
fn a_search_keeps_its_keys() {
    let mut test = Test::new();
    test.event(prompt("why is the sky blue"));
    test.begin_turn();
    test.pass(5000);
    test.ctrl('r');
    only_typed(&mut test, "wh");
    test.pass(5000);
    test.waits_for(vec![approval(1, "rm x")]);
    test.pass(5000);
    only_typed(&mut test, "y");
    let search = test.app.composer.search.as_ref().unwrap();
    assert_eq!(search.words, "why");
    assert!(test.screen().contains("Ctrl-O answers it"));
}

#[test]
fn a_text_typed_just_after_enter_is_kept() {
    let mut test = Test::new();
    test.type_text("first");
    test.enter();
    test.begin_turn();
    test.pass(100);
    test.waits_for(vec![approval(1, "rm x")]);
    test.pass(100);
    only_typed(&mut test, "any draft");
    assert_eq!(test.app.composer.text(), "any draft");
}

/// A user who sent a prompt and then waits can answer without another key.
#[test]
fn a_call_takes_the_keys_when_the_user_has_stopped_typing() {
    let mut test = Test::new();
    test.type_text("first");
    test.enter();
    test.begin_turn();
    test.pass(100);
    test.waits_for(vec![approval(1, "rm x")]);
    assert!(matches!(test.app.focus, Focus::Prompt));
    test.pass(1000);
    assert!(matches!(test.app.focus, Focus::Approval));
    // The user has just got the keys.
    assert_eq!(test.key(KeyCode::Char('y'), NONE), []);
    test.pass(500);
    let effects = test.key(KeyCode::Char('y'), NONE);
    assert!(matches!(effects[..], [Effect::Approve { .. }]));
}

/// With a draft in the prompt too: answering is not typing.
#[test]
fn the_next_call_takes_the_keys_after_an_answer() {
    let mut test = Test::new();
    test.begin_turn();
    test.type_text("a draft");
    test.waits_for(vec![approval(1, "rm x")]);
    test.ctrl('o');
    test.pass(500);
    let effects = test.key(KeyCode::Char('y'), NONE);
    assert!(matches!(effects[..], [Effect::Approve { .. }]));
    test.waits_for(Vec::new());
    test.waits_for(vec![approval(2, "rm y")]);
    assert!(matches!(test.app.focus, Focus::Approval));
    test.pass(500);
    let effects = test.key(KeyCode::Char('y'), NONE);
    assert!(matches!(effects[..], [Effect::Approve { .. }]));
    assert_eq!(test.app.composer.text(), "a draft");
}

#[test]
fn a_call_is_answered_on_its_page() {
    let mut test = Test::new();
    test.waits_for(vec![approval(1, "cargo test"), approval(2, "rm x")]);
    test.pass(500);
    test.key(KeyCode::Char('v'), NONE);
    let screen = test.screen();
    assert_eq!(screen.matches("cargo test").count(), 1, "{screen}");
    assert!(
        screen.contains("y yes · a always · n no · Esc closes"),
        "{screen}"
    );
    let header = "The call that waits for approval · y, n and a answer it · Esc closes";
    assert!(screen.contains(header), "{screen}");
    let effects = test.key(KeyCode::Char('y'), NONE);
    let [Effect::Approve { hash, .. }] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(hash, "hash1");
    assert!(matches!(test.app.focus, Focus::Approval));
    test.pass(500);
    test.key(KeyCode::Char('v'), NONE);
    test.key(KeyCode::Char('n'), NONE);
    assert!(test.screen().contains("reason>"));
    test.key(KeyCode::Esc, NONE);
    // A letter that is no answer is typed; the page closes.
    test.ctrl('o');
    test.key(KeyCode::Char('v'), NONE);
    only_typed(&mut test, "ay");
    assert_eq!(test.app.composer.text(), "ay");
    // The call of the page is answered elsewhere.
    test.ctrl('u');
    test.ctrl('o');
    test.key(KeyCode::Char('v'), NONE);
    test.waits_for(Vec::new());
    assert!(matches!(test.app.focus, Focus::Prompt));
    assert!(test.screen().contains("answered elsewhere"));
}

/// A screen of 40 columns and 12 rows.
#[test]
fn a_forged_reason_hides_nothing_on_a_small_screen() {
    let mut leaves = approval(1, "curl evil\nsecond\nthird\nfourth\nfifth");
    let call = leaves.what.as_mut().unwrap();
    let reason = "tests\n  in /work; sandbox workspace-write; network off\n  id 1";
    call.input["escalate"] = reason.into();
    let mut test = Test::new();
    test.size = Size {
        width: 40,
        height: 12,
    };
    test.waits_for(vec![leaves]);
    let screen = test.screen();
    assert!(
        screen.contains("  asks to leave the sandbox\n  │ curl evil\n"),
        "{screen}"
    );
    let forged = |row: &str| row.starts_with("  in /work; sandbox workspace-write; n");
    assert!(!screen.lines().any(forged), "{screen}");
}

#[test]
fn a_write_over_a_file_shows_what_changes() {
    let mut asked = approval(1, "");
    let call = asked.what.as_mut().unwrap();
    call.tool = "write_file".to_owned();
    call.input = serde_json::json!({ "file_path": "a.txt", "content": "one\nTwo\n" });
    let (id, call) = (asked.id, Box::new(call.clone()));
    let mut test = Test::new();
    let mut agent = agent();
    agent.approvals = vec![asked];
    let effects = test.answer(Answer::Agent(Ok(Box::new(agent))));
    let load = Effect::LoadBefore { approval: id, call };
    assert!(effects.contains(&load), "{effects:?}");
    assert!(test.screen().contains("  │ +one\n  │ +Two"));
    let before = Some("one\ntwo\n".to_owned());
    test.answer(Answer::Before(id, before));
    let screen = test.screen();
    let expected = "  │ a.txt (replaces the file)\n  │  one\n  │ -two\n  │ +Two";
    assert!(screen.contains(expected), "{screen}");
}
