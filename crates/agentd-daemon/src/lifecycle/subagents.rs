//! Subagents: spawned for a call, waited for, cancelled, and reported to their parent.
//!
//! Each step is recorded before the next one. The subagent is recorded in the parent's journal before it is created,
//! and its end is recorded there before the subagent's journal records that the parent was told. If the daemon is
//! killed in between, the step is repeated and finds what was already done.
//!
//! Locks are taken from the parent to the child, never the other way.

mod report;

pub use report::{deleted, report};

use super::ops::Asked;
use super::stop;
use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use crate::hooks::session;
use crate::project;
use crate::spawn::blocking;
use agentd_client::api::{Env, Stop};
use agentd_core::event::{OpVerb, SubagentOf, SubagentOutcome};
use agentd_core::hook::{HookInput, HookInvocation};
use agentd_core::id::{AgentId, CallId, ConversationId, InvocationId, PromptId};
use agentd_core::link::{Answer, Question};
use agentd_core::spec::Subagent;
use agentd_core::subagents::{self, Report, SpawnPlan};
use agentd_core::usage::Spent;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::path::Path;

/// Answers a runtime's question about the subagent of one of its calls. None if it cannot be answered now: the runtime
/// asks again on its next connection.
pub async fn answer(handle: &AgentHandle, question: Question) -> Option<Answer> {
    let answered = match question {
        Question::Spawn {
            call,
            kind,
            prompt,
            background,
        } => {
            let parent_link = Order {
                call,
                kind,
                prompt,
                background,
            };
            spawn_subagent(handle, parent_link).await
        }
        Question::Await { call } => match of_call(handle, &call).await {
            Some(child) => ended(handle, child).await,
            None => Ok(Answer::NotThere),
        },
        Question::Cancel { call } => match of_call(handle, &call).await {
            Some(child) => cancel(handle, child).await,
            None => Ok(Answer::NotThere),
        },
    };
    answered
        .inspect_err(|error| tracing::error!(agent = %handle.id, %error, "question not answered"))
        .ok()
}

struct Order {
    call: CallId,
    kind: Option<String>,
    prompt: String,
    background: bool,
}

async fn of_call(handle: &AgentHandle, call: &CallId) -> Option<AgentId> {
    let guard = handle.lock().await;
    let turn = guard.state.turn.as_ref()?.id;
    let (child, _) = guard.state.children.of_call(turn, call)?;
    Some(child)
}

/// The subagent of a call: the recorded one, or a new one.
async fn spawn_subagent(handle: &AgentHandle, order: Order) -> Result<Answer> {
    // Locked to the end, so that concurrent requests for one call spawn one subagent.
    let mut guard = handle.lock().await;
    let Some(turn) = guard.state.turn.as_ref().map(|turn| turn.id) else {
        return Ok(Answer::NotThere);
    };
    let known = guard.state.children.of_call(turn, &order.call);
    let known = known.map(|(agent, child)| (agent, child.clone()));
    let kinds = kinds(&guard).await;
    let (child, plan) = match known {
        Some((_, child)) if child.ended.is_some() => {
            return Ok(Answer::Spawned { name: child.name });
        }
        Some((agent, child)) => match subagents::again(&guard.state, &kinds, &child) {
            Ok(plan) => (agent, plan),
            Err(refused) => return Ok(refuse(&refused)),
        },
        None => {
            if guard.state.ends_turn() {
                return Ok(Answer::NotThere);
            }
            let kind = order.kind.as_deref();
            let mut plan = match subagents::plan_spawn(&guard.state, &kinds, kind) {
                Ok(plan) => plan,
                Err(refused) => return Ok(refuse(&refused)),
            };
            let agent = AgentId::new(clock::new_id());
            if !matches!(handle.daemon.store.find(&plan.name).await, Ok(None)) {
                plan.name = another_name(&plan.name, agent);
            }
            let started = subagents::started(
                agent,
                &plan,
                &order.call,
                order.kind.clone(),
                order.background,
            );
            let current = current(&guard)?;
            guard
                .append_in(Some(turn), vec![(current, started)])
                .await?;
            (agent, plan)
        }
    };
    let kind = order.kind.clone();
    let hook_input = HookInput::subagent_start(&plan.name, kind.as_deref(), order.background);
    make(&guard, child, &plan, order).await?;
    let id = InvocationId::of(hook_input.event, &[child.as_bytes()]);
    let invocation = HookInvocation {
        turn: Some(turn),
        ..HookInvocation::new(id, hook_input)
    };
    handle.tell(invocation);
    Ok(Answer::Spawned { name: plan.name })
}

/// The kinds of subagents that the agent may start, with those of its project that the user has trusted.
async fn kinds(guard: &AgentGuard<'_>) -> BTreeMap<String, Subagent> {
    let spec = guard.state.spec.clone();
    let layout = guard.handle.daemon.layout.clone();
    blocking(move || {
        let of_project = match &spec.cwd {
            Some(cwd) => project::claude::agents(&layout, Path::new(cwd)),
            None => BTreeMap::new(),
        };
        subagents::kinds(&spec, of_project)
    })
    .await
}

fn refuse(refused: &subagents::Refused) -> Answer {
    let why = refused.to_string();
    Answer::Refused { why }
}

fn current(guard: &AgentGuard<'_>) -> Result<ConversationId> {
    let current = guard.state.tree.current();
    current.ok_or_else(|| Error::new(Kind::Conflict, "the agent has no conversation"))
}

