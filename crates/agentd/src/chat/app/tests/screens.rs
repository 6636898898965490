//! Whole screens as golden files: at three widths, with and without colours.

use super::*;
use crate::golden;
use agentd_core::event::{PlanSet, PlanStep, StepState, ToolStarted};
use agentd_core::id::CallId;
use agentd_core::message::{Arguments, ToolCall};
use ratatui::style::{Color, Modifier};
use serde_json::json;

const ANSWER: &str = "The test **passes** now: `max` returned the *smaller* value. This is a long sentence that does not \
fit into a narrow terminal, so it is wrapped between its words.\n\n1. The comparison was reversed.\n2. The test checks both \
orders.\n\n```rust\nfn max(a: u32, b: u32) -> u32 {\n    if a > b { a } else { b }\n}\n```\n";

/// The screen, with each change of style in brackets if it has colours.
fn styled(test: &mut Test) -> String {
    if test.colours == Colours::None {
        return test.screen() + "\n";
    }
    let buffer = test.drawn();
    let mut text = String::new();
    for cells in buffer.content().chunks(usize::from(test.size.width)) {
        let mut row = String::new();
        let mut last = (Color::Reset, Modifier::empty());
        for cell in cells {
            let style = (cell.fg, cell.modifier);
            if style != last {
                row.push_str(&format!("⟨{:?} {:?}⟩", cell.fg, cell.modifier));
                last = style;
            }
            row.push_str(cell.symbol());
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

fn check(test: &mut Test, name: &str) {
    for (width, height) in [(100, 28), (60, 24), (200, 40)] {
        test.size = Size { width, height };
        for (colours, word) in [(Colours::None, "plain"), (Colours::Shown, "colours")] {
            test.colours = colours;
            let shown = styled(test);
            golden::check(&format!("chat/{name}-{width}-{word}.txt"), &shown);
        }
    }
}

fn call(test: &mut Test) {
    let id = CallId::new("c1");
    let arguments = json!({ "command": "cargo test --workspace" });
    let call = ToolCall {
        id: id.clone(),
        name: "shell".to_owned(),
        arguments: Arguments::parse(&arguments.to_string()),
        signature: None,
    };
    let mut calls = message("I run the tests.");
    calls.blocks.push(Block::ToolCall(call));
    test.event(calls);
    let started = ToolStarted {
        call: id,
        tool: "shell".to_owned(),
        task: None,
        boot: None,
        change: None,
        patched: Vec::new(),
        may_change_files: false,
    };
    test.event(started);
}

#[test]
fn an_answer_and_a_prompt_that_is_typed() {
    let mut test = Test::new();
    test.event(prompt("Why does the test fail?"));
    test.begin_turn();
    test.event(message(ANSWER));
    test.end_turn();
    test.type_text("Thanks, now the docs");
    check(&mut test, "answer");
}

#[test]
fn a_turn_that_runs_with_queued_prompts() {
    let mut test = Test::new();
    test.event(prompt("Run the tests"));
    test.begin_turn();
    call(&mut test);
    test.pass(3000);
    test.answer(queue(vec![
        queued(1, "then update the changelog"),
        queued(2, "and commit it\nwith a good message"),
    ]));
    check(&mut test, "running");
}

#[test]
fn a_call_that_waits_for_approval() {
    let mut test = Test::new();
    test.event(prompt("Publish it"));
    test.begin_turn();
    test.pass(3000);
    test.waits_for(vec![approval(1, "cargo publish\necho done")]);
    check(&mut test, "approval");
}

#[test]
fn the_plan_stands_above_the_prompt_until_it_is_finished() {
    let mut test = Test::new();
    let step = |text: &str, state| PlanStep {
        step: text.to_owned(),
        state,
    };
    let plan = |last| PlanSet {
        steps: vec![step("read", StepState::Done), step("write", last)],
        explanation: None,
    };
    let with = |plan| Agent {
        plan: Some(plan),
        ..agent()
    };
    // The answer to the first question about the agent.
    test.answer(Answer::Agent(Ok(Box::new(agent()))));
    let changed = test.event(plan(StepState::InProgress));
    assert!(changed.contains(&Effect::LoadAgent), "{changed:?}");
    test.answer(Answer::Agent(Ok(Box::new(with(plan(
        StepState::InProgress,
    ))))));
    let screen = test.screen();
    assert!(
        screen.contains("plan: 1 of 2 done\n  [x] read\n  [>] write\n"),
        "{screen}"
    );
    test.answer(Answer::Agent(Ok(Box::new(with(plan(StepState::Done))))));
    let screen = test.screen();
    assert!(!screen.contains("plan: 2 of 2"), "{screen}");
}
