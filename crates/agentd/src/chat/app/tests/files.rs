//! The path of `/attach`, and a text that comes back after the end of a chat.

use super::*;
use crate::chat::unsent::Unsent;
use std::collections::BTreeSet;

fn tab(test: &mut Test, typed: &str) {
    let effects = test.key(KeyCode::Tab, NONE);
    assert_eq!(effects, [Effect::LoadFiles(typed.to_owned())]);
}

#[test]
fn the_path_of_attach_is_completed_as_a_whole() {
    let mut test = Test::new();
    test.type_text("/attach ~/my p");
    tab(&mut test, "~/my p");
    let found = ["~/my pics/", "~/my pipe"].map(str::to_owned).to_vec();
    test.answer(Answer::Files("~/my p".to_owned(), found));
    assert_eq!(test.app.composer.text(), "/attach ~/my pi");
    assert!(test.screen().contains("> ~/my pics/"), "{}", test.screen());
    test.enter();
    assert_eq!(test.app.composer.text(), "/attach ~/my pics/");
    tab(&mut test, "~/my pics/");
    let found = vec!["~/my pics/a b.png".to_owned()];
    test.answer(Answer::Files("~/my pics/".to_owned(), found));
    assert_eq!(test.app.composer.text(), "/attach ~/my pics/a b.png");
    // An answer that comes too late changes nothing.
    let late = Answer::Files("~/my".to_owned(), vec!["~/my x".to_owned()]);
    test.answer(late);
    assert_eq!(test.app.composer.text(), "/attach ~/my pics/a b.png");
    let path = "~/my pics/a b.png".to_owned();
    assert_eq!(test.enter(), [Effect::Attach(path)]);
}

#[test]
fn a_quoted_path_of_attach_keeps_its_quotes() {
    let mut test = Test::new();
    test.type_text("/attach \"my");
    tab(&mut test, "\"my");
    let found = vec!["my notes.txt".to_owned()];
    test.answer(Answer::Files("\"my".to_owned(), found));
    assert_eq!(test.app.composer.text(), "/attach \"my notes.txt\"");
}

/// The words that were pasted still attach no files, and those that were chosen still do.
#[test]
fn a_text_comes_back_with_what_is_known_about_its_files() {
    let mut test = Test::new();
    test.type_text("see @a.rs ");
    test.answer(Answer::Attached(Ok("/home/u/b.png".to_owned())));
    test.update(Input::Paste("and the log @.env".to_owned()));
    let unsent = test.app.unsent();
    assert_eq!(unsent.text, "see @a.rs @/home/u/b.png and the log @.env");
    assert_eq!(unsent.untyped, BTreeSet::from(["@.env".to_owned()]));
    assert_eq!(unsent.chosen, ["/home/u/b.png"]);
    assert!(!test.app.has_no_text());

    let mut next = Test::new();
    next.app.restore(unsent.clone());
    assert!(next.screen().contains("typed before and not sent"));
    assert_eq!(next.app.unsent(), unsent);
    let effects = next.enter();
    let [
        Effect::Send {
            text,
            typed,
            chosen,
            ..
        },
    ] = &effects[..]
    else {
        panic!("{effects:?}");
    };
    assert_eq!(*text, unsent.text);
    assert_eq!(typed, "see @a.rs @/home/u/b.png and the log");
    assert_eq!(*chosen, ["/home/u/b.png"]);
    assert!(next.app.has_no_text());
    assert!(next.app.unsent().is_blank());
}

#[test]
fn a_text_that_came_back_keeps_the_keys_and_a_reason_does_not_replace_it() {
    let mut test = Test::new();
    test.waits_for(vec![approval(1, "rm x")]);
    assert!(matches!(test.app.focus, Focus::Approval));
    test.app.restore(Unsent {
        text: "half a \u{1b}[2Jthought".to_owned(),
        ..Unsent::default()
    });
    assert!(matches!(test.app.focus, Focus::Prompt));
    test.ctrl('o');
    test.pass(500);
    test.key(KeyCode::Char('n'), NONE);
    test.type_text("because");
    assert_eq!(test.app.unsent().text, "half a thought");
    assert!(!test.app.has_no_text());
}
