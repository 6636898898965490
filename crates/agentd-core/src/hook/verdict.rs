//! The combined answers of all handlers of one invocation.

use super::answer::{Answer, Decision};
use super::event::HookEvent;
use crate::patch;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Whether a handler ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    Ran,
    /// It did not run and never will.
    NotRun,
    /// It may have run, completely or in part.
    Unknown,
}

/// The strictest decision wins; texts are joined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Verdict {
    pub decision: Decision,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_prompt: Option<String>,
    /// A hook about a call did not run, or its outcome is unknown: `decision` is at least to ask.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unheard: bool,
    /// The agent has no hooks at all: for the rest of the turn its runtime need not ask.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hookless: bool,
}

impl Verdict {
    /// Combines the answers of the handlers that were waited for.
    pub fn of(event: HookEvent, answers: impl IntoIterator<Item = (HookOutcome, Answer)>) -> Self {
        let mut verdict = Self::default();
        for (outcome, answer) in answers {
            verdict.hear(event, outcome, answer);
        }
        verdict
    }

    /// The verdict if the hooks cannot be reached.
    pub fn unheard(event: HookEvent) -> Self {
        Self::of(event, [(HookOutcome::Unknown, Answer::default())])
    }

    /// The verdict about a call of this tool. A handler that was told of one file of a patch cannot change the patch: the
    /// user decides.
    #[must_use]
    pub fn of_call(mut self, tool: Option<&str>) -> Self {
        let is_patch = |input: &Map<String, Value>| input.contains_key("input");
        let of_one_file = self
            .updated_input
            .take_if(|input| tool == Some(patch::TOOL) && !is_patch(input));
        if of_one_file.is_some() && self.decision < Decision::Ask {
            self.decision = Decision::Ask;
            let reason = "a hook wants to change one file of this patch, which is not possible";
            self.reason = Some(reason.to_owned());
        }
        self
    }

    pub fn is_no(&self) -> bool {
        self.decision == Decision::Deny
    }

    fn hear(&mut self, event: HookEvent, outcome: HookOutcome, mut answer: Answer) {
        if outcome != HookOutcome::Ran && event == HookEvent::PreToolUse {
            // The hook might have denied the call, so the user must be asked.
            self.unheard = true;
            answer.decision = answer.decision.max(Decision::Ask);
            let reason = match outcome {
                HookOutcome::NotRun => {
                    "a hook for this call could not run, so its decision is unknown"
                }
                _ => "a hook for this call did not finish, so its decision is unknown",
            };
            answer.reason.get_or_insert_with(|| reason.to_owned());
        }
        if answer.decision > self.decision {
            self.reason = answer.reason;
        } else if answer.decision == self.decision {
            join(&mut self.reason, answer.reason);
        }
        self.decision = self.decision.max(answer.decision);
        join(&mut self.context, answer.context);
        join(&mut self.stop, answer.stop);
        self.updated_input = answer.updated_input.or(self.updated_input.take());
        self.updated_output = answer.updated_output.or(self.updated_output.take());
        self.title = answer.title.or(self.title.take());
        self.initial_prompt = answer.initial_prompt.or(self.initial_prompt.take());
    }
}

fn join(known: &mut Option<String>, more: Option<String>) {
    *known = match (known.take(), more) {
        (Some(known), Some(more)) => Some(format!("{known}\n{more}")),
        (known, more) => known.or(more),
    };
}
