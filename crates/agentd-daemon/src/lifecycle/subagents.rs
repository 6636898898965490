//! Agents that agents start: hired for a call, waited for, dismissed, and reported on.
//!
//! Each step is on record before the next: the parent's journal has the subagent before there is anything of
//! it, and how it ended before its own journal says that the parent knows. So whoever is killed in between,
//! the step is made again and finds what was done.
//!
//! Locks are taken from the parent to the child, never the other way.

mod report;

pub use report::{deleted, report};

use super::ops::Asked;
use super::{archive, stop};
use crate::clock;
use crate::daemon::Daemon;
use crate::desk::{Desk, Guard};
use crate::hooks::session;
use crate::problem::Result;
use agentd_client::api::{Archive, Env, Stop};
use agentd_client::{Kind, Problem};
use agentd_core::event::{OpVerb, SubagentOf, SubagentOutcome};
use agentd_core::hook::{Fire, Occasion};
use agentd_core::id::{AgentId, CallId, ConversationId, FireId, PromptId};
use agentd_core::kin::{self, Hire, Report};
use agentd_core::link::{Answer, Question};
use agentd_core::usage::Spent;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// Answers what a process asks about the subagent of one of its calls. None where it cannot be answered now:
/// the process asks again on its next connection.
pub async fn answer(daemon: &Arc<Daemon>, desk: &Arc<Desk>, question: Question) -> Option<Answer> {
    let answered = match question {
        Question::Hire {
            call,
            kind,
            prompt,
            background,
        } => {
            let errand = Order {
                call,
                kind,
                prompt,
                background,
            };
            hire(daemon, desk, errand).await
        }
        Question::Await { call } => match of_call(desk, &call).await {
            Some(child) => ended(daemon, desk, child).await,
            None => Ok(Answer::NotThere),
        },
        Question::Dismiss { call } => match of_call(desk, &call).await {
            Some(child) => dismiss(daemon, desk, child).await,
            None => Ok(Answer::NotThere),
        },
    };
    answered
        .inspect_err(|problem| tracing::error!(agent = %desk.id, %problem, "a subagent"))
        .ok()
}

struct Order {
    call: CallId,
    kind: Option<String>,
    prompt: String,
    background: bool,
}

async fn of_call(desk: &Desk, call: &CallId) -> Option<AgentId> {
    let guard = desk.lock().await;
    let turn = guard.state.turn.as_ref()?.id;
    let (child, _) = guard.state.children.of_call(turn, call)?;
    Some(child)
}

/// The subagent of a call: the one that is on record, or a new one.
async fn hire(daemon: &Arc<Daemon>, desk: &Arc<Desk>, order: Order) -> Result<Answer> {
    // Held to the end: asked twice at the same time, there is still one.
    let mut guard = desk.lock().await;
    let Some(turn) = guard.state.turn.as_ref().map(|turn| turn.id) else {
        return Ok(Answer::NotThere);
    };
    let known = guard.state.children.of_call(turn, &order.call);
    let known = known.map(|(agent, child)| (agent, child.clone()));
    let (child, hire) = match known {
        Some((_, child)) if child.ended.is_some() => return Ok(Answer::Hired { name: child.name }),
        Some((agent, child)) => match kin::again(&guard.state, &child) {
            Ok(hire) => (agent, hire),
            Err(refused) => return Ok(refuse(&refused)),
        },
        None => {
            if guard.state.ends_turn() {
                return Ok(Answer::NotThere);
            }
            let mut hire = match kin::hire(&guard.state, order.kind.as_deref()) {
                Ok(hire) => hire,
                Err(refused) => return Ok(refuse(&refused)),
            };
            let agent = AgentId::new(clock::new_id());
            if !matches!(daemon.store.find(&hire.name).await, Ok(None)) {
                hire.name = another_name(&hire.name, agent);
            }
            let started = kin::started(
                agent,
                &hire,
                &order.call,
                order.kind.clone(),
                order.background,
            );
            let current = current(&guard)?;
            guard
                .append_in(Some(turn), vec![(current, started)])
                .await?;
            (agent, hire)
        }
    };
    let kind = order.kind.clone();
    let occasion = Occasion::subagent_start(&hire.name, kind.as_deref(), order.background);
    make(daemon, &guard, child, &hire, order).await?;
    let id = FireId::of(occasion.event, &[child.as_bytes()]);
    let fire = Fire {
        turn: Some(turn),
        ..Fire::new(id, occasion)
    };
    daemon.tell(desk, fire);
    Ok(Answer::Hired { name: hire.name })
}

fn refuse(refused: &kin::Refused) -> Answer {
    let why = refused.to_string();
    Answer::Refused { why }
}

fn current(guard: &Guard<'_>) -> Result<ConversationId> {
    let current = guard.state.tree.current();
    current.ok_or_else(|| Problem::new(Kind::Conflict, "the agent has no conversation"))
}

