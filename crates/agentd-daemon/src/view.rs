//! An agent as the API shows it.

pub mod approvals;
pub mod context;
pub mod conversation;
pub mod line;
pub mod schedules;
pub mod subagents;

use crate::confine;
use crate::daemon::{AgentGuard, AgentHandle, Daemon, LastWords};
use crate::error::Result;
use crate::hook_sources;
use crate::services;
use crate::spawn::blocking;
use crate::title;
use agentd_client::api::{Agent, AgentRef, Current, Env, LastTurn, Process, ProcessState, Usage};
use agentd_core::event::{Body, PauseReason, TurnStatus};
use agentd_core::id::{AgentId, Seq};
use agentd_core::spec::AgentSpec;
use agentd_core::state::Phase;
use agentd_core::usage::Spent;
use agentd_store::ReadQuery;
use std::sync::Arc;

/// The error text of a turn whose status is `lost`.
pub const LOST: &str = "its process died repeatedly without making progress; send the prompt again, or \
                        reset the agent";

/// How many events back the reason of a failure is searched for.
const BACK: u64 = 200;

pub fn usage(spent: &Spent) -> Usage {
    let used = spent.usage;
    Usage {
        input_tokens: used.input_tokens + used.cache_read_tokens + used.cache_write_tokens,
        output_tokens: used.output_tokens,
        cost_usd: (spent.unpriced == 0).then_some(spent.cost.0 as f64 / 1e6),
    }
}

fn process(guard: &AgentGuard<'_>) -> Process {
    let identity = guard.process.as_ref().and_then(|it| it.identity);
    let is_adopted = guard.process.as_ref().is_some_and(|it| it.is_adopted);
    let Some(identity) = identity else {
        // A process that is about to be started has no identity yet.
        let is_replaced = guard.process.is_some() && guard.starts.has_died();
        let is_down = guard.state.stopped || guard.state.failed.is_some() || is_replaced;
        return Process {
            state: match is_down {
                true => ProcessState::Down,
                false => ProcessState::Asleep,
            },
            pid: None,
        };
    };
    Process {
        state: match is_adopted {
            true => ProcessState::Adopted,
            false => ProcessState::Up,
        },
        pid: Some(identity.pid),
    }
}

/// An agent that has just got its name; `displaced` is the agent that had it as an alias.
pub fn named(agent: Agent, displaced: Option<AgentRef>) -> Agent {
    let displaced = displaced.filter(|other| other.id != agent.id);
    Agent { displaced, ..agent }
}

/// The agent without the fields that need its text: for a new fork, whose text is its parent's.
pub async fn without_words(handle: &AgentHandle) -> Agent {
    of(&handle.lock().await)
}

pub async fn agent(handle: &AgentHandle) -> Result<Agent> {
    let (mut agent, wants_reason, known, spec, env) = {
        let guard = handle.lock().await;
        let mut agent = of(&guard);
        if let (None, Some(current)) = (&agent.title, guard.state.tree.current()) {
            agent.title = title::of(&handle.daemon, &guard.state, current).await;
        }
        (
            agent,
            reason_of(&guard),
            known_words(&guard),
            guard.state.spec.clone(),
            Arc::clone(&guard.env),
        )
    };
    (agent.missing_env, agent.missing_services) = missing(spec.clone(), env).await;
    agent.no_tools = no_tools(&handle.daemon, handle.id).await;
    let sources = hook_sources::of_agent(&handle.daemon, &spec).await;
    agent.broken_hooks = sources.broken().or_else(|| sources.ignored());
    agent.untrusted_hooks = sources.untrusted();
    let words = last_words(handle, known).await?;
    agent.summary = summary(&words);
    agent.plan = words.plan;
    agent.parent = subagents::parent(handle).await;
    // An alias that another agent took as its name is left out.
    let aliases = std::mem::take(&mut agent.aliases);
    for alias in aliases {
        let found = handle.daemon.store.find(&alias).await;
        if agent.archived || found.is_ok_and(|holder| holder == Some(handle.id)) {
            agent.aliases.push(alias);
        }
    }
    let held_up = match agent.phase {
        Phase::Running => subagents::held_up(handle).await,
        _ => None,
    };
    if let Some(held_up) = &held_up {
        // The agent's turn waits for a subagent, and the subagent waits for the user.
        agent.phase = held_up.phase;
    }
    if !agent.held {
        agent.approvals = approvals::waiting(&handle.lock().await, None).await;
    }
    let below = subagents::below(handle).await;
    let lacking = subagents::waiting_for_keys(&below).await;
    agent.missing_keys.extend(lacking);
    let asked = subagents::approvals(&below).await;
    let asking = asked
        .iter()
        .find_map(|approval| approval.agent.as_ref()?.name.clone());
    agent.approvals.extend(asked);
    agent.error = match wants_reason {
        Reason::None => match (&held_up, asking) {
            (Some(held_up), _) if held_up.phase == Phase::Waiting => {
                Some(subagents::reason(&handle.daemon, held_up).await)
            }
            (_, asking) => asking.map(|asking| {
                let name = &agent.name;
                format!(
                    "a call of its subagent {asking} is waiting for your approval: \
                     `agentd approve {name}`, or `agentd deny {name}`"
                )
            }),
        },
        Reason::Text(text) => Some(text),
        Reason::Noted => last_note(&handle.daemon, handle.id, agent.head).await,
    };
    Ok(agent)
}

/// Why no tool of the agent starts.
async fn no_tools(daemon: &Daemon, agent: AgentId) -> Option<String> {
    let dir = daemon.layout.agent_dir(agent);
    blocking(move || confine::why_no_tool_starts(&dir)).await
}

