//! Commands that the user ran.

use super::harness::{Rig, Seen, allowed, calls, fails, finishes, says};
use crate::event::{
    Body, CommandEnd, CommandEnded, CommandLine, CommandOutput, CommandStarted, FailureClass,
    PromptMode, TaskExit,
};
use crate::id::{BootId, CommandId};
use crate::message::CallOutcome;
use crate::turn::Input;

/// The user runs a command, which ends.
fn ran(rig: &mut Rig, n: u8) -> Seen {
    let command = CommandId::from_bytes([n; 16]);
    let line = format!("make {n}");
    let end = CommandEnd {
        exit: TaskExit::Code { code: 2 },
        cut: None,
    };
    let bodies: [Body; 4] = [
        CommandStarted {
            command,
            boot: BootId::from_bytes([1; 16]),
            time_limit_ms: 1000,
        }
        .into(),
        CommandLine {
            command,
            line: line.clone(),
        }
        .into(),
        CommandEnded {
            command,
            end,
            duration_ms: 1,
        }
        .into(),
        CommandOutput {
            command,
            line,
            output: format!("output of {n}\n"),
            end,
        }
        .into(),
    ];
    rig.write(bodies.into())
}

/// The texts of the newest request, in order.
fn sent(rig: &Rig) -> String {
    let (_, request) = rig.sent.last().unwrap();
    format!("{:?}", request.messages)
}

#[test]
fn a_command_between_turns_begins_none_and_is_told_before_the_next_prompt() {
    let mut rig = Rig::asked();
    rig.on(says("hello")).completes();
    ran(&mut rig, 1).does([]);
    ran(&mut rig, 2).does([]);
    rig.prompt("why does it fail?").does([
        "append turn_started, commands_taken, prompts_taken",
        "append request_sent 1.2",
        "send 1.2",
    ]);
    let text = sent(&rig);
    let at = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("{part} in {text}"))
    };
    assert!(text.contains("$ make 1\\noutput of 1\\n(exit code 2)"));
    assert!(at("make 1") < at("make 2"));
    assert!(at("make 2") < at("why does it fail?"));
}

#[test]
fn a_command_during_a_request_is_told_after_its_results() {
    let mut rig = Rig::asked();
    ran(&mut rig, 1).does([]);
    rig.on(calls(&["shell"]));
    ran(&mut rig, 2).does([]);
    rig.on(allowed("call_1_1_0"));
    rig.on(finishes("call_1_1_0", CallOutcome::Ok)).does([
        "append tool_ended, result",
        "append commands_taken",
        "append request_sent 1.2",
        "send 1.2",
    ]);
    assert!(sent(&rig).contains("output of 1") && sent(&rig).contains("output of 2"));
    rig.on(says("done")).completes();
}

#[test]
fn a_command_does_not_make_a_turn_go_on() {
    let mut rig = Rig::asked();
    ran(&mut rig, 1).does([]);
    rig.on(says("done")).completes();
    assert_eq!(rig.machine.window().waiting_commands().count(), 1);
}

#[test]
fn a_command_is_in_a_request_that_is_repeated_and_beside_steering() {
    let mut rig = Rig::asked();
    ran(&mut rig, 1).does([]);
    rig.on(fails(FailureClass::Overloaded));
    rig.give(Input::BackoffOver);
    assert!(sent(&rig).contains("output of 1"));
    ran(&mut rig, 2).does([]);
    rig.prompt_as(PromptMode::Steer, "look at that").does([]);
    rig.on(says("I see")).ends_with("send 1.3");
    let text = sent(&rig);
    assert!(text.find("output of 2").unwrap() < text.find("look at that").unwrap());
}
