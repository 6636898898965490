//! Prompts: accepted, edited, moved, removed, taken, set aside, queued again.

use crate::event::*;
use crate::fixture::{self, Journal, prompt_id};
use crate::id::PromptId;

fn waiting(journal: &Journal) -> Vec<PromptId> {
    journal.state().inbox.waiting().map(|q| q.prompt).collect()
}

fn aside(journal: &Journal) -> Vec<PromptId> {
    let state = journal.state();
    state.inbox.set_aside_prompts().map(|q| q.prompt).collect()
}

fn ids<const N: usize>(numbers: [u128; N]) -> Vec<PromptId> {
    numbers.map(prompt_id).to_vec()
}

fn queue<const N: usize>(journal: &mut Journal, numbers: [u128; N]) {
    for n in numbers {
        journal.queue(prompt_id(n), PromptMode::Queue, &format!("prompt {n}"));
    }
}

#[test]
fn prompts_wait_in_their_order_and_one_that_interrupts_goes_first() {
    let mut journal = Journal::new();
    queue(&mut journal, [1, 2]);
    journal.queue(prompt_id(3), PromptMode::Steer, "steer");
    journal.queue(prompt_id(4), PromptMode::Interrupt, "now");
    assert_eq!(waiting(&journal), ids([4, 1, 2, 3]));
}

#[test]
fn those_that_are_taken_are_in_the_turn_and_in_no_queue() {
    let mut journal = Journal::new();
    queue(&mut journal, [1, 2, 3]);
    journal.start_turn(1);
    let prompts = ids([1, 3]);
    journal.push(PromptsTaken { prompts });
    assert_eq!(waiting(&journal), ids([2]));
    assert_eq!(journal.state().turn.unwrap().prompts, ids([1, 3]));
    assert_eq!(journal.state().anomalies, 0);
}

#[test]
fn taking_what_is_not_there_is_an_anomaly() {
    let mut journal = Journal::new();
    queue(&mut journal, [1]);
    let prompts = ids([1, 9]);
    journal.push(PromptsTaken { prompts });
    assert_eq!(waiting(&journal), []);
    assert_eq!(journal.state().anomalies, 1);
}

/// Prompts that are set aside stay with the old conversation and are queued again on undo.
#[test]
fn what_is_set_aside_comes_back_in_its_order() {
    let mut journal = Journal::new();
    queue(&mut journal, [1, 2, 3]);
    let prompts = ids([1, 3]);
    journal.push(PromptsSetAside { prompts });
    assert_eq!(
        (waiting(&journal), aside(&journal)),
        (ids([2]), ids([1, 3]))
    );
    let prompts = ids([1, 3]);
    journal.push(PromptsRequeued { prompts });
    assert_eq!(
        (waiting(&journal), aside(&journal)),
        (ids([2, 1, 3]), vec![])
    );
    assert_eq!(journal.state().anomalies, 0);
    let prompts = ids([1]);
    journal.push(PromptsRequeued { prompts });
    assert_eq!(journal.state().anomalies, 1, "it waits already");
}

/// `--keep-queue` moves queued prompts to the new conversation instead.
#[test]
fn a_prompt_that_is_carried_over_waits_once_and_in_the_new_conversation() {
    let mut journal = Journal::new();
    queue(&mut journal, [1, 2]);
    let prompts = ids([1]);
    journal.push(PromptsSetAside { prompts });
    journal.conversation = fixture::conversation(2);
    queue(&mut journal, [1, 2]);
    assert_eq!((waiting(&journal), aside(&journal)), (ids([2, 1]), vec![]));
    let state = journal.state();
    let there = |queued: &crate::state::Queued| queued.conversation == journal.conversation;
    assert!(state.inbox.waiting().all(there));
}

/// A prompt that is sent twice with the same idempotency key is delivered once.
#[test]
fn a_key_finds_the_prompt_that_was_accepted_under_it() {
    let mut journal = Journal::new();
    for (n, key) in [(1, "a"), (2, "b")] {
        journal.push(PromptQueued {
            prompt: prompt_id(n),
            key: Some(key.to_owned()),
            mode: PromptMode::Queue,
        });
    }
    journal.start_turn(1);
    let prompts = ids([1]);
    journal.push(PromptsTaken { prompts });
    let inbox = journal.state().inbox;
    assert_eq!(
        inbox.by_key("a").map(|(prompt, _)| prompt),
        Some(prompt_id(1)),
        "taken or not"
    );
    assert_eq!(
        inbox.by_key("b").map(|(prompt, _)| prompt),
        Some(prompt_id(2))
    );
    assert_eq!(inbox.by_key("c"), None);
}

