//! Agents of the Agent Client Protocol that flood, hang, lie or speak garbage: the turn ends, and the next one works.

use crate::acp_fixture;
use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::Status;
use agentd_core::event::Body;
use agentd_core::message::Block;
use std::fs;

const CHILD: &str = include_str!("../fixture/acp-hostile.sh");
const KEY: &str = "sk-key-of-this-test";

fn created(hostile: &str) -> TestDaemon {
    let daemon = TestDaemon::new();
    let mut spec = acp_fixture::spec(&daemon, "acp-hostile.sh", CHILD);
    spec.env.insert("HOSTILE".to_owned(), hostile.to_owned());
    spec.env
        .insert("KEY".to_owned(), "${TEST_API_KEY}".to_owned());
    daemon.caller_env("TEST_API_KEY", KEY);
    daemon.create_with("coder", spec);
    daemon
}

fn starts(daemon: &TestDaemon) -> usize {
    let text = fs::read_to_string(daemon.work().join("starts")).unwrap_or_default();
    text.lines().count()
}

fn children(daemon: &TestDaemon) -> usize {
    let is_own =
        |arguments: &str| arguments.contains("acp-hostile.sh") || arguments.contains("sleep 300");
    acp_fixture::processes(daemon, is_own).len()
}

fn notes(daemon: &TestDaemon) -> String {
    let events = daemon.events("coder").into_iter();
    let notes = events.filter_map(|event| match event.body {
        Body::Note(note) => Some(note.text),
        _ => None,
    });
    notes.collect::<Vec<_>>().join("\n")
}

fn fails(daemon: &TestDaemon, prompt: &str) {
    let answer = daemon.ask("coder", prompt);
    assert_eq!(answer.status, Status::Failed, "{answer:#?}");
}

#[test]
fn an_endless_line_and_a_flood_of_calls_end_the_program() {
    let daemon = created("");
    fails(&daemon, "do: endless");
    assert_eq!(daemon.completed("coder", "hello").text, "hello");
    fails(&daemon, "do: flood");
    assert!(
        notes(&daemon).contains("`limits.program_calls`"),
        "{}",
        notes(&daemon)
    );
    assert_eq!(daemon.completed("coder", "hello").text, "hello");
    assert_eq!(starts(&daemon), 3);
    assert_eq!(daemon.effects().len(), 4, "no prompt came twice");
    daemon.verify();
}

/// It asks for 20,000 files, or terminals, and reads no answer.
#[test]
fn a_flood_of_requests_that_are_not_read_ends_the_program() {
    let daemon = created("");
    for flood in ["do: greedy", "do: terminals"] {
        fails(&daemon, flood);
        until("no process of the program", || {
            (children(&daemon) == 0).then_some(())
        });
        assert_eq!(daemon.completed("coder", "hello").text, "hello");
    }
    assert_eq!(starts(&daemon), 3);
    assert_eq!(daemon.effects().len(), 4, "no prompt came twice");
    daemon.verify();
}

#[test]
fn a_request_before_the_session_is_refused() {
    let daemon = created("early");
    assert_eq!(daemon.completed("coder", "hello").text, "hello");
    let answer = fs::read_to_string(daemon.work().join("early")).unwrap();
    assert!(answer.contains("the session has not begun"), "{answer}");
    assert_eq!(starts(&daemon), 1);
    let sleeps = |arguments: &str| arguments.contains("sleep 300");
    assert!(acp_fixture::processes(&daemon, sleeps).is_empty());
    daemon.verify();
}

#[test]
fn a_text_of_two_megabytes_in_one_message_is_kept() {
    let daemon = created("");
    daemon.completed("coder", "do: large");
    let events = daemon.events("coder").into_iter();
    let largest = events.filter_map(|event| match event.body {
        Body::MessageAdded(message) => Some(message.blocks.iter().map(words).sum::<usize>()),
        _ => None,
    });
    assert_eq!(largest.max(), Some(2_000_000));
    assert_eq!(daemon.completed("coder", "hello").text, "hello");
    daemon.verify();
}

/// The bytes of text in a block.
fn words(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        _ => 0,
    }
}

#[test]
fn garbage_between_messages_is_skipped() {
    let daemon = created("");
    assert_eq!(daemon.completed("coder", "do: garbage").text, "after all");
    assert_eq!(starts(&daemon), 1);
    daemon.verify();
}

/// The prompt cannot be written to it. Without an end the turn would wait for ever.
#[test]
fn a_program_that_closed_its_stdin_is_ended() {
    let daemon = created("");
    assert_eq!(daemon.completed("coder", "do: deaf").text, "deaf");
    fails(&daemon, "hello");
    assert_eq!(daemon.completed("coder", "hello").text, "hello");
    assert_eq!(daemon.effects().len(), 2);
    daemon.verify();
}

/// The interrupt comes before the prompt was delivered: it is never delivered, not even in the next turn.
#[test]
fn an_interrupt_while_the_program_starts_leaves_no_prompt_and_no_process() {
    let daemon = created("hangs");
    let sent = daemon.send("coder", "do: pieces");
    until("the start", || {
        daemon.effects().contains(&"hangs".to_owned()).then_some(())
    });
    daemon.block(daemon.client().interrupt("coder")).unwrap();
    let answer = daemon.answer("coder", sent.prompt);
    assert_eq!(answer.status, Status::Interrupted, "{answer:#?}");
    until("no process of the program", || {
        (children(&daemon) == 0).then_some(())
    });
    fs::write(daemon.work().join("go"), "").unwrap();
    assert_eq!(daemon.completed("coder", "hello").text, "hello");
    assert_eq!(daemon.effects(), ["hangs", "prompt"]);
    assert_eq!(starts(&daemon), 2);
    daemon.verify();
}

#[test]
fn a_key_that_comes_in_pieces_or_in_an_error_is_not_recorded() {
    let daemon = created("");
    let answer = daemon.completed("coder", "do: pieces");
    assert_eq!(answer.text, "the key is [redacted by agentd] indeed");
    let other = created("refuses");
    fails(&other, "hello");
    let notes = notes(&other);
    assert!(notes.contains("no login with [redacted"), "{notes}");
    for daemon in [&daemon, &other] {
        let journal = fs::read(daemon.home().join("journal.db")).unwrap();
        let is_key = |bytes: &[u8]| bytes == KEY.as_bytes();
        assert!(!journal.windows(KEY.len()).any(is_key));
    }
}

#[test]
fn another_version_or_a_session_without_an_id_is_refused_with_the_reason() {
    for (hostile, why) in [("version", "version 2"), ("nameless", "no usable id")] {
        let daemon = created(hostile);
        fails(&daemon, "hello");
        let notes = notes(&daemon);
        assert!(notes.contains(why), "{notes}");
        assert!(daemon.effects().is_empty());
        until("no process of the program", || {
            (children(&daemon) == 0).then_some(())
        });
    }
}
