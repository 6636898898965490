//! Answers the question of an MCP server, whose call runs and waits for it.

use super::approval::{Answered, Question, answer as answered};
use super::ops::Asked;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use agentd_client::api::AnswerQuestion;
use agentd_core::event::{AnsweredBy, Decision, QuestionAnswered};
use agentd_core::id::ApprovalId;
use serde_json::{Map, Value};

/// The most that an answer may contain, in bytes of JSON.
const CONTENT_BYTES: usize = 64 * 1024;

pub async fn answer(
    handle: &AgentHandle,
    approval: ApprovalId,
    (ask, by): (AnswerQuestion, AnsweredBy),
    asked: &Asked,
) -> Result<()> {
    let question = Question {
        approval,
        hash: None,
        by,
    };
    let content = |guard: &AgentGuard<'_>, what: &Answered| {
        let content = checked(guard, what, ask.content.clone())?;
        Ok(vec![QuestionAnswered { approval, content }.into()])
    };
    answered(handle, question, Decision::Allow, content, asked).await
}

/// The answer with the server's defaults, if there is a question and this answers it.
pub fn checked(
    guard: &AgentGuard<'_>,
    what: &Answered,
    content: Map<String, Value>,
) -> Result<Map<String, Value>> {
    let name = &guard.state.name;
    let Some(question) = &what.question else {
        let what = "the call waits for approval, and asks no question";
        let next = format!("`agentd approve {name}`, or `agentd deny {name}`");
        return Err(Error::new(Kind::Invalid, what).next(next));
    };
    let content = question.with_defaults(content);
    let size = serde_json::to_string(&content).map_or(usize::MAX, |text| text.len());
    if size > CONTENT_BYTES {
        let what = format!("the answer is larger than {CONTENT_BYTES} bytes");
        return Err(Error::new(Kind::Invalid, what));
    }
    question.check(&content).map_err(|why| {
        let what = "the answer does not fit the question";
        let next = format!(
            "`agentd answer {name} {}`, or `agentd deny {name}`",
            question.to_fill_in().join(" ")
        );
        Error::new(Kind::Invalid, what).because(why).next(next)
    })?;
    Ok(content)
}
