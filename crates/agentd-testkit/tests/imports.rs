//! Histories of other programs: what they become, and that damage of any kind leaves a conversation that every provider
//! accepts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by panicking"
)]

use agentd_core::event::{Body, Event, TurnStatus};
use agentd_core::id::AgentId;
use agentd_core::import_history::{Left, Program, Reading, Record, Report, SessionInfo};
use agentd_core::message::{Block, CallOutcome};
use agentd_core::spec::AgentSpec;
use agentd_core::state::AgentState;
use agentd_core::time::Timestamp;
use agentd_core::window::{Entry, Window};
use agentd_testkit::histories;
use agentd_testkit::journal::Journals;
use agentd_testkit::theorem::{Seen, check_prefixes};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;

struct Converted {
    agent: AgentId,
    info: SessionInfo,
    events: Vec<Event>,
    report: Report,
}

fn convert(program: Program, lines: &[Vec<u8>]) -> Converted {
    let mut reading = Reading::new(program);
    lines
        .iter()
        .for_each(|line| reading.record(Record::Text(line)));
    let found = reading.finish("a-file");
    let (agent, info, name) = (found.agent, found.info.clone(), found.name());
    let mut conversion = found.convert(&name, &AgentSpec::default(), Timestamp(5));
    let mut events = Vec::new();
    for line in lines {
        events.extend(conversion.record(Record::Text(line)));
    }
    let (last, report) = conversion.finish();
    events.extend(last);
    Converted {
        agent,
        info,
        events,
        report,
    }
}

fn lines(program: Program) -> Vec<Vec<u8>> {
    let lines = histories::text(program).lines();
    lines.map(|line| line.as_bytes().to_vec()).collect()
}

fn window(converted: &Converted) -> Window {
    let mut window = Window::new();
    converted
        .events
        .iter()
        .for_each(|event| window.apply(event));
    window
}

/// The conversation in short lines.
fn transcript(events: &[Event]) -> Vec<String> {
    let blocks = |blocks: &[Block]| {
        let parts = blocks.iter().map(|block| match block {
            Block::Text { text } => text.replace('\n', " "),
            Block::Thinking { text, .. } => format!("({text})"),
            Block::Image { .. } => "<image>".to_owned(),
            Block::ToolCall(call) => format!("[{}]", call.name),
            other => format!("{other:?}"),
        });
        parts.collect::<Vec<_>>().join(" ")
    };
    let line = |event: &Event| match &event.body {
        Body::Prompt(prompt) => Some(format!("> {}", blocks(&prompt.blocks))),
        Body::MessageAdded(message) => Some(format!("< {}", blocks(&message.blocks))),
        Body::ResultAdded(result) => {
            let outcome = match result.outcome {
                CallOutcome::Ok => "ok",
                CallOutcome::Error => "error",
                CallOutcome::Unknown => return Some("= unknown".to_owned()),
                _ => "other",
            };
            Some(format!("= {outcome} {}", blocks(&result.blocks)))
        }
        Body::Summary(summary) => Some(format!("~ {}", summary.text.replace('\n', " "))),
        Body::TurnEnded(ended) => Some(format!(". {:?}", ended.status)),
        _ => None,
    };
    events.iter().filter_map(line).collect()
}

#[test]
fn claude_code() {
    let converted = convert(Program::ClaudeCode, &lines(Program::ClaudeCode));
    assert_eq!(
        transcript(&converted.events),
        [
            "> Fix the parser tests",
            "< (I should look at both files.) I will look at the parser. [Read] [Bash]",
            "= ok fn parse() {}",
            "= error 1 failed <image>",
            "< [Task]",
            "= ok It is the lexer.",
            "< The lexer drops a token. It is fixed.",
            ". Completed",
            "> Now document it <image>",
            "< It is documented.",
            ". Completed",
            "~ This session is being continued from a previous conversation.  The parser was fixed and documented.",
            "> Release it",
            "< I will tag it. [Bash]",
            "= unknown",
            ". Interrupted",
        ]
    );
    let info = &converted.info;
    assert_eq!(info.title.as_deref(), Some("Fixing the parser tests"));
    assert_eq!(info.model.as_deref(), Some("claude-sonnet-5-5"));
    assert_eq!(info.cwd.as_deref(), Some("/work/project"));
    let report = &converted.report;
    assert_eq!((report.prompts, report.replies, report.calls), (3, 5, 4));
    for (reason, count) in [
        (Left::Subagent, 2),
        (Left::OtherBranch, 2),
        (Left::SealedThinking, 1),
        (Left::Error, 1),
        (Left::CallWithoutResult, 1),
        (Left::BadLine, 0),
        (Left::Unknown, 0),
    ] {
        assert_eq!(report.count(reason), count, "{reason:?}: {report:?}");
    }
}

