//! Scrolling through short and long histories.

use super::*;
use crate::live::Scope;
use crate::render::Detail;
use crate::terminal;
use agentd_core::event::{
    MessageAdded, MessageStatus, Note, Prompt, Purpose, RequestSent, TurnEnded, TurnStarted,
    TurnStatus,
};
use agentd_core::id::{AgentId, Incarnation, PromptId, TryId, TurnId};
use agentd_core::message::Block;
use uuid::Uuid;

const HEIGHT: usize = 10;

fn options() -> Options {
    Options {
        scope: Scope::Agent,
        detail: Detail::Brief,
        window: None,
    }
}

fn event(seq: u64, body: impl Into<Body>) -> Event {
    Event {
        agent: AgentId::new(Uuid::nil()),
        seq: Seq(seq),
        at: Timestamp::from_millis(1000),
        conversation: ConversationId::new(Uuid::nil()),
        turn: Some(TurnId::new(Uuid::from_u128(u128::from(seq)))),
        body: body.into(),
    }
}

fn prompt(seq: u64, text: &str) -> Event {
    let body = Prompt {
        prompt: PromptId::new(Uuid::from_u128(u128::from(seq))),
        blocks: vec![Block::text(text)],
    };
    // A prompt belongs to no turn when it is accepted.
    Event {
        turn: None,
        ..event(seq, body)
    }
}

fn message(seq: u64, text: &str) -> Event {
    let body = MessageAdded {
        request: None,
        status: MessageStatus::Complete,
        stop: None,
        blocks: vec![Block::text(text)],
    };
    event(seq, body)
}

fn events(seqs: std::ops::Range<u64>) -> Vec<Event> {
    seqs.map(|seq| prompt(seq, &format!("prompt {seq}")))
        .collect()
}

fn older(events: Vec<Event>) -> Older {
    let is_first = events.first().is_none_or(|event| event.seq == Seq(1));
    Older {
        context: Vec::new(),
        events,
        is_first,
    }
}

fn texts(lines: &[Line]) -> Vec<String> {
    let text = |line: &Line| terminal::uncoloured(&line.to_string());
    lines.iter().map(text).collect()
}

fn with(seqs: std::ops::Range<u64>) -> Scrollback {
    Scrollback::new(options(), Numbers::new(), older(events(seqs)))
}

fn shown(scrollback: &mut Scrollback) -> Vec<String> {
    let rows = texts(&scrollback.shown(HEIGHT));
    assert!(rows.len() <= HEIGHT, "{rows:?}");
    rows
}

#[test]
fn the_screen_follows_the_end_until_the_user_scrolls() {
    let mut all = with(1..50);
    assert_eq!(shown(&mut all).last().unwrap(), "> prompt 49");
    all.event(prompt(50, "prompt 50"), Timestamp::default());
    assert_eq!(shown(&mut all).last().unwrap(), "> prompt 50");
    all.scroll_up(4, HEIGHT);
    let before = shown(&mut all);
    assert_ne!(before.last().unwrap(), "> prompt 50");
    all.event(prompt(51, "prompt 51"), Timestamp::default());
    assert_eq!(shown(&mut all), before);
    all.scroll_down(100);
    assert!(all.is_at_end());
    assert_eq!(shown(&mut all).last().unwrap(), "> prompt 51");
}

#[test]
fn older_events_appear_above_and_move_nothing() {
    let mut all = with(100..200);
    assert_eq!(all.oldest(), Some(Seq(100)));
    all.go_to_top(HEIGHT);
    let before = shown(&mut all);
    assert!(all.is_near_top(HEIGHT));
    all.prepend(older(events(50..100)));
    assert_eq!(shown(&mut all), before);
    all.scroll_up(2, HEIGHT);
    assert!(shown(&mut all).contains(&"> prompt 99".to_owned()));
    all.prepend(older(events(1..50)));
    assert_eq!(all.oldest(), None);
    all.go_to_top(HEIGHT);
    assert!(shown(&mut all).contains(&"> prompt 1".to_owned()));
    all.go_to_end();
    assert_eq!(shown(&mut all).last().unwrap(), "> prompt 199");
}

#[test]
fn every_row_is_passed_once_from_the_end_to_the_top() {
    let mut all = with(801..1000);
    for begin in [601, 401, 201, 1] {
        all.prepend(older(events(begin..begin + 200)));
    }
    let mut seen = Vec::new();
    loop {
        let before = all.below;
        let rows = shown(&mut all);
        seen.extend(rows.into_iter().rev());
        all.scroll_up(HEIGHT, HEIGHT);
        if all.below == before {
            break;
        }
    }
    for seq in 1..1000 {
        let prompt = format!("> prompt {seq}");
        assert!(seen.contains(&prompt), "{prompt}");
    }
}

