//! What the model sees, and a window without its text.

use super::*;
use crate::event::{
    CommandCut, CommandEnd, CommandsTaken, Compacted, FileSeen, Notice, NoticeCause, Purged,
    Summary, TaskExit, ToolEnded,
};
use crate::fixture::{self, Journal, call, context, prompt_id};
use crate::id::CommandId;
use crate::message::{CallOutcome, Wire};

fn texts(window: &Window) -> Vec<String> {
    let mut words = Vec::new();
    for item in window.items() {
        match &item.entry {
            Entry::Prompt(blocks) | Entry::Reply { blocks, .. } => {
                blocks.iter().for_each(|block| block.words(&mut words));
            }
            Entry::Result(result) => result.blocks.iter().for_each(|b| b.words(&mut words)),
            Entry::Notice(text) => words.push(format!("notice {text}")),
            Entry::Summary(text) => words.push(format!("summary {text}")),
        }
    }
    words
}

fn summarise(journal: &mut Journal, through: Position, text: &str) {
    let text = text.to_owned();
    journal.push(Compacted { through });
    journal.push(Summary { through, text });
}

fn notice(journal: &mut Journal, text: &str) {
    let (cause, text) = (NoticeCause::Interrupted, text.to_owned());
    journal.push(Notice { cause, text });
}

#[test]
fn a_prompt_is_seen_when_it_is_taken_and_not_before() {
    let mut journal = Journal::new();
    journal.queue(prompt_id(1), crate::event::PromptMode::Queue, "one");
    journal.queue(prompt_id(2), crate::event::PromptMode::Queue, "two");
    assert_eq!(journal.window().items(), []);
    assert!(!journal.window().awaits_answer());
    let prompts = vec![prompt_id(2), prompt_id(1)];
    journal.push(crate::event::PromptsTaken { prompts });
    assert_eq!(texts(&journal.window()), ["two", "one"]);
    assert!(journal.window().awaits_answer());
}

#[test]
fn what_awaits_an_answer_is_whatever_came_since_the_model_spoke() {
    let mut journal = Journal::new();
    assert!(!journal.window().awaits_answer());
    journal.prompt(1, "hi");
    assert!(journal.window().awaits_answer());
    journal.reply(vec![call("a")]);
    assert!(!journal.window().awaits_answer());
    journal.result("a", "done");
    assert!(journal.window().awaits_answer());
    journal.reply(vec![Block::text("fine")]);
    assert!(!journal.window().awaits_answer());
    notice(&mut journal, "by the way");
    assert!(journal.window().awaits_answer());
}

#[test]
fn a_superseded_message_is_not_seen_and_answers_nothing() {
    let mut journal = Journal::new();
    journal.prompt(1, "hi");
    journal.message(MessageStatus::Superseded, vec![Block::text("first try")]);
    assert_eq!(texts(&journal.window()), ["hi"]);
    assert!(journal.window().awaits_answer());
    journal.message(MessageStatus::Interrupted, vec![Block::text("second")]);
    assert_eq!(texts(&journal.window()), ["hi", "second"]);
}

#[test]
fn calls_are_open_until_their_results_come() {
    let mut journal = Journal::new();
    journal.reply(vec![call("a"), call("b")]);
    let open = |journal: &Journal| -> Vec<String> {
        let window = journal.window();
        window
            .open_calls()
            .map(|call| call.id.to_string())
            .collect()
    };
    assert_eq!(open(&journal), ["a", "b"]);
    journal.result("b", "done");
    journal.result("b", "again");
    journal.result("x", "whose?");
    assert_eq!(open(&journal), ["a"]);
    journal.result("a", "done");
    assert!(!journal.window().has_open_calls());
}

#[test]
fn a_summary_takes_the_place_of_what_it_covers() {
    let mut journal = Journal::new();
    journal.prompt(1, "one");
    let through = journal.reply(vec![Block::text("two")]).position();
    journal.prompt(2, "three");
    summarise(&mut journal, through, "one and two");
    assert_eq!(texts(&journal.window()), ["summary one and two", "three"]);
    assert!(journal.window().awaits_answer());
}

#[test]
fn a_second_summary_covers_the_first() {
    let mut journal = Journal::new();
    journal.prompt(1, "one");
    let first = journal.reply(vec![Block::text("two")]).position();
    journal.prompt(2, "three");
    summarise(&mut journal, first, "first");
    let second = journal.window().items()[1].placed;
    journal.reply(vec![Block::text("four")]);
    summarise(&mut journal, second, "second");
    assert_eq!(texts(&journal.window()), ["summary second", "four"]);
    let everything = journal.window().items().last().unwrap().placed;
    summarise(&mut journal, everything, "third");
    assert_eq!(texts(&journal.window()), ["summary third"]);
}

