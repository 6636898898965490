//! The agent's plan: a short list of steps, which the model writes with the tool `update_plan`.

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The largest number of steps of a plan.
pub const MAX_STEPS: usize = 20;
/// The longest step, and the longest explanation, in characters.
pub const MAX_STEP_CHARS: usize = 200;
pub const MAX_EXPLANATION_CHARS: usize = 1000;

/// A new plan, which replaces the one before it. Without steps, there is no plan any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanSet {
    pub steps: Vec<PlanStep>,
    /// Why the plan is new, or why it has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    pub step: String,
    pub state: StepState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    Pending,
    InProgress,
    Done,
}

impl StepState {
    /// As the tool's arguments spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
        }
    }
}

/// Why a plan is refused. The text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanProblem {
    #[error("a plan has at most {MAX_STEPS} steps, and this one has {0}; combine some of them")]
    TooManySteps(usize),
    #[error("step {0} is empty; describe it in a few words, or leave it out")]
    EmptyStep(usize),
    #[error(
        "step {number} has {chars} characters, and a step has at most {MAX_STEP_CHARS}; shorten it"
    )]
    LongStep { number: usize, chars: usize },
    #[error(
        "steps {first} and {second} are both in_progress, and at most one may be; set the others to pending or done"
    )]
    SeveralInProgress { first: usize, second: usize },
    #[error(
        "`explanation` has {0} characters, and it may have at most {MAX_EXPLANATION_CHARS}; shorten it"
    )]
    LongExplanation(usize),
}

impl PlanSet {
    pub fn check(&self) -> Result<(), PlanProblem> {
        if self.steps.len() > MAX_STEPS {
            return Err(PlanProblem::TooManySteps(self.steps.len()));
        }
        let mut in_progress = None;
        for (number, step) in (1..).zip(&self.steps) {
            let chars = step.step.chars().count();
            if step.step.trim().is_empty() {
                return Err(PlanProblem::EmptyStep(number));
            }
            if chars > MAX_STEP_CHARS {
                return Err(PlanProblem::LongStep { number, chars });
            }
            if step.state != StepState::InProgress {
                continue;
            }
            if let Some(first) = in_progress.replace(number) {
                let second = number;
                return Err(PlanProblem::SeveralInProgress { first, second });
            }
        }
        let explanation = self.explanation.as_deref().unwrap_or_default();
        match explanation.chars().count() {
            chars if chars > MAX_EXPLANATION_CHARS => Err(PlanProblem::LongExplanation(chars)),
            _ => Ok(()),
        }
    }

    /// Whether no step is left to do.
    pub fn is_finished(&self) -> bool {
        self.steps.iter().all(|step| step.state == StepState::Done)
    }

    /// How many steps are done.
    pub fn done(&self) -> usize {
        let steps = self.steps.iter();
        steps.filter(|step| step.state == StepState::Done).count()
    }

    /// The step in progress, or else the first that is left to do.
    pub fn current(&self) -> Option<&PlanStep> {
        let first = |state| self.steps.iter().find(move |step| step.state == state);
        first(StepState::InProgress).or_else(|| first(StepState::Pending))
    }

    /// What the model is told when it no longer sees the call that set the plan.
    pub fn reminder(&self) -> String {
        let mut text = "Your plan, as you set it last with update_plan:".to_owned();
        for (number, step) in (1..).zip(&self.steps) {
            let state = step.state.name();
            // Writing to a string does not fail.
            let _written = write!(text, "\n{number}. [{state}] {}", step.step);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(states: &[StepState]) -> PlanSet {
        let step = |(n, state): (usize, &StepState)| PlanStep {
            step: format!("step {n}"),
            state: *state,
        };
        PlanSet {
            steps: states.iter().enumerate().map(step).collect(),
            explanation: None,
        }
    }

    #[test]
    fn a_plan_has_few_short_steps_and_one_in_progress() {
        use StepState::{Done, InProgress, Pending};
        assert_eq!(plan(&[]).check(), Ok(()));
        assert_eq!(plan(&[Done, InProgress, Pending]).check(), Ok(()));
        assert_eq!(plan(&[Pending; MAX_STEPS]).check(), Ok(()));
        let many = plan(&[Pending; MAX_STEPS + 1]).check();
        assert_eq!(many, Err(PlanProblem::TooManySteps(21)));
        let several = plan(&[InProgress, Done, InProgress]).check();
        let (first, second) = (1, 3);
        assert_eq!(
            several,
            Err(PlanProblem::SeveralInProgress { first, second })
        );
        let with = |text: String| {
            let mut plan = plan(&[Pending, Pending]);
            plan.steps[1].step = text;
            plan.check()
        };
        assert_eq!(with(" ".to_owned()), Err(PlanProblem::EmptyStep(2)));
        assert_eq!(with("ü".repeat(MAX_STEP_CHARS)), Ok(()));
        let (number, chars) = (2, MAX_STEP_CHARS + 1);
        assert_eq!(
            with("ü".repeat(chars)),
            Err(PlanProblem::LongStep { number, chars })
        );
        let explained = PlanSet {
            explanation: Some("x".repeat(1001)),
            ..plan(&[Done])
        };
        assert_eq!(explained.check(), Err(PlanProblem::LongExplanation(1001)));
    }

    #[test]
    fn the_current_step_is_the_one_in_progress_or_the_next() {
        use StepState::{Done, InProgress, Pending};
        let current = |states: &[StepState]| plan(states).current().map(|it| it.step.clone());
        assert_eq!(current(&[Done, Pending, InProgress]).unwrap(), "step 2");
        assert_eq!(current(&[Done, Pending]).unwrap(), "step 1");
        assert_eq!(current(&[Done]), None);
        assert!(plan(&[Done, Done]).is_finished() && !plan(&[Done, Pending]).is_finished());
        let text = plan(&[Done, InProgress]).reminder();
        assert!(text.ends_with("\n1. [done] step 0\n2. [in_progress] step 1"));
    }
}