/// Somebody else has the name already.
fn another_name(name: &str, agent: AgentId) -> String {
    let id = agent.to_string();
    let end = id.rsplit('-').next().unwrap_or_default();
    let short: String = name.chars().take(48).collect();
    format!("{short}-{end}")
}

/// Its own journal, unless it has one.
async fn make(
    daemon: &Arc<Daemon>,
    parent: &Guard<'_>,
    child: AgentId,
    hire: &Hire,
    order: Order,
) -> Result<()> {
    if daemon.desk(child).await.is_ok() {
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
    let lines = kin::create(hire, of, &order.prompt, conversation);
    // Without stored secrets: what the parent has of those, it has as long as they are stored.
    let brought = daemon.envs.brought(parent.state.id);
    daemon.envs.bring(child, &brought);
    let desk = daemon.new_desk(child).await;
    let mut guard = desk.lock().await;
    if let Err(problem) = guard.append(lines).await {
        drop(guard);
        daemon.forget(child).await;
        return Err(problem);
    }
    let began_from = parent.state.tree.current();
    session::begins(daemon, &desk, &mut guard, "startup", began_from);
    daemon.mind(&desk, &mut guard);
    Ok(())
}

/// Waits until the parent knows how it ended.
async fn ended(daemon: &Arc<Daemon>, desk: &Arc<Desk>, child: AgentId) -> Result<Answer> {
    let (name, outcome) = desk
        .until(|guard| {
            let known = guard.state.children.get(child)?;
            Some((known.name.clone(), known.ended?.outcome))
        })
        .await;
    // What it said is in its own journal, and stays there.
    let (text, error) = match daemon.desk(child).await {
        Ok(child) => report::last_words(daemon, &child).await,
        Err(_) => (String::new(), None),
    };
    Ok(Answer::Ended {
        name,
        outcome,
        text,
        error,
    })
}

/// Ends a subagent in the foreground, and says how it ended.
async fn dismiss(daemon: &Arc<Daemon>, desk: &Arc<Desk>, child: AgentId) -> Result<Answer> {
    end(daemon, desk, child, Stop::default()).await?;
    ended(daemon, desk, child).await
}

/// Ends a subagent, so that its parent knows. A box: who ends a subagent ends its subagents.
fn end<'a>(
    daemon: &'a Arc<Daemon>,
    desk: &'a Arc<Desk>,
    child: AgentId,
    how: Stop,
) -> BoxFuture<'a, Result<()>> {
    let is_over = move |guard: &Guard<'_>| {
        let known = guard.state.children.get(child);
        known.is_none_or(|known| known.ended.is_some())
    };
    Box::pin(async move {
        if is_over(&desk.lock().await) {
            return Ok(());
        }
        let Ok(child_desk) = daemon.desk(child).await else {
            // It was on record, and there is nothing of it: nor will there be.
            let report = Report {
                outcome: SubagentOutcome::Interrupted,
                spent: Spent::default(),
                text: String::new(),
                error: None,
            };
            return report::note(daemon, desk, child, &report).await;
        };
        let asked = Asked::by_daemon(OpVerb::Stop);
        stop::stop(daemon, &child_desk, how, &asked).await?;
        desk.until(|guard| is_over(guard).then_some(())).await;
        Ok(())
    })
}

/// Ends all that work, with all that they have left running; their names.
pub async fn end_all(daemon: &Arc<Daemon>, desk: &Arc<Desk>) -> Result<Vec<String>> {
    let working: Vec<(AgentId, String)> = {
        let guard = desk.lock().await;
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
        end(daemon, desk, child, everything).await?;
        names.push(name);
    }
    Ok(names)
}

/// Puts an agent's subagents away with it, and theirs with them.
pub fn archive_all<'a>(daemon: &'a Arc<Daemon>, desk: &'a Arc<Desk>) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let children: Vec<AgentId> = {
            let guard = desk.lock().await;
            let children = guard.state.children.iter();
            children.map(|(agent, _)| *agent).collect()
        };
        for child in children {
            if let Ok(child) = daemon.desk(child).await {
                let asked = Asked::by_daemon(OpVerb::Archive);
                archive::archive(daemon, &child, Archive::default(), &asked).await?;
            }
        }
        Ok(())
    })
}

/// Those that work for an agent get what it was given, where they have nothing: their process and the daemon
/// may have died, and its own may not.
pub async fn supply(daemon: &Arc<Daemon>, parent: &Guard<'_>, env: &Env) {
    let working: Vec<AgentId> = {
        let running = parent.state.children.running();
        running.map(|(agent, _)| *agent).collect()
    };
    for agent in working {
        if daemon.envs.has_brought(agent) {
            continue;
        }
        if let Ok(desk) = daemon.desk(agent).await {
            let mut guard = desk.lock().await;
            daemon.supply(&mut guard, env);
            daemon.mind(&desk, &mut guard);
        }
    }
}