#[test]
fn what_a_summary_will_cover_is_what_it_covers() {
    let mut journal = Journal::new();
    for n in 1..6 {
        journal.prompt(n, &format!("question {n}"));
        journal.reply(vec![Block::text(format!("answer {n}"))]);
    }
    let window = journal.window();
    for item in window.items() {
        let asked = texts(&window.up_to(item.placed));
        let mut after = journal.clone();
        summarise(&mut after, item.placed, "s");
        let kept = texts(&after.window());
        assert_eq!([&asked[..], &kept[1..]].concat(), texts(&window));
    }
}

/// Whatever a summary claims to cover: a prompt, a result and a notice that the model has not answered stay, with the
/// reply whose call the result answers.
#[test]
fn a_summary_never_replaces_what_awaits_an_answer() {
    let mut journal = Journal::new();
    journal.prompt(1, "one");
    journal.reply(vec![Block::text("two")]);
    journal.prompt(2, "three");
    let everything = journal.window().items().last().unwrap().placed;
    summarise(&mut journal, everything, "s");
    assert_eq!(texts(&journal.window()), ["summary s", "three"]);
    journal.reply(vec![Block::text("I look"), call("a")]);
    journal.result("a", "found");
    notice(&mut journal, "by the way");
    let everything = journal.window().items().last().unwrap().placed;
    summarise(&mut journal, everything, "t");
    let expected = [
        "summary t",
        "I look",
        "shell",
        "do a",
        "found",
        "notice by the way",
    ];
    assert_eq!(texts(&journal.window()), expected);
}

#[test]
fn a_summary_leaves_the_prompts_of_the_open_turn_as_they_are() {
    let mut journal = Journal::new();
    let ask = |journal: &mut Journal, n: u128| {
        journal.start_turn(n);
        journal.prompt(n, &format!("question {n}"));
        journal.reply(vec![Block::text(format!("thinking {n}"))])
    };
    ask(&mut journal, 1);
    journal.end_turn(crate::event::TurnStatus::Completed);
    let through = ask(&mut journal, 2).position();
    summarise(&mut journal, through, "s");
    assert_eq!(texts(&journal.window()), ["summary s", "question 2"]);
    // A turn that reached a limit can be continued, also after a compaction that the user requests.
    journal.end_turn(crate::event::TurnStatus::Limited);
    journal.turn = Some(fixture::turn(3));
    journal.push(crate::event::TurnStarted {
        resumes: Some(fixture::turn(2)),
        compacts: None,
    });
    let through = journal.reply(vec![Block::text("more")]).position();
    summarise(&mut journal, through, "t");
    assert_eq!(texts(&journal.window()), ["summary t", "question 2"]);
    // Once it is answered, it is like any other.
    journal.end_turn(crate::event::TurnStatus::Completed);
    let through = ask(&mut journal, 4).position();
    summarise(&mut journal, through, "u");
    assert_eq!(texts(&journal.window()), ["summary u", "question 4"]);
    let skeleton = journal.window().skeleton();
    assert_eq!(restore(&journal, &skeleton), Ok(journal.window()));
}

/// The mark of a compaction survives an interrupt.
#[test]
fn compaction_marks_survive_an_interrupt() {
    let mut journal = Journal::new();
    journal.prompt(1, "one");
    let through = journal.reply(vec![Block::text("two")]).position();
    journal.prompt(2, "three");
    summarise(&mut journal, through, "one and two");
    let half = vec![Block::text("half an ans")];
    journal.message(MessageStatus::Interrupted, half);
    notice(&mut journal, "interrupted");
    journal.prompt(3, "four");
    let expected = [
        "summary one and two",
        "three",
        "half an ans",
        "notice interrupted",
        "four",
    ];
    assert_eq!(texts(&journal.window()), expected);
}

/// The items of a fork come from two journals, whose sequence numbers are unrelated.
#[test]
fn a_summary_in_a_fork_covers_by_place_and_not_by_number() {
    let mut parent = Journal::new();
    for n in 1..5 {
        parent.prompt(n, &format!("parent {n}"));
    }
    let mut fork = Journal::empty();
    fork.agent = fixture::agent(2);
    fork.conversation = fixture::conversation(2);
    fork.prompt(9, "fork");
    fork.reply(vec![Block::text("answer")]);
    let all = || parent.events.iter().chain(&fork.events);
    let fold = |summary: Option<Event>| {
        let mut window = Window::new();
        all().chain(&summary).for_each(|event| window.apply(event));
        window
    };
    let window = fold(None);
    let cover = |index: usize| {
        let through = window.items()[index].placed;
        let text = "s".to_owned();
        let body = Summary { through, text };
        texts(&fold(Some(fork.clone().push(body))))
    };
    let kept = ["summary s", "parent 3", "parent 4", "fork", "answer"];
    assert_eq!(cover(1), kept);
    assert_eq!(cover(4), ["summary s", "answer"]);
}