/// What the agent's tools should have by its settings and lack: variables, and services with the reason.
async fn missing(spec: Box<AgentSpec>, env: Arc<Env>) -> (Vec<String>, Vec<String>) {
    if spec.pass_env.is_empty() && spec.pass.is_empty() {
        return (Vec::new(), Vec::new());
    }
    blocking(move || {
        let services = services::find(&spec, &env).into_iter();
        let services = services.filter_map(|(pass, service)| {
            let why = service.missing?;
            Some(format!("{}: {why}", pass.name()))
        });
        let lacking = services::lacking(&spec, &env);
        (lacking.variables.into_iter().collect(), services.collect())
    })
    .await
}

/// What the agent has said last, if the daemon remembers it and no event came after it.
fn known_words(guard: &AgentGuard<'_>) -> Option<LastWords> {
    let known = guard.words.as_ref();
    let known = known.filter(|(head, _)| *head == guard.state.head);
    known.map(|(_, words)| words.clone())
}

/// What the agent has said last. `known` is what the daemon remembers of it.
async fn last_words(handle: &AgentHandle, known: Option<LastWords>) -> Result<LastWords> {
    if let Some(words) = known {
        return Ok(words);
    }
    let loaded = handle.daemon.store.load(handle.id).await?;
    let words = LastWords::of(&loaded.window);
    handle.lock().await.words = Some((loaded.state.head, words.clone()));
    Ok(words)
}

/// The beginning of the last answer.
fn summary(words: &LastWords) -> Option<String> {
    Some(words.summary.clone()).filter(|text| !text.is_empty())
}

enum Reason {
    None,
    Text(String),
    Noted,
}

fn reason_of(guard: &AgentGuard<'_>) -> Reason {
    let paused = guard.state.turn.as_ref().and_then(|turn| turn.paused);
    if guard.state.is_held() {
        let why = "it was imported and is held: `agentd start` shows what it contains";
        return Reason::Text(why.to_owned());
    }
    if let Some(wait) = guard.handle.daemon.admission.waits(guard.handle.id) {
        return Reason::Text(wait.to_string());
    }
    match (guard.state.phase(), paused) {
        (Phase::Waiting, Some(PauseReason::Crash)) => Reason::Text(format!(
            "its process died in the middle of a turn; continue it with `agentd continue {}`",
            guard.state.name
        )),
        (Phase::Failed, _) if is_lost(guard) => Reason::Text(LOST.to_owned()),
        (Phase::Waiting | Phase::Failed, _) => Reason::Noted,
        (Phase::AwaitingApproval, _) => Reason::Text(format!(
            "a call is waiting for your approval: `agentd approve {0}`, or `agentd deny {0}`",
            guard.state.name
        )),
        _ => Reason::None,
    }
}

/// Whether the last turn was given up, while the agent itself has not failed.
fn is_lost(guard: &AgentGuard<'_>) -> bool {
    let last = guard.state.last_turn_here();
    let is_lost = last.is_some_and(|turn| turn.status == TurnStatus::Lost);
    is_lost && guard.state.failed.is_none()
}

pub async fn last_note(daemon: &Daemon, agent: AgentId, head: Seq) -> Option<String> {
    let after = Seq(head.0.saturating_sub(BACK));
    let page = daemon
        .store
        .read(ReadQuery::all(agent, after, BACK as usize));
    let events = page.await.ok()?.events.into_iter().rev();
    let mut notes = events.filter_map(|event| match event.body {
        Body::Note(note) => Some(note.text),
        _ => None,
    });
    notes.next()
}

fn of(guard: &AgentGuard<'_>) -> Agent {
    let state = &guard.state;
    let current = state.tree.current_conversation();
    let last = state.last_turn_here();
    Agent {
        id: state.id,
        name: state.name.clone(),
        aliases: state.aliases.clone(),
        mode: state.mode,
        phase: state.phase(),
        process: process(guard),
        generation: state.generation(),
        head: state.head,
        conversation: current.map(|current| Current {
            id: current.id,
            ordinal: current.ordinal,
            parent: current.parent,
            turns: current.turns,
            usage: usage(&current.spent),
        }),
        title: state.spec.title.clone(),
        model: state.spec.model.clone(),
        provider: state.spec.provider.clone(),
        cwd: state.spec.cwd.clone(),
        usage: usage(&state.spending.lifetime),
        created_at: state.created_at,
        updated_at: state.used_at,
        started_at: state.turn.as_ref().map(|turn| turn.started_at),
        completed_at: last.map(|turn| turn.ended_at),
        turn: state.turn.as_ref().map(|turn| turn.id),
        last_turn: last.map(|turn| LastTurn {
            id: turn.id,
            conversation: turn.conversation,
            status: turn.status,
            limit: turn.limit,
        }),
        summary: None,
        plan: None,
        error: None,
        queued: state.inbox.waiting().len() as u64,
        approvals: Vec::new(),
        tasks: state.tasks.running().map(|(id, _)| *id).collect(),
        schedules: schedules::all(state),
        parent: None,
        children: subagents::children(state),
        archived: state.archived,
        stopped: state.stopped,
        held: state.is_held(),
        paused: state.turn.as_ref().and_then(|turn| turn.paused),
        untrusted_hooks: None,
        broken_hooks: None,
        no_tools: None,
        missing_env: Vec::new(),
        missing_services: Vec::new(),
        missing_keys: subagents::waiting_for_key(guard).into_iter().collect(),
        displaced: None,
    }
}
