//! What each way to begin a conversation keeps, sets aside and refuses.

use super::*;
use crate::event::{ApprovalRequested, PromptMode, ResetBegan, ResetSource, ResetTo, TurnStatus};
use crate::fixture::{self, Journal};
use crate::id::Seq;
use crate::message::Block;
use crate::window::Entry;

/// An agent that has answered one prompt; a second one is queued.
fn used() -> Journal {
    let mut journal = Journal::new();
    journal.start_turn(9);
    journal.prompt(8, "what is there?");
    journal.reply(vec![Block::text("a file")]);
    journal.end_turn(TurnStatus::Completed);
    journal.queue(fixture::prompt_id(7), PromptMode::Queue, "and now?");
    journal
}

/// Appends the lines as the store would.
fn append(journal: &mut Journal, lines: Vec<Line>) {
    for (conversation, body) in lines {
        journal.conversation = conversation;
        journal.push(body);
    }
}

fn new() -> ConversationId {
    fixture::conversation(50)
}

fn says(window: &Window) -> Vec<String> {
    let items = window.items().iter();
    items.map(|item| format!("{:?}", item.entry)).collect()
}

#[test]
fn a_reset_begins_with_nothing_and_sets_the_queue_aside() {
    let mut journal = used();
    let (state, window) = (journal.state(), journal.window());
    let lines = reset(&state, &window, new(), Queue::SetAside, None).unwrap();
    append(&mut journal, lines);
    let state = journal.state();
    assert_eq!(state.tree.current(), Some(new()));
    assert_eq!(state.inbox.waiting().len(), 0);
    assert_eq!(state.inbox.set_aside_prompts().len(), 1);
    assert_eq!(says(&journal.window()), [] as [String; 0]);
    let conversation = state.tree.current_conversation().unwrap();
    assert!(conversation.labels.contains_key(INIT));
    assert_eq!(state.anomalies, 0);
}

#[test]
fn a_kept_queue_goes_along_with_its_words() {
    let mut journal = used();
    let (state, window) = (journal.state(), journal.window());
    let lines = reset(&state, &window, new(), Queue::Keep, None).unwrap();
    append(&mut journal, lines);
    let state = journal.state();
    assert_eq!(state.inbox.waiting().len(), 1);
    let words = journal.window();
    let words = words.pending(fixture::prompt_id(7)).unwrap();
    assert_eq!(words, [Block::text("and now?")]);
}

#[test]
fn undo_brings_back_the_same_words_and_the_queue_and_redo_goes_forward_again() {
    let mut journal = used();
    let before = (journal.state(), journal.window());
    let old = before.0.tree.current();
    let lines = reset(&before.0, &before.1, new(), Queue::SetAside, None).unwrap();
    append(&mut journal, lines);
    let lines = step(&journal.state(), &journal.window(), Direction::Undo, None).unwrap();
    append(&mut journal, lines);
    let state = journal.state();
    assert_eq!(state.tree.current(), old);
    assert_eq!(state.inbox.waiting().len(), 1);
    assert_eq!(says(&journal.window()), says(&before.1));
    let lines = step(&state, &journal.window(), Direction::Redo, None).unwrap();
    append(&mut journal, lines);
    assert_eq!(journal.state().tree.current(), Some(new()));
    assert_eq!(journal.state().anomalies, 0);
}

#[test]
fn a_rewind_shows_what_came_before_and_nothing_after() {
    let mut journal = used();
    let state = journal.state();
    let answered = journal.head();
    let seen = journal.window();
    let point = BranchPoint {
        conversation: journal.conversation,
        at: answered,
    };
    let window = journal.window();
    let lines = rewind(&state, &window, &seen, point, new(), Queue::SetAside, None).unwrap();
    append(&mut journal, lines);
    assert_eq!(says(&journal.window()), says(&seen));
    assert_eq!(journal.state().inbox.waiting().len(), 0);
}