#[test]
fn a_branch_sees_what_its_parent_s_model_saw_and_not_what_its_inbox_held() {
    let mut journal = Journal::new();
    journal.prompt(1, "seen");
    journal.queue(prompt_id(2), crate::event::PromptMode::Queue, "unseen");
    let parent = journal.conversation;
    let (agent, seq) = (journal.agent, journal.head());
    journal.conversation = fixture::conversation(2);
    let conversation = parent;
    let from = crate::event::Origin {
        agent,
        conversation,
        seq,
    };
    let source = crate::event::BeginSource::Rewind;
    journal.begin(source, Some(parent), Some(from));
    let prompts = vec![prompt_id(2)];
    journal.push(crate::event::PromptsTaken { prompts });
    assert_eq!(texts(&journal.window()), ["seen"]);
}

/// Everything that a window can contain.
fn full() -> Journal {
    let mut journal = Journal::new();
    let mut bare = context(Wire::Gemini);
    journal.push(context(Wire::AnthropicMessages));
    journal.prompt(1, "one");
    let through = journal.reply(vec![Block::text("two")]).position();
    journal.prompt(2, "three");
    summarise(&mut journal, through, "one and two");
    journal.reply(vec![Block::text("I look"), call("a"), call("b")]);
    journal.result("b", "found");
    notice(&mut journal, "meanwhile");
    journal.queue(prompt_id(3), crate::event::PromptMode::Queue, "later");
    bare.tools.clear();
    journal.push(bare);
    journal
}

fn restore(journal: &Journal, skeleton: &Skeleton) -> Result<Window, MissingEvent> {
    let at = |position: Position| journal.events.iter().find(|e| e.position() == position);
    Window::restore(skeleton, at)
}

fn saw(journal: &mut Journal, file: &str, content: &str) {
    let seen = FileSeen {
        file: file.to_owned(),
        content: content.to_owned(),
    };
    journal.push(ToolEnded {
        seen: vec![seen],
        ..ToolEnded::new(CallId::new("a"), CallOutcome::Ok)
    });
}

#[test]
fn the_newest_content_of_a_file_is_known_and_a_summary_keeps_it() {
    let mut journal = Journal::new();
    saw(&mut journal, "a", "one");
    saw(&mut journal, "b", "other");
    saw(&mut journal, "a", "two");
    journal.push(ToolEnded::new(CallId::new("b"), CallOutcome::Ok));
    let through = journal.events.last().unwrap().position();
    summarise(&mut journal, through, "what was said");
    let window = journal.window();
    let known = |file: &str| window.seen_files().content_of(file);
    assert_eq!(known("a"), Some("two"));
    assert_eq!(known("b"), Some("other"));
    assert_eq!(known("c"), None);
    let restored = restore(&journal, &window.skeleton()).unwrap();
    assert_eq!(restored, window);
}

#[test]
fn a_skeleton_gets_its_words_back() {
    let journal = full();
    let window = journal.window();
    let skeleton = window.skeleton();
    assert_eq!(restore(&journal, &skeleton), Ok(window));
}

#[test]
fn a_skeleton_holds_no_words_and_survives_being_stored() {
    let journal = full();
    let skeleton = journal.window().skeleton();
    let json = serde_json::to_string(&skeleton).unwrap();
    for word in [
        "one",
        "three",
        "I look",
        "found",
        "meanwhile",
        "later",
        "Be brief",
    ] {
        assert!(!json.contains(word), "{word}");
    }
    let read: Skeleton = serde_json::from_str(&json).unwrap();
    assert_eq!(read, skeleton);
}

/// Snapshot and tail fold to the same as everything, wherever the snapshot was taken.
#[test]
fn a_restored_window_goes_on_like_the_one_it_was() {
    let journal = full();
    for cut in 0..=journal.events.len() {
        let mut before = journal.clone();
        before.events.truncate(cut);
        let skeleton = before.window().skeleton();
        let mut window = restore(&before, &skeleton).unwrap();
        journal.events[cut..].iter().for_each(|e| window.apply(e));
        assert_eq!(window, journal.window(), "cut after {cut}");
    }
}

#[test]
fn a_skeleton_names_the_events_it_needs_and_no_others() {
    let journal = full();
    let skeleton = journal.window().skeleton();
    let needed: Vec<Position> = skeleton.sources().collect();
    let mut only_those = journal.clone();
    only_those
        .events
        .retain(|event| needed.contains(&event.position()));
    assert!(only_those.events.len() < journal.events.len());
    assert_eq!(restore(&only_those, &skeleton), Ok(journal.window()));
}

