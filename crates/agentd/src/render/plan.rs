//! An agent's plan as lines.

use crate::terminal::visible_prose;
use agentd_core::event::{PlanSet, PlanStep, StepState};

/// `plan: 1 of 3 done`.
pub fn title(plan: &PlanSet) -> String {
    match plan.steps.len() {
        0 => "plan removed".to_owned(),
        all => format!("plan: {} of {all} done", plan.done()),
    }
}

/// `[x] read the code`.
pub fn step(step: &PlanStep) -> String {
    let mark = match step.state {
        StepState::Pending => "[ ]",
        StepState::InProgress => "[>]",
        StepState::Done => "[x]",
    };
    let text: Vec<&str> = step.step.split_whitespace().collect();
    format!("{mark} {}", visible_prose(&text.join(" ")))
}

pub fn lines(plan: &PlanSet) -> Vec<String> {
    plan.steps.iter().map(step).collect()
}
