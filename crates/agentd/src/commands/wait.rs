//! `agentd wait`.

use crate::complete;
use crate::connect::Connection;
use crate::error::{Error, Exit};
use crate::follow::{Follow, Seen};
use crate::keys;
use crate::output::Output;
use crate::render::{self, time, word};
use crate::waiting::{self, Show};
use agentd_client::api::{Agent, EventQuery};
use agentd_core::event::{Kind, TurnStatus};
use agentd_core::id::{IdPrefix, PromptId};
use agentd_core::state::Phase;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd wait coder
  agentd wait coder --timeout 10m && echo done
  agentd wait coder 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f

With the id of a prompt (`agentd send --no-wait` prints it), prints the answer to that prompt. Without one, waits \
until no turn runs and no prompt is queued.
Exit: 0 ok, 1 the turn or the agent failed, 4 unavailable, 5 limited, 6 waiting for you, 7 not found, \
124 timeout, 130 interrupted.";

/// How often an agent with running subagents is polled: their approval requests are not in its own journal.
const LOOK: Duration = Duration::from_millis(500);

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
    /// Print the agent, or the answer, as one JSON object
    #[arg(long)]
    json: bool,
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
    // The turn may be waiting for a key that the caller has.
    let agent = connection.client.agent(name).await?;
    keys::continue_turn(&connection.client, agent).await?;
    if let Some(prompt) = prompt {
        let answer = waiting::answer(connection, name, prompt, out).await?;
        let show = match args.json {
            true => Show::Json,
            false => Show::Text,
        };
        return waiting::finish(connection, name, prompt, &answer, show, out).await;
    }
    let agent = wait_idle(connection, name).await?;
    match args.json {
        true => out.json(&agent)?,
        false => out.line(render::agent::line(&agent))?,
    }
    match args.json {
        true => outcome(&agent).map_err(Error::printed),
        false => outcome(&agent),
    }
}

/// Waits until the agent is idle, stopped or failed, or waits for the user.
async fn wait_idle(connection: &mut Connection, name: &str) -> Result<Agent, Error> {
    let mut follow: Option<Follow> = None;
    loop {
        let agent = connection.client.agent(name).await;
        let Some(agent) = connection.or_again(agent).await? else {
            continue;
        };
        if is_settled(&agent) {
            return Ok(agent);
        }
        let query = || EventQuery {
            after: agent.head.0,
            ..EventQuery::default()
        };
        let follow = follow.get_or_insert_with(|| Follow::new(name, query()));
        until_changed(follow, connection, &agent).await?;
    }
}

/// Waits for an event after which the agent may be idle or waiting.
async fn until_changed(
    follow: &mut Follow,
    connection: &mut Connection,
    agent: &Agent,
) -> Result<(), Error> {
    let has_workers = agent.children.iter().any(|child| child.outcome.is_none());
    loop {
        let next = follow.next(connection);
        let seen = match has_workers {
            false => next.await?,
            true => match tokio::time::timeout(LOOK, next).await {
                Ok(seen) => seen?,
                Err(_) => return Ok(()),
            },
        };
        if matches!(seen, Seen::Event(event) if may_settle(event.kind())) {
            return Ok(());
        }
    }
}

fn is_settled(agent: &Agent) -> bool {
    match agent.phase {
        Phase::Idle => agent.queued == 0 && agent.turn.is_none(),
        Phase::Running | Phase::Resetting => false,
        Phase::Waiting | Phase::AwaitingApproval | Phase::Stopped | Phase::Failed => true,
    }
}

/// Whether an agent may be idle or waiting after such an event.
const fn may_settle(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::TurnEnded
            | Kind::TurnPaused
            | Kind::ApprovalRequested
            | Kind::AgentStopped
            | Kind::AgentFailed
            | Kind::ResetEnded
            | Kind::ResetWithdrawn
            | Kind::PromptsSetAside
            | Kind::PromptsRemoved
            | Kind::CheckpointSet
            | Kind::SubagentStarted
    )
}

fn outcome(agent: &Agent) -> Result<(), Error> {
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