#[test]
fn words_that_are_gone_are_an_error_that_names_the_event() {
    let journal = full();
    let skeleton = journal.window().skeleton();
    let needed: Vec<Position> = skeleton.sources().collect();
    for position in needed {
        let mut purged = journal.clone();
        for event in &mut purged.events {
            if event.position() == position {
                event.body = Body::Gone(event.kind());
            }
        }
        assert_eq!(restore(&purged, &skeleton), Err(MissingEvent(position)));
        purged.events.retain(|event| event.position() != position);
        assert_eq!(restore(&purged, &skeleton), Err(MissingEvent(position)));
    }
}

#[test]
fn purged_events_leave_an_empty_window_behind() {
    let mut journal = full();
    for event in &mut journal.events {
        if event.kind().is_content() {
            event.body = Body::Gone(event.kind());
        }
    }
    let (conversation, events) = (journal.conversation, 1);
    journal.push(Purged::conversation(conversation, events));
    assert_eq!(journal.window(), Window::new());
}

#[test]
fn the_newest_tools_are_remembered_when_there_are_none_any_more() {
    let window = full().window();
    assert_eq!(window.context().unwrap().tools, []);
    assert_eq!(window.last_tools(), context(Wire::Gemini).tools);
}

#[test]
fn the_newest_notice_about_the_environment_is_known_and_a_summary_hides_it() {
    let mut journal = Journal::new();
    let told = |journal: &mut Journal, text: &str| {
        let (cause, text) = (NoticeCause::Environment, text.to_owned());
        journal.push(Notice { cause, text });
    };
    assert_eq!(journal.window().environment(), None);
    told(&mut journal, "A is missing");
    told(&mut journal, "B is missing");
    notice(&mut journal, "meanwhile");
    let window = journal.window();
    assert_eq!(window.environment(), Some("B is missing"));
    assert!(window.shows_environment());
    assert_eq!(restore(&journal, &window.skeleton()), Ok(window));
    journal.reply(vec![Block::text("fine")]);
    let through = journal.events.last().unwrap().position();
    summarise(&mut journal, through, "what was said");
    let window = journal.window();
    assert_eq!(window.environment(), Some("B is missing"));
    assert!(!window.shows_environment());
    assert_eq!(restore(&journal, &window.skeleton()), Ok(window));
}

fn command(journal: &mut Journal, n: u8, output: &str, end: CommandEnd) -> CommandId {
    let command = CommandId::from_bytes([n; 16]);
    journal.push(CommandOutput {
        command,
        line: "make".to_owned(),
        output: output.to_owned(),
        end,
    });
    command
}

#[test]
fn a_command_is_seen_when_it_is_taken_and_asks_for_nothing() {
    let mut journal = Journal::new();
    journal.prompt(1, "hi");
    journal.reply(vec![Block::text("hello")]);
    let fine = CommandEnd {
        exit: TaskExit::Code { code: 0 },
        cut: None,
    };
    let killed = CommandEnd {
        exit: TaskExit::Signal { signal: 15 },
        cut: Some(CommandCut::TimedOut),
    };
    let first = command(&mut journal, 1, "all good\n", fine);
    let second = command(&mut journal, 2, "", killed);
    assert_eq!(journal.window().items().len(), 2);
    assert!(journal.window().waiting_commands().eq([first, second]));
    // A snapshot keeps what waits.
    let window = journal.window();
    let find = |at: Position| journal.events.iter().find(|event| event.position() == at);
    assert_eq!(Window::restore(&window.skeleton(), find).unwrap(), window);
    let commands = vec![first, CommandId::from_bytes([9; 16]), second, first];
    journal.push(CommandsTaken { commands });
    let window = journal.window();
    let told = "notice The user ran a command in the working directory:\n$ make\n";
    assert_eq!(
        texts(&window)[2..],
        [
            format!("{told}all good"),
            format!("{told}(no output)\n(timed out: signal 15)")
        ]
    );
    assert!(!window.awaits_answer() && window.waiting_commands().count() == 0);
    let find = |at: Position| journal.events.iter().find(|event| event.position() == at);
    assert_eq!(Window::restore(&window.skeleton(), find).unwrap(), window);
}

#[test]
fn a_branch_shares_a_command_that_waits() {
    let mut journal = Journal::new();
    let end = CommandEnd {
        exit: TaskExit::Unknown,
        cut: None,
    };
    let waiting = command(&mut journal, 1, "so far", end);
    let mut window = journal.window();
    let mut events = journal.events.iter();
    let branch = events.find(|event| matches!(event.body, Body::ConversationBegan(_)));
    window.apply(branch.unwrap());
    assert!(window.waiting_commands().eq([waiting]));
}