#[test]
fn another_width_keeps_the_reply_that_streams() {
    let mut all = with(1..3);
    let request = TryId {
        incarnation: Incarnation(1),
        n: 1,
    };
    let sent = RequestSent {
        request,
        purpose: Purpose::Answer,
        grant: agentd_core::event::Grant::default(),
    };
    all.event(event(3, TurnStarted::default()), Timestamp::default());
    all.event(event(3, sent), Timestamp::default());
    let text = "one paragraph.\n\nA second one that is still growing";
    let delta = Delta {
        request: request.to_string(),
        text: text.to_owned(),
        thinking: String::new(),
    };
    all.delta(delta, Timestamp::default());
    for width in [80, 30, 120] {
        all.set_width(width);
        let rows = shown(&mut all).join(" ");
        assert_eq!(rows.matches("one paragraph.").count(), 1, "{rows}");
        assert!(rows.contains("still growing"), "{rows}");
    }
    all.event(message(4, text), Timestamp::default());
    all.set_width(90);
    let rows = shown(&mut all).join(" ");
    assert_eq!(rows.matches("still growing").count(), 1, "{rows}");
}

#[test]
fn a_chunk_is_closed_at_the_end_of_a_turn() {
    let mut all = with(1..250);
    let ended = TurnEnded::with(TurnStatus::Completed);
    all.event(event(250, ended), Timestamp::default());
    assert_eq!((all.chunks.len(), all.open.events.len()), (1, 0));
    all.event(prompt(251, "after"), Timestamp::default());
    assert_eq!(shown(&mut all).last().unwrap(), "> after");
    all.scroll_up(5, HEIGHT);
    all.set_width(40);
    shown(&mut all);
}

#[test]
fn a_long_prompt_is_shown_in_part() {
    let mut all = with(1..2);
    let text = "0123456789\n".repeat(100_000);
    all.event(prompt(2, &text), Timestamp::default());
    let rows = shown(&mut all);
    let is_note = |row: &String| row.starts_with("… ") && row.ends_with(" lines");
    assert_eq!(
        rows.iter().filter(|row| is_note(row)).count(),
        1,
        "{rows:?}"
    );
    assert_eq!(rows.last().unwrap(), "0123456789", "its end is shown");
    let count = rows.len();
    all.event(prompt(3, &"x".repeat(1_000_000)), Timestamp::default());
    assert!(shown(&mut all).len() < count + 100);
}

#[test]
fn a_cleared_log_is_empty() {
    let mut all = with(100..200);
    all.prepend(older(events(50..100)));
    all.clear();
    assert_eq!(shown(&mut all), [""; 0]);
    assert_eq!(all.oldest(), None);
    all.event(prompt(200, "new"), Timestamp::default());
    assert_eq!(shown(&mut all).last().unwrap(), "> new");
}

/// The width changes after a long history, and then a background task of the last turn ends.
#[test]
fn the_end_of_a_background_task_starts_no_turn_after_a_change_of_width() {
    let mut all = with(1..250);
    let turn = event(300, TurnStarted::default()).turn;
    let of_turn = |seq, body: Body| Event {
        turn,
        ..event(seq, body)
    };
    let now = Timestamp::default();
    all.event(of_turn(300, TurnStarted::default().into()), now);
    let ended = TurnEnded::with(TurnStatus::Completed);
    all.event(of_turn(301, ended.into()), now);
    assert!(all.view().status(now, 80).is_none());
    all.set_width(60);
    let note = Note {
        about: None,
        text: "the task has ended".to_owned(),
    };
    all.event(of_turn(302, note.into()), now);
    assert!(all.view().status(now, 80).is_none());
    all.set_width(100);
    assert!(all.view().status(now, 80).is_none());
}

#[test]
fn a_log_that_begins_earlier_again_is_loaded() {
    let mut all = with(1..50);
    all.clear();
    all.event(prompt(50, "prompt 50"), Timestamp::default());
    assert_eq!(all.oldest(), None);
    all.reopen();
    assert_eq!(all.oldest(), Some(Seq(50)));
    all.prepend(older(events(1..50)));
    assert_eq!(all.oldest(), None);
    let rows = shown(&mut all);
    assert!(rows.contains(&"> prompt 49".to_owned()), "{rows:?}");
}
