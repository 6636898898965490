//! Text from models, tools, files and other clients must not reach the terminal with control sequences.

use super::*;
use crate::chat::command_files;
use agentd_client::api::{Output, Task, TaskState, Tasks};
use agentd_core::id::TaskId;

const HOSTILE: &str = "a\u{1b}[2Jb\u{1b}]0;title\u{7}c\u{9b}31md\re\u{202e}f\u{8}g\u{fdd1}h";

fn task() -> Task {
    Task {
        id: TaskId::new(Uuid::nil()),
        agent: AgentRef {
            id: AgentId::new(Uuid::nil()),
            name: None,
        },
        conversation: ConversationId::new(Uuid::nil()),
        ordinal: None,
        turn: None,
        tool: HOSTILE.to_owned(),
        command: Some(HOSTILE.to_owned()),
        started_at: Timestamp::default(),
        output_bytes: 5,
        state: TaskState::Running,
        running: true,
        exit: None,
    }
}

#[track_caller]
fn check(test: &mut Test) {
    check_cells(test);
    assert!(!test.screen().contains("title"), "{}", test.screen());
}

#[track_caller]
fn check_cells(test: &mut Test) {
    let buffer = test.drawn();
    for cell in buffer.content() {
        let bad = |c: char| {
            c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{fdd0}'..='\u{fdef}')
        };
        assert!(!cell.symbol().contains(bad), "{:?}", cell.symbol());
    }
}

/// A tool can write the command files of the project.
#[test]
fn no_control_sequence_of_a_command_file_reaches_the_screen() {
    let project = tempfile::tempdir().unwrap();
    let dir = project.path().join(".claude/commands");
    std::fs::create_dir_all(&dir).unwrap();
    let put = |name: &str, text: String| std::fs::write(dir.join(name), text).unwrap();
    let hostile = HOSTILE.replace('\r', "");
    put(
        "zz-one.md",
        format!("---\ndescription: {hostile}\n---\nDo it"),
    );
    put("zz-two.md", format!("{hostile}\nand more"));
    put(
        "zz-three.md",
        format!("---\ndescription: \"{HOSTILE}\"\n---\n{HOSTILE}"),
    );
    put(&format!("zz-{hostile}.md"), "named".to_owned());
    let own = command_files::read(None, Some(project.path()));
    let names: Vec<&str> = own.iter().map(|own| own.name.as_str()).collect();
    assert_eq!(names, ["zz-one", "zz-three", "zz-two"]);
    let mut test = Test::new();
    test.app.own = own;
    test.update(Input::Paste("/zz".to_owned()));
    assert!(test.screen().contains("/zz-one"), "{}", test.screen());
    check(&mut test);
    for _ in 0..3 {
        test.key(KeyCode::Down, NONE);
        check(&mut test);
    }
    test.ctrl('u');
    test.key(KeyCode::F(1), NONE);
    // The commands of files come after those of the chat.
    let is_shown = (0..9).any(|_| {
        test.key(KeyCode::PageDown, NONE);
        test.screen().contains("/zz-one")
    });
    assert!(is_shown, "{}", test.screen());
    check(&mut test);
    test.key(KeyCode::Esc, NONE);
    test.update(Input::Paste("/zz-three".to_owned()));
    test.key(KeyCode::Enter, NONE);
    check(&mut test);
}

#[test]
fn no_control_sequence_reaches_the_screen() {
    let mut test = Test::new();
    let mut hostile = agent();
    hostile.name = HOSTILE.to_owned();
    hostile.model = Some(HOSTILE.to_owned());
    hostile.cwd = Some(HOSTILE.to_owned());
    hostile.error = Some(HOSTILE.to_owned());
    hostile.phase = Phase::Failed;
    test.answer(Answer::Agent(Ok(Box::new(hostile))));
    check(&mut test);
    test.begin_turn();
    test.event(prompt(HOSTILE));
    test.event(message(HOSTILE));
    check(&mut test);
    test.answer(queue(vec![queued(1, HOSTILE)]));
    check(&mut test);
    test.answer(Answer::Changed(Err(Error::new(Exit::Failed, HOSTILE))));
    check(&mut test);
    test.ctrl('t');
    let tasks = Tasks {
        tasks: vec![task()],
    };
    test.answer(Answer::Tasks(Ok(tasks)));
    let output = Output {
        text: HOSTILE.to_owned(),
        next: 5,
        is_over: false,
    };
    test.answer(Answer::Output(task().id, 0, Ok(output)));
    check(&mut test);
    test.key(KeyCode::Esc, NONE);
    test.answer(Answer::Page(Ok((
        HOSTILE.to_owned(),
        vec![HOSTILE.to_owned()],
    ))));
    check(&mut test);
    test.key(KeyCode::Esc, NONE);
    test.update(Input::Paste(HOSTILE.to_owned()));
    check(&mut test);
    test.pass(9000);
    test.waits_for(vec![approval(1, HOSTILE)]);
    check_cells(&mut test);
    // No part of a command is hidden from the user who approves it.
    let screen = test.screen();
    assert!(screen.contains(r"\u{1b}]0;title\u{7}c"), "{screen}");
}
