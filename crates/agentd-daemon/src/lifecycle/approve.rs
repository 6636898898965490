//! Approves a call that waits for the user, once or by a rule for all calls like it.

use super::approval::{Answered, Question, answer};
use super::create::check_spec;
use super::ops::Asked;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use agentd_client::api::{Approve, Call, OnceOnly};
use agentd_core::event::{AnsweredBy, Decision, QuestionAnswered, SpecSet};
use agentd_core::id::ApprovalId;
use agentd_core::patch;
use agentd_core::permission::{Subject, verdict};
use agentd_core::spec::{self, AgentSpec};

pub async fn approve(
    handle: &AgentHandle,
    approval: ApprovalId,
    (ask, by): (Approve, AnsweredBy),
    asked: &Asked,
) -> Result<()> {
    let question = Question {
        approval,
        hash: ask.hash,
        by,
    };
    let rule = |guard: &AgentGuard<'_>, what: &Answered| {
        if what.question.is_some() && !ask.always {
            let content = super::answer::checked(guard, what, serde_json::Map::new())?;
            return Ok(match content.is_empty() {
                true => Vec::new(),
                false => vec![QuestionAnswered { approval, content }.into()],
            });
        }
        if what.question.is_some() {
            let what = "no rule can answer the question of an MCP server";
            return Err(Error::new(Kind::Invalid, what));
        }
        match ask.always {
            true => {
                let spec = Box::new(with_rule(&guard.state.spec, what.call.as_ref())?);
                Ok(vec![SpecSet { spec }.into()])
            }
            false => Ok(Vec::new()),
        }
    };
    answer(handle, question, Decision::Allow, rule, asked).await
}

/// The agent's settings with one more rule, which allows the same call, or every call of its tool if no pattern can be about
/// the call.
fn with_rule(spec: &AgentSpec, call: Option<&Call>) -> Result<AgentSpec> {
    let invalid = |what: &str| Error::new(Kind::Invalid, what);
    let call = call.ok_or_else(|| invalid("the call cannot be read, so no rule can name it"))?;
    match call.once_only() {
        Some(OnceOnly::LeavesSandbox) => {
            let what = "no rule is made for a call outside the sandbox, or one that does not say what it needs";
            let next = "approve this call only, or write the rule yourself: `agentd edit`";
            return Err(invalid(what).next(next));
        }
        Some(OnceOnly::InBackground) => {
            let what =
                "no rule is made for a command in the background that gets more than its sandbox";
            return Err(invalid(what).next("approve this call only"));
        }
        Some(OnceOnly::Wildcard) => {
            let what = "the call contains `*` or `?`, which a rule would read as a pattern";
            return Err(invalid(what).next("write the rule yourself: `agentd edit`"));
        }
        Some(OnceOnly::OfProgram) => {
            let what =
                "a rule for this call would allow everything of its kind to the agent's program";
            return Err(invalid(what).next("write the rule yourself: `agentd edit`"));
        }
        None => {}
    }
    let mut spec = spec.clone();
    spec.permissions.extend(call.rules());
    for subject in subjects(call) {
        let said = verdict(&spec.permissions, &call.tool, &subject);
        if said.is_none_or(|said| said.decision != spec::Decision::Allow) {
            let what = "another rule says ask for this call, and ask takes precedence over allow";
            return Err(invalid(what).next("change that rule: `agentd edit`"));
        }
    }
    check_spec(&spec)?;
    Ok(spec)
}

/// What the rules are asked about.
fn subjects(call: &Call) -> Vec<Subject> {
    if call.tool == patch::TOOL {
        let patch = call.patch();
        let subjects = patch.changes().map(|(path, change)| Subject::Patched {
            names: vec![path.to_owned()],
            change,
        });
        return subjects.collect();
    }
    vec![match call.command() {
        Some(line) => Subject::Command(line),
        None => Subject::name(call.pattern().unwrap_or_default()),
    }]
}
