//! Reports the outcome of a prompt.

use crate::connect::Connection;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::render;
use agentd_client::api::{Answer, Status};
use agentd_core::event::LimitKind;
use agentd_core::id::{IdPrefix, PromptId};
use agentd_core::spec::Limits;
use agentd_core::state::Phase;
use serde::Serialize;
use std::time::Duration;

/// A prompt by its id, or by the beginning of its id.
pub async fn prompt(
    connection: &Connection,
    name: &str,
    given: &IdPrefix,
) -> Result<PromptId, Error> {
    match given.whole() {
        Some(prompt) => Ok(prompt),
        None => {
            let answer = connection.client.answer(name, given, Duration::ZERO);
            Ok(answer.await?.prompt)
        }
    }
}

/// How an answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    Json,
    Text,
    /// Its text was already shown while it streamed.
    Nothing,
}

/// Shows an answer, and returns an error if the turn did not complete.
pub async fn finish(
    connection: &mut Connection,
    name: &str,
    prompt: PromptId,
    answer: &Answer,
    show: Show,
    out: &mut Output,
) -> Result<(), Error> {
    let outcome = match answer.status {
        Status::Waiting => Err(waits(connection, name, prompt, answer).await?),
        // Without the settings, the limit is named without its number.
        Status::Limited => {
            let spec = connection.client.spec(name).await.ok();
            outcome(name, answer, spec.map(|spec| spec.limits).as_ref())
        }
        _ => outcome(name, answer, None),
    };
    match show {
        Show::Json => {
            let next = outcome.as_ref().err().and_then(Error::advice);
            out.json(&Told { answer, next })?;
            return outcome.map_err(Error::printed);
        }
        Show::Text if !answer.text.is_empty() => out.line(answer.text.trim_end())?,
        Show::Text | Show::Nothing => {}
    }
    outcome
}

/// What `--json` prints: an answer, and what to do next if the turn did not complete.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    next: Option<&'a str>,
}

/// The error that says what the prompt waits for, and what to do.
async fn waits(
    connection: &mut Connection,
    name: &str,
    prompt: PromptId,
    answer: &Answer,
) -> Result<Error, Error> {
    // The client retries this request if the daemon dies now, so that the error can name what the prompt waits for.
    let agent = connection.client.agent(name).await?;
    let what = match agent.phase {
        Phase::Stopped => format!("{name} is stopped: the prompt is queued"),
        Phase::Failed => format!("{name} has failed: the prompt is queued"),
        _ if answer.turn.is_none() => {
            format!("{name} is waiting for you in an earlier turn: the prompt is queued")
        }
        _ => format!("{name} is waiting for you"),
    };
    let error = Error::new(Exit::Waiting, what);
    let calls: Vec<String> = agent
        .approvals
        .iter()
        .flat_map(render::approval::lines)
        .collect();
    let error = match answer.error.as_ref().or(agent.error.as_ref()) {
        Some(why) if !calls.is_empty() => {
            error.because(format_args!("{why}:\n        {}", calls.join("\n        ")))
        }
        Some(why) => error.because(why),
        None => error,
    };
    let next = render::agent::next(&agent).unwrap_or_else(|| format!("`agentd show {name}`"));
    let error = error.about_prompt(prompt);
    let wait = format!("{next}; then `agentd wait {name} {prompt}`");
    Ok(error.next(match calls.is_empty() {
        true => wait,
        // The chat asks there and shows the rest of the turn.
        false => format!("`agentd chat {name}` asks you and goes on; or {wait}"),
    }))
}

fn outcome(name: &str, answer: &Answer, limits: Option<&Limits>) -> Result<(), Error> {
    let look = format!("see `agentd logs {name}`");
    let because = |error: Error| match &answer.error {
        Some(why) => error.because(why),
        None => error,
    };
    Err(match answer.status {
        Status::Completed | Status::Queued | Status::Running | Status::Waiting => return Ok(()),
        Status::Interrupted => {
            because(Error::new(Exit::Interrupted, "the turn was interrupted")).next(look)
        }
        Status::Failed => {
            let error = because(Error::new(Exit::Failed, "the turn failed"));
            let next = answer.failure.and_then(|it| render::ended::next(it, name));
            error.next(match next {
                Some(next) => format!("{next}; {look}"),
                None => look,
            })
        }
        Status::Lost => because(Error::new(Exit::Failed, "the turn was lost")).next(look),
        Status::Limited => {
            let kind = answer.error.as_deref().and_then(limit);
            let error = Error::new(Exit::Limited, "the turn reached a limit");
            let (error, key) = match kind {
                None => (because(error), "limits.…"),
                Some(kind) => {
                    let (what, key) = render::limit::meaning(kind);
                    let value = limits.and_then(|limits| render::limit::value(kind, limits));
                    let value = value.map_or_else(String::new, |value| format!(": {value}"));
                    (error.because(format_args!("{what}{value}")), key)
                }
            };
            error.next(format!(
                "raise it with `agentd set {name} {key}=…`, then `agentd continue {name}`"
            ))
        }
        Status::Removed => {
            let what = "the prompt was removed from the queue";
            Error::new(Exit::Refused, what).next("send it again, with another --key if it had one")
        }
        Status::SetAside => {
            let what = "the prompt was set aside by a reset";
            let error = Error::new(Exit::Refused, what);
            let error = match answer.op {
                Some(op) => error.because(format_args!("operation {op}")),
                None => error,
            };
            error.next(format!(
                "send it again, or undo the reset with `agentd reset {name} --undo`"
            ))
        }
    })
}

/// A limit by its name in the API.
fn limit(name: &str) -> Option<LimitKind> {
    serde_json::from_value(name.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::{AgentRef, Usage};
    use agentd_core::id::{AgentId, ConversationId};
    use uuid::Uuid;

    #[test]
    fn every_limit_names_the_setting_that_raises_it() {
        for (name, key) in [
            ("iterations", "limits.max_iterations"),
            ("turn_cost", "limits.turn.usd"),
            ("conversation_tokens", "limits.conversation.tokens"),
            ("day_time", "limits.day.wall_ms"),
            ("subtree_cost", "limits.subtree.usd"),
        ] {
            let meaning = limit(name).map(render::limit::meaning);
            assert_eq!(meaning.map(|(_, key)| key), Some(key));
        }
        assert_eq!(limit("something else"), None);
    }

    #[test]
    fn the_exit_code_is_that_of_the_status() {
        let exit = |status| {
            let answer = Answer {
                agent: AgentRef {
                    id: AgentId::new(Uuid::nil()),
                    name: None,
                },
                prompt: PromptId::new(Uuid::nil()),
                conversation: ConversationId::new(Uuid::nil()),
                turn: None,
                status,
                text: String::new(),
                usage: Usage::default(),
                error: Some("why".to_owned()),
                failure: None,
                op: None,
            };
            outcome("coder", &answer, None).map_err(|error| error.exit())
        };
        assert_eq!(exit(Status::Completed), Ok(()));
        assert_eq!(exit(Status::Failed), Err(Exit::Failed));
        assert_eq!(exit(Status::Lost), Err(Exit::Failed));
        assert_eq!(exit(Status::SetAside), Err(Exit::Refused));
        assert_eq!(exit(Status::Removed), Err(Exit::Refused));
        assert_eq!(exit(Status::Limited), Err(Exit::Limited));
        assert_eq!(exit(Status::Interrupted), Err(Exit::Interrupted));
    }
}
