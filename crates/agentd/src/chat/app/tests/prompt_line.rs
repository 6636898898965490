//! The prompt line: prompts, commands, the queue, completion and earlier prompts.

use super::*;
use crate::chat::commands::Own;
use crate::chat::effect::{Conflicts, FileNotes, FilesPlan, Page, Parts, RewindTo};
use agentd_client::api::EditPrompt;
use agentd_core::spec::AgentSpec;

fn send(text: &str, mode: PromptMode) -> [Effect; 1] {
    let (text, typed) = (text.to_owned(), text.to_owned());
    let chosen = Vec::new();
    [Effect::Send {
        text,
        typed,
        chosen,
        mode,
    }]
}

/// A prompt from a command file, of which the user typed only a part.
fn send_of_file(text: &str, typed: &str) -> [Effect; 1] {
    [Effect::Send {
        text: text.to_owned(),
        typed: typed.to_owned(),
        chosen: Vec::new(),
        mode: PromptMode::Queue,
    }]
}

#[test]
fn enter_sends_and_while_a_turn_runs_steers_or_queues() {
    let mut test = Test::new();
    test.type_text("hello");
    assert_eq!(test.enter(), send("hello", PromptMode::Queue));
    assert!(test.app.composer.is_empty());
    test.begin_turn();
    test.type_text("and then");
    assert_eq!(test.enter(), send("and then", PromptMode::Steer));
    test.type_text("later");
    let effects = test.key(KeyCode::Enter, ALT);
    assert_eq!(effects, send("later", PromptMode::Queue));
    assert_eq!(test.enter(), []);
}

#[test]
fn a_prompt_may_have_several_lines() {
    let mut test = Test::new();
    test.type_text("one");
    test.ctrl('j');
    test.type_text("two");
    test.key(KeyCode::Enter, ALT);
    test.type_text("three");
    assert!(
        test.screen().contains("> one\n  two\n  three"),
        "{}",
        test.screen()
    );
    assert_eq!(test.enter(), send("one\ntwo\nthree", PromptMode::Queue));
}

#[test]
fn a_paste_of_a_megabyte_is_a_marker_and_is_sent_whole() {
    let mut test = Test::new();
    test.type_text("fix ");
    let text = "0123456789abcde\r".repeat(65_536);
    test.update(Input::Paste(text));
    assert!(test.screen().contains("> fix [pasted text 1: 65536 lines]"));
    let effects = test.enter();
    let [Effect::Send { text, .. }] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(text.len(), 4 + 16 * 65_536);
    assert!(text.starts_with("fix 0123456789abcde\n0123"));
}

#[test]
fn a_prompt_that_was_refused_comes_back() {
    let mut test = Test::new();
    test.type_text("hello");
    test.enter();
    test.answer(Answer::Sent("hello".to_owned(), Err(refused())));
    assert_eq!(test.app.composer.text(), "hello");
    assert!(test.screen().contains("the queue is full"));
    // What the user types meanwhile stays; the prompt is the newest earlier one.
    test.answer(Answer::Sent("other".to_owned(), Err(refused())));
    assert_eq!(test.app.composer.text(), "hello");
    test.key(KeyCode::Up, NONE);
    assert_eq!(test.app.composer.text(), "other");
}

#[test]
fn earlier_prompts_are_walked_through_and_searched() {
    let mut test = Test::new();
    for text in ["fix the tests", "build it", "fix the docs"] {
        test.event(prompt(text));
    }
    test.type_text("dra");
    test.key(KeyCode::Up, NONE);
    assert_eq!(test.app.composer.text(), "fix the docs");
    test.key(KeyCode::Down, NONE);
    assert_eq!(test.app.composer.text(), "dra");
    test.ctrl('r');
    test.type_text("fix");
    assert!(test.screen().contains("search: fix  fix the docs"));
    test.ctrl('r');
    assert!(test.screen().contains("search: fix  fix the tests"));
    test.enter();
    assert_eq!(test.app.composer.text(), "fix the tests");
    assert_eq!(test.enter(), send("fix the tests", PromptMode::Queue));
}

