//! The outcome of a run, as an exit code.

use crate::error::{Error, Exit};
use agentd_core::event::TurnStatus;
use agentd_core::state::{AgentState, EndedTurn};
use serde_json::json;

/// `turn` is the last turn of this run, `why` the reason of its failure, `resume` the command that continues from here.
pub fn of(
    state: &AgentState,
    turn: Option<&EndedTurn>,
    why: Option<String>,
    resume: &str,
) -> Result<(), Error> {
    if let Some((approval, _)) = state.approvals.waiting().next() {
        let next = format!("`{resume} --approve {approval}`, or the same with --deny");
        return Err(Error::new(Exit::Waiting, "the turn is waiting for your approval").next(next));
    }
    if state.turn.is_some() {
        let next = format!("`{resume} --continue-turn`");
        return Err(Error::new(Exit::Waiting, "the turn is waiting after a crash").next(next));
    }
    let Some(turn) = turn else { return Ok(()) };
    let resume_hint = format!("continue with `{resume}`");
    let why = why.unwrap_or_else(|| "no reason was given".to_owned());
    Err(match turn.status {
        TurnStatus::Completed => return Ok(()),
        TurnStatus::Interrupted => {
            Error::new(Exit::Interrupted, "the turn was interrupted").next(resume_hint)
        }
        TurnStatus::Limited => Error::new(Exit::Limited, "the turn reached a limit")
            .because(json!(turn.limit).as_str().unwrap_or("a limit"))
            .next(format!("raise it: `{resume} --continue-turn --max-…`")),
        TurnStatus::Failed => Error::new(Exit::Failed, "the turn failed")
            .because(why)
            .next(resume_hint),
        TurnStatus::Lost => Error::new(Exit::Failed, "the turn was given up")
            .because("it crashed repeatedly")
            .next(resume_hint),
    })
}