#[test]
fn codex() {
    let converted = convert(Program::Codex, &lines(Program::Codex));
    assert_eq!(
        transcript(&converted.events),
        [
            "> Count the files <image>",
            "< (A command will do.) I count them. [exec_command] [apply_patch]",
            "= ok Process exited with code 0 Output: 12 ",
            "= error patch refused",
            "< There are 12 files.",
            ". Completed",
            "~ The directory has 12 files.",
            "> Which is the largest?",
            "< [local_shell]",
            "= unknown",
            ". Interrupted",
        ]
    );
    assert_eq!(converted.info.known_provider(), Some("openai"));
    let report = &converted.report;
    assert_eq!(report.count(Left::Reverted), 2);
    assert_eq!(report.count(Left::ProviderTool), 1);
    assert_eq!(report.count(Left::Unknown), 0, "{report:?}");
}

#[test]
fn goose() {
    let converted = convert(Program::Goose, &lines(Program::Goose));
    assert_eq!(
        transcript(&converted.events),
        [
            "> Tidy my notes <image>",
            "< (Let me list them.) I list them. [shell]",
            "= ok a.md b.md",
            "< There are two.",
            ". Completed",
            "~ The notes are a.md and b.md.",
            "> Merge them",
            "< [developer__text_editor] [unnamed]",
            "= error -32000: refused",
            "= ok no such tool",
            "< I could not merge them.",
            ". Completed",
        ]
    );
    assert_eq!(converted.info.title.as_deref(), Some("Tidy the notes"));
    assert_eq!(converted.report.count(Left::Unknown), 0);
}

#[test]
fn opencode() {
    let converted = convert(Program::Opencode, &lines(Program::Opencode));
    assert_eq!(
        transcript(&converted.events),
        [
            "> Rename parse to read <image>",
            "< (Two files.) I rename it. [edit] [bash]",
            "= ok done",
            "= error exit 1",
            "< [bash]",
            "= ok ok <image>",
            "< It is renamed.",
            ". Completed",
            "~ parse was renamed to read.",
            "> Run the tests",
            "< I run them. [bash]",
            "= unknown",
            ". Interrupted",
        ]
    );
    let report = &converted.report;
    assert_eq!(
        (report.count(Left::Reverted), report.count(Left::File)),
        (2, 1)
    );
    assert_eq!(report.count(Left::Unknown), 0, "{report:?}");
}

/// What may happen to a file.
#[derive(Clone, Debug)]
enum Harm {
    Drop(usize),
    Repeat(usize),
    Move(usize, usize),
    /// The line ends after this part of it.
    Cut(usize, u8),
    Garbage(usize),
    /// The file ends here, in the middle of a line.
    End(usize, u8),
}

fn harm() -> impl Strategy<Value = Harm> {
    let line = 0..40_usize;
    prop_oneof![
        line.clone().prop_map(Harm::Drop),
        line.clone().prop_map(Harm::Repeat),
        (line.clone(), line.clone()).prop_map(|(from, to)| Harm::Move(from, to)),
        (line.clone(), any::<u8>()).prop_map(|(line, part)| Harm::Cut(line, part)),
        line.clone().prop_map(Harm::Garbage),
        (line, any::<u8>()).prop_map(|(line, part)| Harm::End(line, part)),
    ]
}

fn cut(line: &mut Vec<u8>, part: u8) {
    line.truncate(line.len() * usize::from(part) / 256);
}

fn damaged(lines: &mut Vec<Vec<u8>>, harm: &Harm) {
    if lines.is_empty() {
        return;
    }
    let count = lines.len();
    match *harm {
        Harm::Drop(line) => drop(lines.remove(line % count)),
        Harm::Repeat(line) => {
            let line = lines[line % count].clone();
            lines.push(line);
        }
        Harm::Move(from, to) => {
            let line = lines.remove(from % count);
            lines.insert(to % count, line);
        }
        Harm::Cut(line, part) => cut(&mut lines[line % count], part),
        Harm::Garbage(line) => lines.insert(line % count, b"\xff{\"type\": nonsense".to_vec()),
        Harm::End(line, part) => {
            lines.truncate(line % count + 1);
            cut(&mut lines[line % count], part);
        }
    }
}

fn check(program: Program, lines: &[Vec<u8>], seen: &mut Seen) -> Result<(), String> {
    let converted = convert(program, lines);
    let again = convert(program, lines);
    if again.events != converted.events {
        return Err("the same file gives other events".to_owned());
    }
    let mut state = AgentState::new(converted.agent);
    for (event, seq) in converted.events.iter().zip(1..) {
        if event.seq.0 != seq || event.agent != converted.agent {
            return Err(format!("event {seq} is out of order"));
        }
        state.apply(event);
    }
    if state.turn.is_some() || state.inbox.waiting().next().is_some() {
        return Err("something is still open".to_owned());
    }
    if window(&converted).has_open_calls() {
        return Err("a call has no result".to_owned());
    }
    let agent = converted.agent;
    let agents = BTreeMap::from([(agent, converted.events)]);
    check_prefixes(&Journals { agents }, agent, seen)
}