#[test]
fn a_command_is_completed_and_carried_out() {
    let mut test = Test::new();
    test.type_text("/rew");
    assert!(test.screen().contains("> /rewind"), "{}", test.screen());
    test.enter();
    assert_eq!(test.app.composer.text(), "/rewind ");
    test.type_text("3");
    assert_eq!(test.enter(), []);
    assert!(test.screen().contains("both"), "{}", test.screen());
    let rewind = Effect::Rewind {
        to: RewindTo {
            at: "3".to_owned(),
            conversation: None,
        },
        parts: Parts::Conversation,
        conflicts: Conflicts::Keep,
    };
    assert_eq!(test.enter(), [rewind]);
    test.type_text("/diff 2");
    let page = Page::Diff(Some("2".to_owned()));
    assert_eq!(test.enter(), [Effect::LoadPage(page)]);
    test.type_text("/context");
    assert_eq!(test.enter(), [Effect::LoadPage(Page::Context)]);
    test.type_text("/rest");
    assert_eq!(test.enter(), []);
    assert!(test.screen().contains("there is no command /rest"));
    assert_eq!(test.app.composer.text(), "/rest");
}

#[test]
fn every_command_does_something() {
    for command in crate::chat::commands::COMMANDS {
        let mut test = Test::new();
        let before = test.screen();
        let typed = format!("/{} x", command.name);
        test.app.composer.set(&typed);
        let effects = test.enter();
        let is_seen = test.screen() != before;
        assert!(!effects.is_empty() || is_seen, "{typed}");
        assert_eq!(test.app.composer.text(), "", "{typed}");
    }
}

#[test]
fn own_commands_and_skills_are_prompts() {
    let mut test = Test::new();
    test.app.own = vec![Own {
        name: "review".to_owned(),
        help: String::new(),
        prompt: "Review $ARGUMENTS with @.env".to_owned(),
    }];
    test.type_text("/review @a.rs");
    // Tools can write the file of a command, so only what the user typed names attachments.
    assert_eq!(
        test.enter(),
        send_of_file("Review @a.rs with @.env", "@a.rs")
    );
    // What was added while the chat is open is looked for with each `/`.
    let effects = test.key(KeyCode::Char('/'), NONE);
    assert!(effects.contains(&Effect::LoadCommands), "{effects:?}");
    let skill = Own::skill("release", "/s/SKILL.md");
    test.answer(Answer::Commands(vec![skill]));
    test.type_text("rele");
    assert!(test.screen().contains("> /release"));
    test.enter();
    let expected = "Use the skill `release`: read /s/SKILL.md and follow it.";
    assert_eq!(test.enter(), send_of_file(expected, ""));
}

#[test]
fn a_path_is_completed() {
    let mut test = Test::new();
    test.type_text("see @s");
    let load = Effect::LoadPaths("s".to_owned());
    assert_eq!(test.key(KeyCode::Tab, NONE), [load]);
    let found = ["src/lib.rs", "src/line.rs"].map(str::to_owned).to_vec();
    test.answer(Answer::Paths("s".to_owned(), found));
    assert_eq!(test.app.composer.text(), "see @src/li");
    assert!(test.screen().contains("> @src/lib.rs"), "{}", test.screen());
    test.key(KeyCode::Down, NONE);
    test.enter();
    assert_eq!(test.app.composer.text(), "see @src/line.rs ");
    // A path with spaces is quoted.
    test.type_text("@my");
    assert_eq!(
        test.key(KeyCode::Tab, NONE),
        [Effect::LoadPaths("my".to_owned())]
    );
    let found = vec!["my notes.txt".to_owned()];
    test.answer(Answer::Paths("my".to_owned(), found));
    let text = "see @src/line.rs @\"my notes.txt\" ";
    assert_eq!(test.app.composer.text(), text);
    // An answer that comes too late changes nothing.
    let late = Answer::Paths("x".to_owned(), vec!["xyz".to_owned()]);
    test.answer(late);
    assert_eq!(test.app.composer.text(), text);
}

