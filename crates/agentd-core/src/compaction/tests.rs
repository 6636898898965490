//! Where a summary may end.

use super::*;
use crate::event::{Compacted, MessageStatus, Notice, NoticeCause, Summary};
use crate::fixture::{self, Journal, call};

/// About 100 tokens.
fn long(word: &str) -> String {
    format!("{word:<292}")
}

fn exchange(journal: &mut Journal, n: u128) {
    journal.prompt(n, &long(&format!("question {n}")));
    journal.reply(vec![Block::text(long(&format!("answer {n}")))]);
}

/// How many items stay.
fn kept(journal: &Journal, keep_tokens: u64) -> Option<usize> {
    let window = journal.window();
    let through = cut(&window, keep_tokens)?;
    let last = window
        .items()
        .iter()
        .rposition(|item| item.placed == through);
    Some(window.items().len() - last.expect("a place in the window") - 1)
}

#[test]
fn it_is_due_at_the_share_of_the_window_and_not_before() {
    assert!(!is_due(79, 100, 0.8));
    assert!(is_due(80, 100, 0.8));
    assert!(is_due(u64::MAX, 100, 1.0));
    assert!(!is_due(0, 100, 0.1));
}

#[test]
fn an_empty_window_has_no_cut() {
    assert_eq!(cut(&Window::new(), 100), None);
    assert_eq!(size(&Window::new()), 0);
}

#[test]
fn as_much_as_fits_stays() {
    let mut journal = Journal::new();
    for n in 1..=5 {
        exchange(&mut journal, n);
    }
    assert_eq!(size(&journal.window()), 1_000);
    assert_eq!(kept(&journal, 0), Some(0));
    assert_eq!(kept(&journal, 99), Some(0));
    assert_eq!(kept(&journal, 100), Some(1));
    assert_eq!(kept(&journal, 399), Some(3));
    assert_eq!(kept(&journal, 400), Some(4));
}

#[test]
fn something_is_always_covered() {
    let mut journal = Journal::new();
    exchange(&mut journal, 1);
    assert_eq!(kept(&journal, 1_000_000), Some(1));
}

#[test]
fn a_call_and_its_result_stay_together() {
    let mut journal = Journal::new();
    exchange(&mut journal, 1);
    journal.reply(vec![call("a"), call("b")]);
    journal.result("a", &long("result of a"));
    journal.result("b", &long("result of b"));
    journal.reply(vec![Block::text(long("so"))]);
    // The last result would fit, but its call would be covered.
    assert_eq!(kept(&journal, 250), Some(1));
    assert_eq!(kept(&journal, 400), Some(4), "reply and results stay whole");
}

/// Items that await an answer stay, however large they are.
#[test]
fn what_awaits_an_answer_is_never_covered() {
    let mut journal = Journal::new();
    journal.prompt(1, &long("question"));
    assert_eq!(cut(&journal.window(), 0), None);
    journal.reply(vec![Block::text(long("answer"))]);
    journal.prompt(2, &long("question").repeat(100));
    assert_eq!(kept(&journal, 0), Some(1));
    journal.reply(vec![call("a")]);
    journal.result("a", &long("result").repeat(100));
    let (cause, text) = (NoticeCause::TaskEnded, long("meanwhile"));
    journal.push(Notice { cause, text });
    assert_eq!(
        kept(&journal, 0),
        Some(3),
        "the reply, its result, the notice"
    );
}

/// A prompt that is still being worked on stays although it is covered, so covering it saves nothing.
#[test]
fn a_prompt_of_the_open_turn_counts_for_nothing_gained() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    journal.prompt(1, &long("question"));
    journal.reply(vec![call("a")]);
    journal.result("a", &long("result of a"));
    journal.reply(vec![call("b")]);
    journal.result("b", &long("result of b"));
    let window = journal.window();
    let through = cut(&window, 0).unwrap();
    assert_eq!(kept(&journal, 0), Some(2));
    let gained = replaced_tokens(&window, through);
    assert!((100..200).contains(&gained), "{gained}");
    journal.push(Compacted { through });
    let text = long("summary");
    journal.push(Summary { through, text });
    assert_eq!(cut(&journal.window(), 0), None);
}

#[test]
fn calls_that_are_open_are_never_covered() {
    let mut journal = Journal::new();
    exchange(&mut journal, 1);
    journal.reply(vec![call("a"), call("b")]);
    journal.result("a", &long("result of a"));
    assert_eq!(kept(&journal, 0), Some(2), "more than there is room for");
    let mut journal = Journal::new();
    journal.reply(vec![call("a")]);
    assert_eq!(cut(&journal.window(), 0), None);
}

#[test]
fn a_summary_is_not_summarised_alone() {
    let mut journal = Journal::new();
    exchange(&mut journal, 1);
    let through = cut(&journal.window(), 0).unwrap();
    journal.push(Compacted { through });
    let text = long("summary");
    journal.push(Summary { through, text });
    assert_eq!(cut(&journal.window(), 0), None);
    // Together with newer items there is something to save, once it is answered.
    journal.prompt(2, &long("question 2"));
    assert_eq!(kept(&journal, 0), None);
    journal.reply(vec![Block::text(long("answer 2"))]);
    assert_eq!(kept(&journal, 0), Some(0));
    assert_eq!(
        kept(&journal, 200),
        None,
        "only the summary would be covered"
    );
}

#[test]
fn every_cut_leaves_a_window_without_halves() {
    let mut journal = Journal::new();
    for n in 1..=4 {
        journal.prompt(n, &long("question"));
        let (a, b) = (format!("a{n}"), format!("b{n}"));
        journal.reply(vec![call(&a), call(&b)]);
        journal.result(&b, &long("b"));
        let (cause, text) = (NoticeCause::TaskEnded, "meanwhile".to_owned());
        journal.push(Notice { cause, text });
        journal.result(&a, &long("a"));
        journal.reply(vec![Block::text(long("answer"))]);
    }
    journal.prompt(5, "on");
    journal.message(MessageStatus::Interrupted, vec![Block::text("half")]);
    for keep in 0..1_500 {
        let Some(through) = cut(&journal.window(), keep) else {
            continue;
        };
        let mut after = journal.clone();
        let text = "summary".to_owned();
        after.push(Summary { through, text });
        let context = fixture::context(crate::message::Wire::Gemini);
        let window = after.window();
        let (messages, _) = crate::request::project(&window, &context);
        let (_, repairs) = crate::repair::repair(messages);
        let harmless = |name: &str| name == "inserted_closing";
        assert!(
            repairs.iter().all(|r| harmless(r.name())),
            "{keep}: {repairs:?}"
        );
    }
}