#[test]
fn what_cannot_be_is_refused() {
    let journal = used();
    let (state, window) = (journal.state(), journal.window());
    assert_eq!(
        step(&state, &journal.window(), Direction::Undo, None),
        Err(Refused::NothingToUndo)
    );
    assert_eq!(
        step(&state, &journal.window(), Direction::Redo, None),
        Err(Refused::NothingToRedo)
    );
    let nowhere = Seq(journal.head().0 + 1);
    let point = BranchPoint {
        conversation: journal.conversation,
        at: nowhere,
    };
    let refused = rewind(&state, &window, &window, point, new(), Queue::Keep, None);
    assert_eq!(refused, Err(Refused::NotThere(nowhere)));
    let elsewhere = BranchPoint {
        conversation: new(),
        at: Seq(1),
    };
    let refused = fork(
        &state,
        &window,
        elsewhere,
        NewFork::persistent("other"),
        new(),
        None,
    );
    assert_eq!(refused, Err(Refused::NoSuchConversation(new())));
    let mut journal = used();
    journal.start_turn(20);
    let refused = reset(&journal.state(), &window, new(), Queue::Keep, None);
    assert_eq!(refused, Err(Refused::TurnUnderWay));
}

#[test]
fn tasks_that_go_on_are_told() {
    let mut journal = used();
    journal.push(crate::event::TaskStarted {
        task: crate::id::TaskId::from_bytes([5; 16]),
        call: crate::id::CallId::new("a"),
        tool: "shell".into(),
        boot: crate::id::BootId::from_bytes([6; 16]),
    });
    let (state, window) = (journal.state(), journal.window());
    let lines = reset(&state, &window, new(), Queue::SetAside, None).unwrap();
    append(&mut journal, lines);
    let window = journal.window();
    let [item] = window.items() else {
        panic!("{:?}", window.items());
    };
    assert!(matches!(&item.entry, Entry::Notice(text) if text.contains("shell")));
}

/// In a branch from before the end of a task, the task counts as running, and the model is told once that it has ended.
/// In a branch from before its start or after its end, the model is told nothing.
#[test]
fn a_rewind_is_told_of_the_tasks_that_ended_after_the_place() {
    let task = crate::id::TaskId::from_bytes([5; 16]);
    let mut journal = used();
    let before = journal.head();
    journal.push(crate::event::TaskStarted {
        task,
        call: crate::id::CallId::new("a"),
        tool: "shell".into(),
        boot: crate::id::BootId::from_bytes([6; 16]),
    });
    let running = journal.head();
    let exit = crate::event::TaskExit::Code { code: 7 };
    journal.push(crate::event::TaskEnded::by_itself(task, exit));
    let ended = journal.head();
    let told = |lines: &[Line]| {
        let is_it = |body: &Body| matches!(body, Body::Notice(notice) if notice.text.contains("exit code 7"));
        lines.iter().filter(|(_, body)| is_it(body)).count()
    };
    let back = |journal: &Journal, conversation, at| {
        let point = BranchPoint { conversation, at };
        let (state, window) = (journal.state(), journal.window());
        let lines = rewind(
            &state,
            &window,
            &window,
            point,
            new(),
            Queue::SetAside,
            None,
        );
        lines.unwrap()
    };
    let first = journal.state().tree.current().unwrap();
    assert_eq!(told(&back(&journal, first, before)), 0);
    assert_eq!(told(&back(&journal, first, ended)), 0);
    let lines = back(&journal, first, running);
    assert_eq!(told(&lines), 1);
    append(&mut journal, lines);
    // A branch of the branch has the notice in its history.
    let head = journal.head();
    assert_eq!(told(&back(&journal, new(), head)), 0);
    assert_eq!(told(&back(&journal, first, running)), 1);
}

