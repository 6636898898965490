//! Instruction files that change while a conversation lasts.

use super::harness::{Rig, Seen, allowed, calls, finishes, says};
use crate::event::{After, InstructionFile, KeptPart, KnownSkill, PromptMode};
use crate::message::CallOutcome;
use crate::system_prompt::{Instructions, Present};
use crate::turn::Input;

const SKILL: &str = "/src/.claude/skills/release/SKILL.md";

/// A rig whose system prompt contains one file, and which has answered its first prompt.
fn rig() -> Rig {
    let mut rig = Rig::with(|_, policy| {
        let begin = policy.context.system.len() as u64;
        policy.context.kept = Some(KeptPart {
            begin,
            cwd: "/src".to_owned(),
            files: vec![InstructionFile {
                path: "/src/AGENTS.md".to_owned(),
                bytes: 3,
                shown: 3,
                digest: Some(digest("old")),
            }],
            skills: vec![KnownSkill {
                name: "release".to_owned(),
                path: SKILL.to_owned(),
            }],
        });
    });
    rig.prompt("hi").does([
        "append turn_started, prompts_taken",
        "append context",
        "read instructions",
    ]);
    present(&mut rig, "old").does(["append request_sent 2.1", "send 2.1"]);
    rig
}

fn digest(text: &str) -> String {
    crate::digest::digest(&[text.as_bytes()])
}

fn present(rig: &mut Rig, text: &str) -> Seen {
    let file = Instructions {
        path: "/src/AGENTS.md".to_owned(),
        text: Ok(text.to_owned()),
    };
    let present = Present {
        instructions: vec![file],
        unusable: Vec::new(),
    };
    rig.give(Input::InstructionsRead(Some(present)))
}

/// As before, and the skill may not be used.
fn without_skill(rig: &mut Rig) -> Seen {
    let present = Present {
        instructions: vec![Instructions {
            path: "/src/AGENTS.md".to_owned(),
            text: Ok("old".to_owned()),
        }],
        unusable: vec![SKILL.to_owned()],
    };
    rig.give(Input::InstructionsRead(Some(present)))
}

#[test]
fn a_skill_that_is_no_longer_trusted_is_told_once() {
    let mut rig = rig();
    rig.on(says("hello")).completes();
    rig.prompt("and now?").ends_with("read instructions");
    without_skill(&mut rig).does([
        "append instructions_changed",
        "append request_sent 2.2",
        "send 2.2",
    ]);
    let (_, request) = rig.sent.last().unwrap();
    assert!(format!("{:?}", request.messages).contains("can no longer be used"));
    rig.on(says("well")).completes();
    rig.prompt("more").ends_with("read instructions");
    without_skill(&mut rig).does(["append request_sent 2.3", "send 2.3"]);
    rig.on(says("well")).completes();
    rig.prompt("more").ends_with("read instructions");
    present(&mut rig, "old").does([
        "append instructions_changed",
        "append request_sent 2.4",
        "send 2.4",
    ]);
}

#[test]
fn a_change_is_told_before_the_request_and_once() {
    let mut rig = rig();
    rig.on(says("hello")).completes();
    rig.prompt("and now?").ends_with("read instructions");
    present(&mut rig, "new").does([
        "append instructions_changed",
        "append request_sent 2.2",
        "send 2.2",
    ]);
    let (_, request) = rig.sent.last().unwrap();
    assert!(format!("{:?}", request.messages).contains("They are now"));
    rig.on(says("well")).completes();
    rig.prompt("more").ends_with("read instructions");
    present(&mut rig, "new").does(["append request_sent 2.3", "send 2.3"]);
}

#[test]
fn results_and_steering_lead_to_another_look() {
    let mut rig = rig();
    rig.on(calls(&["shell"]));
    rig.on(allowed("call_2_1_0"));
    rig.on(finishes("call_2_1_0", CallOutcome::Ok))
        .ends_with("read instructions");
    rig.prompt_as(PromptMode::Steer, "and this")
        .does(["append prompts_taken", "read instructions"]);
    present(&mut rig, "old").does(["append request_sent 2.2", "send 2.2"]);
}

#[test]
fn files_that_cannot_be_read_do_not_hold_up_the_turn() {
    let mut rig = rig();
    rig.on(says("hello")).completes();
    rig.prompt("and now?").ends_with("read instructions");
    rig.give(Input::InstructionsRead(None))
        .does(["append request_sent 2.2", "send 2.2"]);
}

#[test]
fn an_interrupt_does_not_wait_and_a_late_look_changes_nothing() {
    let mut rig = rig();
    rig.on(says("hello")).completes();
    rig.prompt("and now?").ends_with("read instructions");
    let seen = rig.give(Input::Interrupt);
    assert!(
        seen.0
            .iter()
            .any(|line| line.contains("turn_ended interrupted")),
        "{:?}",
        seen.0
    );
    present(&mut rig, "new").does([]);
}

#[test]
fn the_next_process_looks_again() {
    let mut rig = rig();
    rig.on(says("hello")).completes();
    rig.prompt("and now?").ends_with("read instructions");
    rig.take_over(After::Crash, |_| {})
        .ends_with("read instructions");
    present(&mut rig, "new");
    rig.take_over(After::Crash, |_| {});
    // It is in the journal: the model is not told again.
    let told = rig.machine.window().known_instructions();
    assert_eq!(
        told.get("/src/AGENTS.md"),
        Some(&Some(digest("new").as_str()))
    );
}
