//! Agents that were imported and that the user has not released: what they contain, and what they refuse.

use crate::daemon::{AgentGuard, AgentHandle, Daemon};
use crate::error::{Error, Kind, Result};
use crate::view;
use agentd_client::api::{AgentRef, Held, HeldPrompt, HeldSettings, Release};
use agentd_core::event::{BeginSource, Body};
use agentd_core::hook::Config;
use agentd_core::id::{AgentId, PromptId, Seq};
use agentd_core::release::{self, parts};
use agentd_core::spec::{AgentSpec, Decision};
use agentd_core::state::{self, AgentState, Queued};
use agentd_store::ReadQuery;

/// How many prompts are shown, and how many characters of each.
const PROMPTS: usize = 20;
const WORDS: usize = 200;
/// How many events, from the one that accepted a prompt, are searched for its text.
const NEAR: usize = 8;
/// The most events that an import appends to a journal. One of them names the origin.
const ADDED: u64 = 8;

/// The events of a release, for one append. Refused if the agent has changed since the user saw it.
pub fn release(guard: &AgentGuard<'_>, ask: Option<&Release>) -> Result<Vec<Body>> {
    let ask = ask.ok_or_else(|| guard.held())?;
    let head = guard.state.head;
    if ask.head.is_some_and(|seen| seen != head) {
        let what = "the agent has changed since you looked at it";
        return Err(Error::new(Kind::Conflict, what).next("review it again, then start it"));
    }
    Ok(release::release(&guard.state, &ask.keep))
}

/// What a held agent contains.
pub async fn contents(handle: &AgentHandle) -> Result<Held> {
    let guard = handle.lock().await;
    let state = &guard.state;
    let Some(held) = state.held().copied() else {
        let what = format!("`{}` is not held", state.name);
        return Err(Error::new(Kind::Conflict, what));
    };
    let waiting: Vec<Queued> = release::queue(state).cloned().collect();
    let mut queue = Vec::new();
    for queued in waiting.iter().take(PROMPTS) {
        queue.push(HeldPrompt {
            prompt: queued.prompt,
            at: queued.at,
            text: words(&handle.daemon, handle.id, queued.prompt, queued.seq).await?,
        });
    }
    let from = origin(&handle.daemon, state, &held).await?;
    let turns = state.tree.iter().map(|known| u64::from(known.turns));
    let contents = Held {
        agent: AgentRef {
            id: handle.id,
            name: Some(state.name.clone()),
        },
        reason: held.reason,
        since: held.since,
        from: None,
        head: state.head,
        created_at: state.created_at,
        conversations: state.tree.len() as u64,
        turns: turns.sum(),
        queued: waiting.len() as u64,
        queue,
        turn: state.turn.as_ref().map(|turn| turn.id),
        approvals: view::approvals::waiting(&guard, None).await,
        tasks: state.tasks.running().len() as u64,
        settings: settings(&state.spec),
        drops: parts(state),
    };
    drop(guard);
    Ok(Held {
        from: match from {
            Some(agent) => Some(handle.daemon.reference(agent).await),
            None => None,
        },
        ..contents
    })
}

fn settings(spec: &AgentSpec) -> HeldSettings {
    let allows = spec.permissions.iter();
    let allows = allows.filter(|rule| rule.decision == Decision::Allow);
    HeldSettings {
        provider: spec.provider.clone(),
        model: spec.model.clone(),
        cwd: spec.cwd.clone(),
        runtime: spec.runtime,
        command: spec.command.clone(),
        tools: spec.tools.clone(),
        allows: allows.cloned().collect(),
        approval: spec.approval,
        sandbox: spec.sandbox,
        network: spec.network.clone(),
        writable: spec.writable.clone(),
        readable: spec.readable.clone(),
        pass: spec.pass.clone(),
        env: spec.env.keys().cloned().collect(),
        pass_env: spec.pass_env.clone(),
        hooks: hooks(spec),
        mcp: spec.mcp.clone(),
    }
}

fn hooks(spec: &AgentSpec) -> Vec<String> {
    let config = Config::of_spec(&spec.hooks);
    let groups = config.groups.iter();
    let lines = groups.flat_map(|group| {
        let handlers = group.handlers.iter();
        handlers.map(|handler| format!("{}: {}", group.event, handler.run.shown()))
    });
    let mut lines: Vec<String> = lines.collect();
    if lines.is_empty() && !spec.hooks.is_null() {
        lines.push("hooks that cannot be read".to_owned());
    }
    lines
}

/// The beginning of a prompt; none if it was purged.
async fn words(
    daemon: &Daemon,
    agent: AgentId,
    prompt: PromptId,
    seq: Seq,
) -> Result<Option<String>> {
    let after = Seq(seq.0.saturating_sub(1));
    let page = daemon
        .store
        .read(ReadQuery::all(agent, after, NEAR))
        .await?;
    let is_it = |body: &&Body| matches!(body, Body::Prompt(it) if it.prompt == prompt);
    let mut bodies = page.events.iter().map(|event| &event.body);
    let text = bodies.find(is_it).map(|body| body.words().join(" "));
    Ok(text.map(|text| text.chars().take(WORDS).collect()))
}

/// The agent that the held agent is a copy or a fork of.
async fn origin(
    daemon: &Daemon,
    state: &AgentState,
    held: &state::Held,
) -> Result<Option<AgentId>> {
    let after = Seq(held.seq.0.saturating_sub(ADDED));
    let query = ReadQuery::all(state.id, after, ADDED as usize);
    let page = daemon.store.read(query).await?;
    let copied = page.events.iter().find_map(|event| match &event.body {
        Body::AgentImported(from) => Some(from.agent),
        _ => None,
    });
    let mut first = state.tree.iter();
    let forked = first.find(|known| known.source == BeginSource::Fork);
    Ok(copied.or(forked.and_then(|known| known.from).map(|from| from.agent)))
}