/// In a sealed conversation its tasks count as running. When it becomes current again, the model is told once which have
/// ended in the meantime.
#[test]
fn tasks_that_ended_meanwhile_are_told_after_undo_and_once() {
    let task = crate::id::TaskId::from_bytes([5; 16]);
    let mut journal = used();
    journal.push(crate::event::TaskStarted {
        task,
        call: crate::id::CallId::new("a"),
        tool: "shell".into(),
        boot: crate::id::BootId::from_bytes([6; 16]),
    });
    let (state, window) = (journal.state(), journal.window());
    let first = state.tree.current().unwrap();
    let lines = reset(&state, &window, new(), Queue::SetAside, None).unwrap();
    append(&mut journal, lines);
    let exit = crate::event::TaskExit::Code { code: 7 };
    journal.push(crate::event::TaskEnded::by_itself(task, exit));
    assert_eq!(journal.state().tasks.untold(first).len(), 1);
    // The conversation in which it ended was told at that time.
    assert_eq!(journal.state().tasks.untold(new()), []);
    let told = |journal: &Journal| {
        let items = journal.window().items().to_vec();
        let is_it =
            |entry: &Entry| matches!(entry, Entry::Notice(text) if text.contains("exit code 7"));
        items.iter().filter(|item| is_it(&item.entry)).count()
    };
    let undo = step(&journal.state(), &journal.window(), Direction::Undo, None).unwrap();
    append(&mut journal, undo);
    assert_eq!(told(&journal), 1);
    let redo = step(&journal.state(), &journal.window(), Direction::Redo, None).unwrap();
    append(&mut journal, redo);
    assert_eq!(told(&journal), 0);
    let undo = step(&journal.state(), &journal.window(), Direction::Undo, None).unwrap();
    append(&mut journal, undo);
    assert_eq!(told(&journal), 1);
    assert_eq!(journal.state().anomalies, 0);
}

/// The queued prompts and the prompts that were set aside, by number.
fn prompts(journal: &Journal) -> (Vec<PromptId>, Vec<PromptId>) {
    let state = journal.state();
    let ids = |queued: &Queued| queued.prompt;
    let waiting = state.inbox.waiting().map(ids).collect();
    (waiting, state.inbox.set_aside_prompts().map(ids).collect())
}

fn begin_reset(journal: &mut Journal, n: u8) {
    journal.push(ResetBegan {
        op: OpId::from_bytes([n; 16]),
        to: ResetTo::Fresh,
        force: false,
        kill_background: false,
        keep_queue: false,
        clear_log: false,
        skip_hooks: false,
        grace_ms: 1,
        was_awake: false,
        source: ResetSource::User,
    });
}

fn end_reset(journal: &mut Journal, n: u8) {
    let (old, new) = (journal.conversation, journal.conversation);
    let op = OpId::from_bytes([n; 16]);
    journal.push(crate::event::ResetEnded::new(op, old, new));
}

/// From `reset_began` on, new prompts are queued for the new conversation. Prompts that were queued before are set
/// aside, and queued again on undo.
#[test]
fn what_was_accepted_after_a_reset_began_goes_along_and_what_was_before_comes_back() {
    let (before, after) = (fixture::prompt_id(7), fixture::prompt_id(70));
    let mut journal = used();
    begin_reset(&mut journal, 1);
    journal.queue(after, PromptMode::Steer, "and in the new one?");
    let (state, window) = (journal.state(), journal.window());
    let lines = reset(&state, &window, new(), Queue::SetAside, None).unwrap();
    append(&mut journal, lines);
    end_reset(&mut journal, 1);
    assert_eq!(prompts(&journal), (vec![after], vec![before]));
    let window = journal.window();
    let words = [Block::text("and in the new one?")];
    assert_eq!(window.pending(after), Some(&words[..]));
    assert_eq!(window.pending(before), None);
    let state = journal.state();
    let queued = state.inbox.waiting().next().unwrap();
    assert_eq!(
        (queued.mode, queued.conversation),
        (PromptMode::Steer, new())
    );

    // Undo: each prompt stays with its conversation; a prompt that arrives in the meantime moves again.
    let meanwhile = fixture::prompt_id(71);
    begin_reset(&mut journal, 2);
    journal.queue(meanwhile, PromptMode::Queue, "and in the old one?");
    let lines = step(&journal.state(), &journal.window(), Direction::Undo, None).unwrap();
    append(&mut journal, lines);
    end_reset(&mut journal, 2);
    assert_eq!(prompts(&journal), (vec![meanwhile, before], vec![after]));
    let window = journal.window();
    assert_eq!(window.pending(before), Some(&[Block::text("and now?")][..]));
    let words = [Block::text("and in the old one?")];
    assert_eq!(window.pending(meanwhile), Some(&words[..]));

    // Redo: the same in the other direction.
    let lines = step(&journal.state(), &journal.window(), Direction::Redo, None).unwrap();
    append(&mut journal, lines);
    assert_eq!(prompts(&journal).0, [after]);
    assert_eq!(prompts(&journal).1.len(), 2);
    assert_eq!(journal.state().anomalies, 0);
}