#[test]
fn a_queued_prompt_is_edited_and_the_draft_stays() {
    let mut test = Test::new();
    test.begin_turn();
    test.answer(queue(vec![queued(1, "first"), queued(2, "second")]));
    assert!(test.screen().contains("queued: 2"));
    test.type_text("draft");
    test.ctrl('q');
    test.key(KeyCode::Down, NONE);
    test.enter();
    assert_eq!(test.app.composer.text(), "second");
    test.type_text("!");
    let edit = EditPrompt {
        prompt: queued(2, "").prompt.to_string(),
        text: "second!".to_owned(),
        edits: Some(2),
    };
    assert_eq!(test.enter(), [Effect::EditQueued(edit)]);
    assert_eq!(test.app.composer.text(), "draft");
    test.ctrl('q');
    test.answer(queue(Vec::new()));
    assert!(matches!(test.app.focus, Focus::Prompt));
    assert!(!test.screen().contains("queued"));
}

#[test]
fn the_editor_gets_the_text_and_gives_it_back() {
    let mut test = Test::new();
    test.type_text("draft");
    let edit = Effect::Edit("draft".to_owned());
    assert_eq!(test.ctrl('g'), [edit]);
    test.answer(Answer::Edited(Ok("better\ntext".to_owned())));
    assert_eq!(test.app.composer.text(), "better\ntext");
}

#[test]
fn the_last_answer_is_copied() {
    let mut test = Test::new();
    test.type_text("/copy");
    assert_eq!(test.enter(), []);
    test.event(message("the answer"));
    test.type_text("/copy");
    let copy = Effect::Copy("the answer".to_owned());
    assert_eq!(test.enter(), [copy]);
}

#[test]
fn escape_closes_the_list_of_commands() {
    let mut test = Test::new();
    test.begin_turn();
    test.type_text("/re");
    assert!(test.screen().contains("> /reset"));
    assert_eq!(test.key(KeyCode::Esc, NONE), []);
    assert!(!test.screen().contains("> /reset"));
    assert_eq!(test.app.composer.text(), "/re");
    // The next one interrupts the turn.
    assert_eq!(test.key(KeyCode::Esc, NONE), [Effect::Interrupt]);
}

/// Files are listed before they are written, and a change of something else is not overwritten by Enter alone.
#[test]
fn a_rewind_lists_files_before_it_writes_them() {
    let to = RewindTo {
        at: "3".to_owned(),
        conversation: None,
    };
    let rewind = |parts, conflicts| Effect::Rewind {
        to: to.clone(),
        parts,
        conflicts,
    };
    let mut test = Test::new();
    test.type_text("/rewind 3");
    test.enter();
    test.key(KeyCode::End, NONE);
    let plan = Effect::PlanRewind {
        to: to.clone(),
        parts: Parts::Both,
    };
    assert_eq!(test.enter(), [plan]);
    let planned = |conflicts| {
        let lines = ["1 file would be restored", "  src/lib.rs"];
        let plan = FilesPlan {
            to: to.clone(),
            parts: Parts::Both,
            conflicts,
            lines: lines.map(str::to_owned).to_vec(),
        };
        Answer::Changed(Ok(Change::Planned(plan)))
    };
    test.answer(planned(Conflicts::Keep));
    let screen = test.screen();
    assert!(screen.contains("  src/lib.rs\n> restore them"), "{screen}");
    assert_eq!(test.enter(), [rewind(Parts::Both, Conflicts::Keep)]);
    test.answer(planned(Conflicts::Overwrite));
    let screen = test.screen();
    assert!(screen.contains("> do nothing"), "{screen}");
    test.key(KeyCode::Home, NONE);
    assert_eq!(test.enter(), [rewind(Parts::Both, Conflicts::Overwrite)]);
}

#[test]
fn an_undo_of_a_clear_loads_the_log_again() {
    let mut test = Test::new();
    test.event(message("old"));
    let cleared = Change::Cleared("conversation 2".to_owned());
    test.answer(Answer::Changed(Ok(cleared)));
    test.event(message("undone"));
    let first = Seq(test.seq);
    let stepped = Change::Stepped("back in conversation 1".to_owned());
    let effects = test.answer(Answer::Changed(Ok(stepped)));
    assert!(effects.contains(&Effect::LoadOlder(first)), "{effects:?}");
    let now = test.now;
    let older = Older {
        context: Vec::new(),
        events: vec![made(1, now, None, message("old"))],
        is_first: true,
    };
    test.answer(Answer::Older(Ok(older)));
    let screen = test.screen();
    assert!(
        screen.contains("old") && screen.contains("undone"),
        "{screen}"
    );
}

