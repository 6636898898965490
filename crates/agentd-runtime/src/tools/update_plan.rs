//! `update_plan`: the model writes down its plan. The user sees it, and the model is reminded of it after a compaction.

use super::blocking::Cancelled;
use super::context::ToolContext;
use super::failure::{Failure, said};
use super::tool::{Job, Start, Tool};
use super::traits::Traits;
use agentd_core::event::{MAX_STEPS, PlanSet, PlanStep, StepState};
use agentd_core::message::CallOutcome;
use agentd_core::permission::Subject;
use agentd_core::turn::Finished;
use agentd_core::window::SeenFiles;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) struct UpdatePlan;

/// Some models know this tool with other names for the same arguments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(alias = "plan")]
    steps: Vec<Step>,
    #[serde(default)]
    explanation: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    step: String,
    #[serde(alias = "status")]
    state: State,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Pending,
    InProgress,
    #[serde(alias = "completed")]
    Done,
}

#[async_trait]
impl Tool for UpdatePlan {
    const NAME: &'static str = "update_plan";
    const TRAITS: Traits = Traits {
        parallel: false,
        idempotent: true,
        approval: false,
    };
    type Arguments = Arguments;

    fn description() -> String {
        format!(
            "Writes down your plan, a short list of steps with their states, which the user sees. Use it for work of \
             several steps: set the plan when you begin, and call it again whenever a step is done or the plan \
             changes. Do not use it for a simple task or a question. Each call replaces the whole plan: give all \
             steps, at most {MAX_STEPS}, each in a few words. At most one step is in_progress. An empty list removes \
             the plan."
        )
    }

    fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "steps": {
                    "type": "array",
                    "description": "All steps of the plan, in order.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "step": {"type": "string", "description": "What is done in this step."},
                            "state": {"type": "string", "enum": ["pending", "in_progress", "done"]}
                        },
                        "required": ["step", "state"],
                        "additionalProperties": false
                    }
                },
                "explanation": {
                    "type": "string",
                    "description": "Why the plan changes, in a sentence for the user."
                }
            },
            "required": ["steps"],
            "additionalProperties": false
        })
    }

    /// Rules do not apply: it changes nothing but what the user is shown.
    fn subjects(_context: &ToolContext, _arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        Ok(Vec::new())
    }

    async fn prepare(
        _context: &Arc<ToolContext>,
        arguments: Arguments,
        _seen: &SeenFiles,
    ) -> Result<Start, Failure> {
        match arguments.plan().check() {
            Ok(()) => Ok(Start::default()),
            Err(problem) => Err(Failure::new(format!(
                "The plan was not changed: {problem}, and call update_plan again."
            ))),
        }
    }

    async fn run(job: Job<Arguments>, _cancelled: Cancelled) -> Finished {
        let secrets = &job.context.secrets;
        let mut plan = job.arguments.plan();
        for step in &mut plan.steps {
            step.step = secrets.redact(&step.step);
        }
        plan.explanation = plan.explanation.map(|text| secrets.redact(&text));
        let mut finished = said(CallOutcome::Ok, summary(&plan));
        finished.also.push(plan.into());
        finished
    }
}

impl Arguments {
    fn plan(&self) -> PlanSet {
        let steps = self.steps.iter().map(|given| PlanStep {
            step: given.step.trim().to_owned(),
            state: match given.state {
                State::Pending => StepState::Pending,
                State::InProgress => StepState::InProgress,
                State::Done => StepState::Done,
            },
        });
        let explanation = self.explanation.as_deref().map(str::trim);
        PlanSet {
            steps: steps.collect(),
            explanation: explanation
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
        }
    }
}

/// What was set, and what comes next.
fn summary(plan: &PlanSet) -> String {
    let (done, all) = (plan.done(), plan.steps.len());
    match plan.current() {
        _ if all == 0 => "The plan was removed.".to_owned(),
        None => format!("The plan was updated: all {all} steps are done."),
        Some(step) => format!(
            "The plan was updated: {done} of {all} steps are done. Continue with: {}",
            step.step
        ),
    }
}

#[cfg(test)]
mod tests;