#[test]
fn a_kept_queue_takes_along_what_came_before_and_after_in_its_order() {
    let mut journal = used();
    begin_reset(&mut journal, 1);
    let after = fixture::prompt_id(70);
    journal.queue(after, PromptMode::Queue, "third");
    let (state, window) = (journal.state(), journal.window());
    let lines = reset(&state, &window, new(), Queue::Keep, None).unwrap();
    append(&mut journal, lines);
    assert_eq!(
        prompts(&journal),
        (vec![fixture::prompt_id(7), after], vec![])
    );
    assert_eq!(journal.state().anomalies, 0);
}

/// A rewind can go to any conversation of the agent, and undo reverses it.
#[test]
fn a_rewind_reaches_into_another_conversation_and_is_undone() {
    let mut journal = used();
    let (first, answered) = (journal.conversation, journal.head());
    let seen = journal.window();
    let lines = reset(&journal.state(), &seen, new(), Queue::SetAside, None).unwrap();
    append(&mut journal, lines);
    let third = fixture::conversation(51);
    let point = BranchPoint {
        conversation: first,
        at: answered,
    };
    let (state, window) = (journal.state(), journal.window());
    let lines = rewind(&state, &window, &seen, point, third, Queue::SetAside, None).unwrap();
    append(&mut journal, lines);
    assert_eq!(says(&journal.window()), says(&seen));
    let state = journal.state();
    let current = state.tree.current_conversation().unwrap();
    assert_eq!((current.id, current.parent), (third, Some(new())));
    let lines = step(&state, &journal.window(), Direction::Undo, None).unwrap();
    append(&mut journal, lines);
    assert_eq!(journal.state().tree.current(), Some(new()));
    assert_eq!(journal.state().anomalies, 0);
}

/// A fork of a turn that waits for approval and has a task: it gets neither of these, nor the queue, but one notice.
#[test]
fn a_fork_gets_the_words_and_nothing_that_is_under_way() {
    let mut journal = used();
    journal.push(crate::event::TaskStarted {
        task: crate::id::TaskId::from_bytes([5; 16]),
        call: crate::id::CallId::new("b"),
        tool: "shell".into(),
        boot: crate::id::BootId::from_bytes([6; 16]),
    });
    journal.start_turn(10);
    journal.prompt(10, "now");
    journal.reply(vec![fixture::call("a")]);
    let approval = fixture::approval(1);
    let call = crate::id::CallId::new("a");
    journal.push(ApprovalRequested::new(approval, call));
    let (parent, seen) = (journal.state(), journal.window());
    let point = BranchPoint {
        conversation: journal.conversation,
        at: journal.head(),
    };
    let op = Some(OpId::from_bytes([3; 16]));
    let lines = fork(
        &parent,
        &seen,
        point,
        NewFork::persistent("other"),
        new(),
        op,
    )
    .unwrap();
    let mut other = Journal::empty();
    other.agent = fixture::agent(2);
    append(&mut other, lines);
    let state = other.state();
    assert_eq!(state.anomalies, 0);
    assert_eq!((state.name.as_str(), &state.spec), ("other", &parent.spec));
    assert_eq!(state.approvals.iter().count(), 0);
    assert_eq!(state.tasks.running().len(), 0);
    assert_eq!(state.inbox.waiting().len(), 0);
    assert_eq!(state.spending.lifetime, Default::default());
    let began = state.tree.current_conversation().unwrap();
    assert_eq!(began.from.map(|from| from.seq), Some(journal.head()));
    let mut window = seen;
    for event in &other.events {
        window.apply(event);
    }
    assert!(!window.has_open_calls());
    let told = |body: &Body| matches!(body, Body::Notice(_));
    let told = other.events.iter().filter(|event| told(&event.body));
    assert_eq!(told.count(), 1);
}
