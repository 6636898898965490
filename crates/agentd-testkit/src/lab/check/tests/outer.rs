//! What the checks allow an agent with a program of its own, and what they do not.

use super::run_dir::RunDir;
use super::{breaks, good};
use serde_json::json;

fn with_program(run_dir: &mut RunDir) {
    run_dir.event("context", "anthropic_messages")["body"]["provider"] = json!("command");
}

#[test]
fn a_program_is_not_given_a_prompt_again() {
    breaks("P3", "was given to the program again", with_program);
}

#[test]
fn an_agent_with_a_program_sends_nothing_to_the_model() {
    breaks("P3", "is of an agent that has a program", with_program);
}

/// The third turn is interrupted by a client. With the notice of a crash in its place, and no crash, it is not exempt.
#[test]
fn an_interrupted_turn_needs_the_crash_that_its_notice_names() {
    breaks(
        "P11",
        "was interrupted, but the model is not told",
        |run_dir| {
            with_program(run_dir);
            let notice = run_dir.event("notice", "The user interrupted this turn.");
            notice["body"]["cause"] = json!("crashed");
            notice["body"]["text"] = json!("It ended. The prompt was not sent again.");
        },
    );
    breaks(
        "P11",
        "was interrupted, but the model is not told",
        |run_dir| {
            with_program(run_dir);
            let notice = run_dir.event("notice", "The user interrupted this turn.");
            notice["body"]["cause"] = json!("restarted");
        },
    );
}

/// The agent of a model keeps its checks, whatever the name of its provider was once.
#[test]
fn one_context_of_a_model_is_enough_for_all_checks() {
    let mut run_dir = good();
    let at = run_dir.find("context", "anthropic_messages");
    let body = json!({"provider": "acp", "wire": "anthropic_messages", "model": "m"});
    run_dir.insert(at, "context", body);
    let found = run_dir.check();
    assert!(
        !found.iter().any(|found| found.what.contains("program")),
        "{found:#?}"
    );
}