#[test]
fn the_oldest_keys_are_forgotten_so_that_the_state_stays_small() {
    let mut journal = Journal::new();
    for n in 0..5_000 {
        journal.push(PromptQueued {
            prompt: prompt_id(n),
            key: Some(format!("key {n}")),
            mode: PromptMode::Queue,
        });
    }
    let inbox = journal.state().inbox;
    assert_eq!(inbox.by_key("key 0"), None);
    assert_eq!(
        inbox.by_key("key 4999").map(|(prompt, _)| prompt),
        Some(prompt_id(4_999))
    );
}

#[test]
fn a_purge_forgets_the_prompts_of_its_conversation_alone() {
    let mut journal = Journal::new();
    queue(&mut journal, [1, 2]);
    let prompts = ids([1]);
    journal.push(PromptsSetAside { prompts });
    let purged = journal.conversation;
    journal.conversation = fixture::conversation(2);
    journal.begin(BeginSource::Reset, Some(purged), None);
    queue(&mut journal, [3]);
    journal.push(Purged::conversation(purged, 4));
    assert_eq!((waiting(&journal), aside(&journal)), (ids([3]), vec![]));
}

#[test]
fn a_moved_prompt_is_answered_before_the_one_that_it_was_moved_before() {
    let mut journal = Journal::new();
    queue(&mut journal, [1, 2, 3]);
    let shift = |journal: &mut Journal, prompt, before: Option<u128>| {
        let (prompt, before) = (prompt_id(prompt), before.map(prompt_id));
        journal.push(PromptMoved { prompt, before });
        waiting(journal)
    };
    assert_eq!(shift(&mut journal, 3, Some(1)), ids([3, 1, 2]));
    assert_eq!(shift(&mut journal, 3, Some(2)), ids([1, 3, 2]));
    assert_eq!(shift(&mut journal, 1, None), ids([3, 2, 1]));
    assert_eq!(journal.state().anomalies, 0);
    for (prompt, before) in [(9, None), (1, Some(9)), (1, Some(1))] {
        assert_eq!(shift(&mut journal, prompt, before), ids([3, 2, 1]));
    }
    assert_eq!(journal.state().anomalies, 3);
}

/// The place, the key and the position of an edited prompt stay; only its text is new.
#[test]
fn an_edited_prompt_stays_where_it_is_and_a_reset_keeps_the_count_of_edits() {
    let mut journal = Journal::new();
    queue(&mut journal, [1, 2]);
    let before = journal.state().inbox.get(prompt_id(1)).cloned().unwrap();
    let prompt = prompt_id(1);
    journal.push(PromptEdited { prompt });
    let edited = journal.state().inbox.get(prompt).cloned().unwrap();
    assert_eq!(edited, crate::state::Queued { edits: 1, ..before });
    assert_eq!(waiting(&journal), ids([1, 2]));
    // Carried to another conversation.
    let (key, mode) = (None, PromptMode::Queue);
    journal.push(PromptQueued { prompt, key, mode });
    assert_eq!(journal.state().inbox.get(prompt).unwrap().edits, 1);
    assert_eq!(journal.state().anomalies, 0);
}

/// A runtime that has not learned of the removal may still record that it takes the prompt.
#[test]
fn a_removed_prompt_is_in_no_turn() {
    let mut journal = Journal::new();
    queue(&mut journal, [1, 2]);
    let prompts = ids([1]);
    journal.push(PromptsRemoved { prompts });
    assert_eq!(waiting(&journal), ids([2]));
    journal.start_turn(1);
    let prompts = ids([1]);
    journal.push(PromptsTaken { prompts });
    assert!(journal.state().turn.unwrap().is_empty());
    assert_eq!(waiting(&journal), ids([2]));
    assert_eq!(journal.state().anomalies, 0);
    let prompts = ids([9]);
    journal.push(PromptsRemoved { prompts });
    assert_eq!(journal.state().anomalies, 1);
}