/// Truncated, interleaved and damaged files.
#[test]
fn whatever_happens_to_a_file_the_rest_is_a_conversation_that_providers_accept() {
    let seen = RefCell::new(Seen::default());
    let programs = prop::sample::select(Program::ALL.to_vec());
    let harms = prop::collection::vec(harm(), 0..6);
    TestRunner::new(agentd_testkit::cases(600))
        .run(&(programs, harms), |(program, harms)| {
            let mut lines = lines(program);
            harms.iter().for_each(|harm| damaged(&mut lines, harm));
            check(program, &lines, &mut seen.borrow_mut()).map_err(TestCaseError::fail)
        })
        .unwrap();
    let seen = seen.into_inner();
    assert!(seen.requests > 10_000, "too little was tried: {seen:?}");
}

/// Two sessions that were written to one file, line by line in turn.
#[test]
fn two_sessions_in_one_file_do_not_fail() {
    for program in Program::ALL {
        for other in Program::ALL {
            let (one, two) = (lines(program), lines(other));
            let mixed: Vec<Vec<u8>> = one.into_iter().zip(two).flat_map(|(a, b)| [a, b]).collect();
            check(program, &mixed, &mut Seen::default()).unwrap();
        }
    }
}

/// The result of a call may come after the next message, and its reply in parts with results in between.
#[test]
fn interleaved_results_find_their_calls() {
    let mut lines = lines(Program::Codex);
    // The output of the first call moves behind the answer.
    let output = lines.remove(11);
    lines.insert(14, output);
    let converted = convert(Program::Codex, &lines);
    let report = &converted.report;
    assert_eq!(report.count(Left::ResultWithoutCall), 0, "{report:?}");
    assert_eq!(report.count(Left::CallWithoutResult), 1, "{report:?}");
    let shown = transcript(&converted.events);
    assert!(shown.contains(&"= ok Process exited with code 0 Output: 12 ".to_owned()));
}

/// A long history: its window stays small enough for a model, and its end is in it.
#[test]
fn a_long_history_has_a_small_window_and_keeps_its_end() {
    let mut lines = Vec::new();
    for n in 0..3000 {
        let text = format!("{n} {}", "word ".repeat(200));
        lines.push(format!(
            "{{\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{text}\"}}]}}}}"
        ).into_bytes());
        lines.push(format!(
            "{{\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"output_text\",\"text\":\"answer {n}\"}}]}}}}"
        ).into_bytes());
    }
    let mut reading = Reading::new(Program::Codex);
    lines
        .iter()
        .for_each(|line| reading.record(Record::Text(line)));
    let mut conversion =
        reading
            .finish("long")
            .convert("long", &AgentSpec::default(), Timestamp(5));
    let mut window = Window::new();
    let mut largest = 0;
    for line in &lines {
        for event in conversion.record(Record::Text(line)) {
            window.apply(&event);
            largest = largest.max(agentd_core::compaction::size(&window));
        }
    }
    let (last, report) = conversion.finish();
    last.iter().for_each(|event| window.apply(event));
    assert!(report.cuts >= 3, "{report:?}");
    assert!(largest < 300_000, "{largest} tokens");
    assert!(agentd_core::compaction::size(&window) > 50_000);
    assert!(matches!(window.items()[0].entry, Entry::Summary(_)));
    assert_eq!(window.last_text(), "answer 2999");
    assert_eq!(report.prompts, 3000);
}

#[test]
fn a_turn_ends_as_what_it_was() {
    let ended = |program| {
        let events = convert(program, &lines(program)).events;
        let ends = events.into_iter().filter_map(|event| match event.body {
            Body::TurnEnded(ended) => Some(ended.status),
            _ => None,
        });
        ends.collect::<Vec<_>>()
    };
    let (completed, interrupted) = (TurnStatus::Completed, TurnStatus::Interrupted);
    assert_eq!(ended(Program::Codex), [completed, interrupted]);
    assert_eq!(ended(Program::Goose), [completed, completed]);
}

/// Regression: `agentd import FILE` of such a file said "Unknown frame descriptor".
#[test]
fn a_history_is_recognized_by_its_beginning() {
    for program in Program::ALL {
        let text = histories::text(program);
        assert_eq!(Program::recognized(text), Some(program));
    }
    for other in ["", "{}\n", "not JSON", r#"{"id":"x","role":"user"}"#] {
        assert_eq!(Program::recognized(other), None, "{other}");
    }
}