#[test]
fn a_turn_at_a_limit_says_which_and_what_continues_it() {
    let mut test = Test::new();
    test.begin_turn();
    test.event(TurnEnded {
        limit: Some(LimitKind::Iterations),
        ..TurnEnded::with(TurnStatus::Limited)
    });
    test.turn = None;
    let mut spec = AgentSpec::default();
    spec.limits.max_iterations = 7;
    test.answer(Answer::Spec(Ok(Box::new(spec))));
    let screen = test.screen();
    assert!(screen.contains("limit reached (7): "), "{screen}");
    assert!(screen.contains("/continue goes on after"), "{screen}");
    assert!(screen.contains("limits.max_iterations=…"), "{screen}");
    test.begin_turn();
    assert!(!test.screen().contains("limit reached"));
}

#[test]
fn commands_of_other_programs_are_translated() {
    for (typed, effect) in [
        ("/exit", Effect::Quit),
        ("/cost", Effect::LoadPage(Page::Usage)),
        ("/status", Effect::LoadPage(Page::Context)),
        ("/resume", Effect::LoadConversations),
    ] {
        let mut test = Test::new();
        test.type_text(typed);
        assert_eq!(test.enter(), [effect], "{typed}");
        assert!(test.app.composer.is_empty());
    }
    let mut test = Test::new();
    test.type_text("/new");
    assert!(matches!(test.enter()[..], [Effect::Reset(_)]));
}

#[test]
fn an_unknown_command_suggests_the_nearest_one() {
    let mut test = Test::new();
    test.type_text("/rewnd");
    assert_eq!(test.enter(), []);
    let screen = test.screen();
    assert!(screen.contains("did you mean /rewind?"), "{screen}");
    // It is there to be corrected.
    assert_eq!(test.app.composer.text(), "/rewnd");
}

#[test]
fn an_attached_file_is_a_word_of_the_prompt_that_can_be_deleted() {
    let mut test = Test::new();
    test.type_text("/attach ~/my pic.png");
    assert_eq!(test.enter(), [Effect::Attach("~/my pic.png".to_owned())]);
    let path = "/home/u/my pic.png".to_owned();
    test.answer(Answer::Attached(Ok(path.clone())));
    assert_eq!(test.app.composer.text(), "@\"/home/u/my pic.png\" ");
    test.type_text("why?");
    let effects = test.enter();
    let [Effect::Send { text, chosen, .. }] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(text, "@\"/home/u/my pic.png\" why?");
    assert_eq!(*chosen, [path]);
    // It is not attached to a prompt that does not name it.
    test.type_text("again");
    assert_eq!(test.enter(), send("again", PromptMode::Queue));
}

#[test]
fn a_word_that_names_no_file_and_a_file_that_is_not_accepted_are_reported() {
    let mut test = Test::new();
    test.type_text("see @src/nothing.rs");
    test.enter();
    let notes = FileNotes {
        missing: vec!["src/nothing.rs".to_owned()],
        omitted: vec!["warning: blind accepts no images: a.png is not included".to_owned()],
    };
    test.answer(Answer::Sent("see @src/nothing.rs".to_owned(), Ok(notes)));
    let screen = test.screen();
    for note in [
        "no file to attach for @src/nothing.rs",
        "warning: blind accepts no images: a.png is not included",
    ] {
        assert!(screen.contains(note), "{screen}");
    }
}

#[test]
fn paths_that_only_resemble_what_was_typed_are_offered_and_do_not_replace_it() {
    let mut test = Test::new();
    test.type_text("@lib");
    let effects = test.key(KeyCode::Tab, NONE);
    assert_eq!(effects, [Effect::LoadPaths("lib".to_owned())]);
    let found = ["src/deep/lib.rs", "src/deep/library.rs"].map(str::to_owned);
    test.answer(Answer::Paths("lib".to_owned(), found.to_vec()));
    assert_eq!(test.app.composer.text(), "@lib");
    assert!(test.screen().contains("src/deep/library.rs"));
    test.enter();
    assert_eq!(test.app.composer.text(), "@src/deep/lib.rs ");
}
