//! `agentd wait`.

use crate::connect::Connection;
use crate::error::{Error, Exit};
use crate::keys::Supply;
use crate::live::Scope;
use crate::output::Output;
use crate::render::{self, time, word};
use crate::showing::{Remarks, ShowArgs};
use crate::waiting::{self, Show};
use crate::watch::Awaited;
use crate::{complete, watch};
use agentd_client::api::{Agent, Status};
use agentd_core::event::TurnStatus;
use agentd_core::id::{IdPrefix, PromptId};
use agentd_core::state::Phase;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd wait coder
  agentd wait coder --timeout 10m && echo done
  agentd wait coder 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f

With the id of a prompt (`agentd send --no-wait` prints it), prints the answer to that prompt. Without one, waits \
until no turn runs and no prompt is queued. A terminal shows what the agent does meanwhile.
Exit: 0 ok, 1 the turn or the agent failed, 3 set aside or removed, 4 unavailable, 5 limited, 6 waiting for you, 7 not found, \
124 timeout, 130 interrupted.";

/// Wait until an agent is idle, or for the answer to a prompt
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The id of a prompt, or its beginning
    prompt: Option<IdPrefix>,
    /// Wait at most this long
    #[arg(long, value_name = "TIME", value_parser = time::duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    show: ShowArgs,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let mut connection = Connection::open().await?;
    let prompt = match &args.prompt {
        Some(given) => Some(waiting::prompt(&connection, &args.name, given).await?),
        None => None,
    };
    let waiting = wait(&mut connection, args, prompt, out);
    let Some(timeout) = args.timeout else {
        return waiting.await;
    };
    tokio::time::timeout(timeout, waiting)
        .await
        .unwrap_or_else(|_| {
            let what = format!("timed out waiting for {}", args.name);
            let error = Error::new(Exit::TimedOut, what).because("its turn continues");
            let name = &args.name;
            Err(match prompt {
                Some(prompt) => error
                    .about_prompt(prompt)
                    .next(format!("`agentd wait {name} {prompt}` to wait again")),
                None => error.next(format!("`agentd wait {name}` to wait again")),
            })
        })
}

async fn wait(
    connection: &mut Connection,
    args: &Args,
    prompt: Option<PromptId>,
    out: &mut Output,
) -> Result<(), Error> {
    let name = args.name.as_str();
    let client = connection.client.clone();
    let agent = client.agent(name).await?;
    // The turn may be waiting for a key that the caller has.
    let agent = Supply::new(client).continue_turn(agent).await?;
    if let Some(prompt) = prompt {
        return answer(connection, args, prompt, &agent, out).await;
    }
    let mut showing = args
        .show
        .showing(Scope::Agent, &agent, Remarks::Omitted, out)?;
    showing.catch_up(connection, &agent, agent.head).await?;
    let head = agent.head;
    let agent = watch::idle(connection, agent, head, &mut showing, out).await?;
    match showing.end(None) {
        Show::Json => {
            out.json(&agent)?;
            outcome(&agent).map_err(Error::printed)
        }
        Show::Text | Show::Nothing => {
            out.line(render::agent::line(&agent))?;
            outcome(&agent)
        }
    }
}

/// Waits for the answer to one prompt.
async fn answer(
    connection: &mut Connection,
    args: &Args,
    prompt: PromptId,
    agent: &Agent,
    out: &mut Output,
) -> Result<(), Error> {
    let name = args.name.as_str();
    let scope = Scope::Prompt(prompt);
    let mut showing = args.show.showing(scope, agent, Remarks::Omitted, out)?;
    let known = connection.client.answer(name, prompt, Duration::ZERO).await;
    let known = known.map_err(|error| Error::from(error).of_prompt(name, prompt))?;
    let answer = match known.status {
        // Everything about the prompt that happens from now on comes after the head. A turn that waits may have paused
        // for a key since.
        Status::Queued | Status::Running | Status::Waiting => {
            showing.catch_up(connection, agent, agent.head).await?;
            let mut awaited = Awaited {
                prompt,
                turn: known.turn,
                after: agent.head,
            };
            watch::answer(connection, name, &mut awaited, &mut showing, out).await?
        }
        _ => known,
    };
    let show = showing.end(Some(&answer));
    waiting::finish(connection, name, prompt, &answer, show, out).await
}

/// An error if the agent waits for the user, or its last turn ended without an answer.
pub fn outcome(agent: &Agent) -> Result<(), Error> {
    let name = &agent.name;
    let stands_still = |exit: Exit, what: String| {
        let error = Error::new(exit, what);
        let error = match &agent.error {
            Some(why) => error.because(why),
            None => error,
        };
        match render::agent::next(agent) {
            Some(next) => error.next(next),
            None => error,
        }
    };
    match agent.phase {
        Phase::Waiting | Phase::AwaitingApproval => {
            return Err(stands_still(
                Exit::Waiting,
                format!("{name} is waiting for you"),
            ));
        }
        Phase::Failed => return Err(stands_still(Exit::Failed, format!("{name} has failed"))),
        Phase::Stopped if agent.queued > 0 => {
            let prompts = render::count(agent.queued, "prompt");
            let what = format!("{name} is stopped, with {prompts} queued");
            return Err(stands_still(Exit::Waiting, what));
        }
        _ => {}
    }
    let Some(last) = &agent.last_turn else {
        return Ok(());
    };
    let exit = match last.status {
        TurnStatus::Completed => return Ok(()),
        TurnStatus::Interrupted => Exit::Interrupted,
        TurnStatus::Failed | TurnStatus::Lost => Exit::Failed,
        TurnStatus::Limited => Exit::Limited,
    };
    let what = format!("the last turn ended with status {}", word(last.status));
    Err(Error::new(exit, what).next(format!("see `agentd logs {name}`")))
}