/// Another name, because the planned one is taken.
fn another_name(name: &str, agent: AgentId) -> String {
    let id = agent.to_string();
    let end = id.rsplit('-').next().unwrap_or_default();
    let short: String = name.chars().take(48).collect();
    format!("{short}-{end}")
}

/// Creates the subagent's journal, unless it exists.
async fn make(
    parent: &AgentGuard<'_>,
    child: AgentId,
    plan: &SpawnPlan,
    order: Order,
) -> Result<()> {
    if parent.handle.daemon.existing(child).await?.is_some() {
        return Ok(());
    }
    let prompt = PromptId::new(clock::new_id());
    let of = SubagentOf {
        parent: parent.state.id,
        call: order.call,
        prompt,
        background: order.background,
    };
    let conversation = ConversationId::new(clock::new_id());
    let lines = subagents::create(plan, of, &order.prompt, conversation);
    // Without the stored secrets: the subagent gets them from the daemon, for as long as they are stored.
    let brought = parent.handle.daemon.envs.brought(parent.state.id);
    parent.handle.daemon.envs.merge(child, &brought);
    let handle = parent.handle.daemon.new_handle(child).await;
    let mut guard = handle.lock().await;
    if let Err(error) = guard.append(lines).await {
        drop(guard);
        parent.handle.daemon.forget(&handle);
        return Err(error);
    }
    let began_from = parent.state.tree.current();
    session::begins(&mut guard, "startup", began_from).await;
    guard.reconcile();
    Ok(())
}

/// Waits until the parent's journal has the end of the subagent.
async fn ended(handle: &AgentHandle, child: AgentId) -> Result<Answer> {
    let (name, outcome) = handle
        .until(|guard| {
            let known = guard.state.children.get(child)?;
            Some((known.name.clone(), known.ended?.outcome))
        })
        .await;
    // Its answer is in its own journal.
    let (text, error) = loop {
        match answer_of(handle, child).await {
            Ok(answer) => break answer,
            Err(error) if handle.daemon.is_ending() => return Err(error),
            Err(error) if error.kind == Kind::Unavailable => {
                tracing::warn!(agent = %child, %error, "answer of subagent not read");
                // tidy: polls until the journal can be read again
                tokio::time::sleep(report::AGAIN).await;
            }
            Err(error) => {
                tracing::error!(agent = %child, %error, "answer of subagent lost");
                break Default::default();
            }
        }
    };
    Ok(Answer::Ended {
        name,
        outcome,
        text,
        error,
    })
}

/// The answer of a subagent, and its error; empty if it was never created.
async fn answer_of(handle: &AgentHandle, child: AgentId) -> Result<(String, Option<String>)> {
    match handle.daemon.existing(child).await? {
        Some(child) => report::last_words(&child).await,
        None => Ok(Default::default()),
    }
}

/// Ends a subagent in the foreground and returns how it ended.
async fn cancel(handle: &AgentHandle, child: AgentId) -> Result<Answer> {
    end(handle, child, Stop::default()).await?;
    ended(handle, child).await
}

/// Ends a subagent and waits until that is in the parent's journal. Boxed, because ending a subagent ends its own
/// subagents.
fn end<'a>(handle: &'a AgentHandle, child: AgentId, how: Stop) -> BoxFuture<'a, Result<()>> {
    let is_over = move |guard: &AgentGuard<'_>| {
        let known = guard.state.children.get(child);
        known.is_none_or(|known| known.ended.is_some())
    };
    Box::pin(async move {
        if is_over(&handle.lock().await) {
            return Ok(());
        }
        let Some(child_handle) = handle.daemon.existing(child).await? else {
            // The subagent is recorded in the parent's journal, but was never created, and will not be.
            let report = Report {
                outcome: SubagentOutcome::Interrupted,
                spent: Spent::default(),
                text: String::new(),
                error: None,
            };
            return report::note(handle, child, &report).await;
        };
        let asked = Asked::by_daemon(OpVerb::Stop);
        stop::stop(&child_handle, how, &asked).await?;
        handle.until(|guard| is_over(guard).then_some(())).await;
        Ok(())
    })
}

/// Ends all running subagents with their background work, and returns their names.
pub async fn end_all(handle: &AgentHandle) -> Result<Vec<String>> {
    let working: Vec<(AgentId, String)> = {
        let guard = handle.lock().await;
        let running = guard.state.children.running();
        running
            .map(|(agent, child)| (*agent, child.name.clone()))
            .collect()
    };
    let mut names = Vec::new();
    for (child, name) in working {
        let everything = Stop {
            kill_background: true,
            ..Stop::default()
        };
        end(handle, child, everything).await?;
        names.push(name);
    }
    Ok(names)
}

/// Gives the parent's variables to its running subagents that have none. A subagent has none if the daemon and the
/// subagent's process have died but the parent's process has not.
pub async fn merge_env(parent: &AgentGuard<'_>, env: &Env) {
    let working: Vec<AgentId> = {
        let running = parent.state.children.running();
        running.map(|(agent, _)| *agent).collect()
    };
    for agent in working {
        if parent.handle.daemon.envs.has_brought(agent) {
            continue;
        }
        if let Ok(handle) = parent.handle.daemon.handle(agent).await {
            let mut guard = handle.lock().await;
            guard.merge_env(env);
            guard.reconcile();
        }
    }
}
