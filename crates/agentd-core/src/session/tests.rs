//! A written session can be read, and the model sees the same text.

use super::*;
use crate::fixture::{self, Journal};
use crate::message::Wire;
use crate::request;
use crate::window::Window;

fn told() -> (AgentState, Window) {
    let mut journal = Journal::new();
    journal.push(fixture::context(Wire::AnthropicMessages));
    journal.start_turn(9);
    journal.prompt(8, "what is there?");
    journal.reply(vec![Block::text("let me look"), fixture::call("a")]);
    journal.result("a", "a file");
    journal.reply(vec![Block::text("a file is there")]);
    journal.end_turn(TurnStatus::Completed);
    journal.queue(fixture::prompt_id(7), PromptMode::Queue, "and now?");
    (journal.state(), journal.window())
}

/// The journal that a session begins.
fn imported(session: &Session) -> (AgentState, Window) {
    let mut ids = 100;
    let mut new_id = || {
        ids += 1;
        Uuid::from_u128(ids)
    };
    let (mut state, mut window) = (AgentState::new(session.agent), Window::new());
    for (index, (turn, body)) in session.events(&mut new_id).into_iter().enumerate() {
        let event = crate::event::NewEvent {
            at: session.saved_at,
            conversation: session.conversation,
            turn,
            body,
        };
        let event = event.placed(session.agent, Seq(index as u64 + 1));
        state.apply(&event);
        window.apply(&event);
    }
    (state, window)
}

#[test]
fn a_journal_begun_from_a_session_sends_what_the_old_one_would_have_sent() {
    let (state, window) = told();
    let session = Session::of(&state, &window, Timestamp(5)).unwrap();
    let text = serde_json::to_string(&session).unwrap();
    let session = Session::parse(&text).unwrap();
    let (again, its_window) = imported(&session);
    assert_eq!(again.anomalies, 0);
    assert_eq!(again.inbox.waiting().len(), 1);
    assert_eq!(again.spec, state.spec);
    let said = |window: &Window| {
        let items = window.items().iter();
        items.map(|item| item.entry.clone()).collect::<Vec<_>>()
    };
    assert_eq!(said(&its_window), said(&window));
    let context = window.context().unwrap();
    let messages = |window: &Window| request::answer(window, context).map(|r| r.messages);
    assert_eq!(messages(&its_window), messages(&window));
}

#[test]
fn a_summary_stands_first_and_nothing_is_lost_behind_it() {
    let (state, window) = told();
    let mut session = Session::of(&state, &window, Timestamp(5)).unwrap();
    let text = "what came before".to_owned();
    let (turn, what) = (None, What::Summary { text: text.clone() });
    session.window.insert(0, SessionItem { turn, what });
    let (_, its_window) = imported(&session);
    assert_eq!(its_window.items()[0].entry, Entry::Summary(text));
    assert_eq!(its_window.items().len(), window.items().len() + 1);
}

#[test]
fn what_cannot_be_read_says_why() {
    let newer = Session::parse(r#"{"v":2,"shape":"other"}"#).unwrap_err();
    assert_eq!(newer, SessionError::Newer { found: 2 });
    for text in ["", "{}", "[]", r#"{"v":1}"#, "{\"v\":1,\"agent\":"] {
        let error = Session::parse(text).unwrap_err();
        assert!(matches!(error, SessionError::Unreadable { .. }), "{text}");
    }
}
