//! Watches an agent until a prompt is answered or the agent is idle, and shows meanwhile what it does. A daemon that dies
//! is started again.

use crate::connect::Connection;
use crate::error::Error;
use crate::follow::{Follow, Seen};
use crate::keys::Supply;
use crate::output::Output;
use crate::showing::Showing;
use agentd_client::Client;
use agentd_client::api::{Agent, Answer, EventQuery, Status};
use agentd_core::event::{Body, Event, Kind};
use agentd_core::id::{PromptId, Seq, TurnId};
use agentd_core::state::Phase;
use futures_util::{Stream, StreamExt as _};
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

/// The timeouts of one long-poll request. The first is short: a turn that begins to wait for the user is noticed only
/// between two requests.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(10);
const BREATH: Duration = Duration::from_millis(50);

/// How often an agent with running subagents is polled: their approval requests are not in its own journal.
const LOOK: Duration = Duration::from_millis(500);

/// How long the last events of a turn that is known to have ended may take.
const LAST_EVENTS: Duration = Duration::from_secs(5);

/// A prompt whose answer is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Awaited {
    pub prompt: PromptId,
    /// Its turn, if that has begun.
    pub turn: Option<TurnId>,
    /// The events after this one are shown.
    pub after: Seq,
}

/// Waits until a prompt has its final status, or its turn waits for the user, and shows the events meanwhile. Afterwards
/// `awaited` says what was shown.
pub async fn answer(
    connection: &mut Connection,
    name: &str,
    awaited: &mut Awaited,
    showing: &mut Showing,
    out: &mut Output,
) -> Result<Answer, Error> {
    let Awaited {
        prompt,
        turn,
        after,
    } = *awaited;
    let client = connection.client.clone();
    let mut events = events(connection, name, after, showing);
    let mut turn = Turn {
        prompt,
        id: turn,
        has_ended: false,
    };
    let mut wait = FIRST;
    let mut supply = Supply::new(client.clone());
    // Whether standard error says why the turn cannot begin yet.
    let mut is_told = false;
    // Whether the turn waited for the user before, and for none of the caller's keys.
    let mut has_waited = false;
    let mut poll = Box::pin(ask(&client, name, prompt, wait));
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut poll => {
                let answer = answer?;
                if answer.status.is_over() {
                    break answer;
                }
                if has_key_now(&client, name, &mut supply).await? {
                    has_waited = false;
                    poll = Box::pin(ask(&client, name, prompt, Duration::ZERO));
                    continue;
                }
                if answer.status == Status::Waiting {
                    if has_waited {
                        break answer;
                    }
                    // It may have got its key after this answer was made.
                    has_waited = true;
                    poll = Box::pin(ask(&client, name, prompt, Duration::ZERO));
                    continue;
                }
                has_waited = false;
                let why = answer.error.filter(|_| answer.status == Status::Queued);
                // Without a status line, the first reason is enough: a number in it may change.
                if !showing.set_waits(why.as_deref())
                    && let Some(why) = why
                    && !std::mem::replace(&mut is_told, true)
                {
                    out.aside(format_args!("{name}: {why}"))?;
                }
                wait = (wait * 2).min(LONGEST);
                poll = Box::pin(ask(&client, name, prompt, wait));
            }
            Some(seen) = events.next(), if !turn.is_over() => {
                let seen = seen.map_err(|error| error.of_prompt(name, prompt))?;
                showing.seen(&seen, out)?;
                if let Seen::Event(event) = &seen {
                    awaited.after = event.seq;
                }
                if turn.may_be_over(&seen) {
                    poll = Box::pin(ask(&client, name, prompt, Duration::ZERO));
                    wait = FIRST / 2;
                }
            }
            () = showing.ticked() => showing.tick(),
        }
    };
    awaited.turn = turn.id;
    if answer.status.is_over() && !turn.is_over() && showing.follows() {
        turn.id = turn.id.or(answer.turn);
        last_events(&mut events, &mut turn, showing, out).await;
    }
    Ok(answer)
}

/// Supplies the caller's keys if a turn waits for one. Returns whether that turn continues; another one may wait by then.
async fn has_key_now(client: &Client, name: &str, supply: &mut Supply) -> Result<bool, Error> {
    let agent = match client.agent(name).await {
        Ok(agent) => agent,
        // The answer says what became of the agent.
        Err(agentd_client::Error::Problem(_)) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let waiting = agent.missing_keys.clone();
    let agent = supply.continue_turn(agent).await?;
    Ok(agent.missing_keys != waiting)
}

/// One long-poll request.
async fn ask(
    client: &Client,
    name: &str,
    prompt: PromptId,
    wait: Duration,
) -> Result<Answer, Error> {
    let asked = Instant::now();
    let answer = client.answer(name, prompt, wait).await;
    let answer = answer.map_err(|error| Error::from(error).of_prompt(name, prompt))?;
    if !answer.status.is_over() && asked.elapsed() < wait {
        // A daemon that is shutting down returns before the timeout: do not poll in a busy loop.
        tokio::time::sleep(BREATH).await;
    }
    Ok(answer)
}

type Events<'a> = dyn Stream<Item = Result<Seen, Error>> + 'a;

/// The events that are shown; none if only the result is.
fn events<'a>(
    connection: &'a mut Connection,
    name: &str,
    after: Seq,
    showing: &Showing,
) -> Pin<Box<Events<'a>>> {
    if !showing.follows() {
        return Box::pin(futures_util::stream::empty());
    }
    let query = EventQuery {
        after: after.0,
        ..EventQuery::default()
    };
    Box::pin(Follow::new(name, query).stream(connection))
}

/// Shows the rest of a turn whose end is known before its last events were seen. The answer is complete without them, so an
/// error is not reported.
async fn last_events(
    events: &mut Pin<Box<Events<'_>>>,
    turn: &mut Turn,
    showing: &mut Showing,
    out: &mut Output,
) {
    let deadline = tokio::time::sleep(LAST_EVENTS);
    let mut deadline = pin!(deadline);
    while !turn.is_over() {
        tokio::select! {
            biased;
            seen = events.next() => {
                let Some(Ok(seen)) = seen else { return };
                turn.may_be_over(&seen);
                if showing.seen(&seen, out).is_err() {
                    return;
                }
            }
            () = showing.ticked() => showing.tick(),
            () = &mut deadline => return,
        }
    }
}

/// The turn that answers the prompt.
struct Turn {
    prompt: PromptId,
    id: Option<TurnId>,
    has_ended: bool,
}

impl Turn {
    const fn is_over(&self) -> bool {
        self.has_ended
    }

    /// Whether the prompt may be answered, or wait for the user, after this.
    fn may_be_over(&mut self, seen: &Seen) -> bool {
        let Seen::Event(event) = seen else {
            return false;
        };
        let event: &Event = event;
        match &event.body {
            Body::PromptsTaken(taken) if taken.prompts.contains(&self.prompt) => {
                self.id = event.turn;
                false
            }
            Body::PromptBlocked(blocked) if blocked.prompt == self.prompt => {
                self.id = event.turn;
                false
            }
            Body::TurnEnded(_) if self.id.is_some() && event.turn == self.id => {
                self.has_ended = true;
                true
            }
            Body::PromptsRemoved(gone) if gone.prompts.contains(&self.prompt) => {
                self.has_ended = true;
                true
            }
            Body::PromptsSetAside(aside) if aside.prompts.contains(&self.prompt) => {
                self.has_ended = true;
                true
            }
            Body::TurnPaused(_)
            | Body::ApprovalRequested(_)
            | Body::AgentFailed(_)
            | Body::AgentStopped(_) => true,
            _ => false,
        }
    }
}

/// Waits until the agent is idle, stopped or failed, or waits for the user. Shows the events after `shown`.
pub async fn idle(
    connection: &mut Connection,
    mut agent: Agent,
    mut shown: Seq,
    showing: &mut Showing,
    out: &mut Output,
) -> Result<Agent, Error> {
    let client = connection.client.clone();
    let name = agent.name.clone();
    let query = EventQuery {
        after: shown.0,
        ..EventQuery::default()
    };
    let mut events = pin!(Follow::new(&name, query).stream(connection));
    let mut looks = tokio::time::interval(LOOK);
    let mut supply = Supply::new(client.clone());
    loop {
        agent = supply.continue_turn(agent).await?;
        let is_settled = is_settled(&agent);
        if is_settled && (shown >= agent.head || !showing.follows()) {
            return Ok(agent);
        }
        let has_workers = agent.children.iter().any(|child| child.outcome.is_none());
        // What happened before the agent settled is still to be shown.
        let deadline = tokio::time::sleep(LAST_EVENTS);
        let mut deadline = pin!(deadline);
        loop {
            tokio::select! {
                biased;
                Some(seen) = events.next() => {
                    let seen = seen?;
                    showing.seen(&seen, out)?;
                    let Seen::Event(event) = &seen else { continue };
                    shown = event.seq;
                    match is_settled {
                        true if shown >= agent.head => return Ok(agent),
                        true => {}
                        false if may_settle(event.kind()) => break,
                        false => {}
                    }
                }
                _ = looks.tick(), if has_workers && !is_settled => break,
                () = &mut deadline, if is_settled => return Ok(agent),
                () = showing.ticked() => showing.tick(),
            }
        }
        agent = client.agent(&name).await?;
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
