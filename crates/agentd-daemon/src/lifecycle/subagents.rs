//! Agents that agents start: hired for a call, waited for, dismissed, and reported on.
//!
//! Each step is on record before the next: the parent's journal has the subagent before there is anything of
//! it, and how it ended before its own journal says that the parent knows. So whoever is killed in between,
//! the step is made again and finds what was done.
//!
//! Locks are taken from the parent to the child, never the other way.

use super::{archive, stop};
use crate::answer;
use crate::clock;
use crate::daemon::Daemon;
use crate::desk::{Desk, Guard};
use crate::problem::Result;
use agentd_client::api::{Archive, Stop};
use agentd_client::{Kind, Problem};
use agentd_core::event::{Body, ParentTold, SpecSet, SubagentOf, SubagentOutcome};
use agentd_core::id::{AgentId, CallId, ConversationId, PromptId};
use agentd_core::kin::{self, Hire, Report};
use agentd_core::link::{Answer, Question};
use agentd_core::state::Errand;
use agentd_core::usage::Spent;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// Until a report that could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(1);

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
            let is_called_off = guard.state.stopped || guard.state.resets.under_way().is_some();
            if is_called_off {
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
    make(daemon, &guard, child, &hire, order).await?;
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
    daemon.bring(child, &parent.env);
    let desk = daemon.new_desk(child).await;
    let mut guard = desk.lock().await;
    if let Err(problem) = guard.append(lines).await {
        drop(guard);
        daemon.forget(child).await;
        return Err(problem);
    }
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
        Ok(child) => last_words(daemon, &child).await,
        Err(_) => (String::new(), None),
    };
    Ok(Answer::Ended {
        name,
        outcome,
        text,
        error,
    })
}

async fn last_words(daemon: &Daemon, desk: &Desk) -> (String, Option<String>) {
    let prompt = {
        let guard = desk.lock().await;
        guard.state.errand.as_ref().map(|errand| errand.prompt)
    };
    let Some(prompt) = prompt else {
        return Default::default();
    };
    match answer::answer(daemon, desk, prompt, Duration::ZERO).await {
        Ok(answer) => (answer.text, answer.error),
        // Its words were purged.
        Err(_) => Default::default(),
    }
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
            return note(daemon, desk, child, &report).await;
        };
        stop::stop(daemon, &child_desk, how).await?;
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
                archive::archive(daemon, &child, Archive::default()).await?;
            }
        }
        Ok(())
    })
}

/// A subagent is being removed: its parent is told before anything else happens to it.
pub async fn deleted(daemon: &Arc<Daemon>, desk: &Arc<Desk>) -> Result<()> {
    let errand = desk.lock().await.state.errand.clone();
    match errand {
        Some(errand) if errand.outcome.is_none() => {
            let report = report_of(daemon, desk, SubagentOutcome::Deleted).await?;
            tell(daemon, desk.id, &errand, &report).await
        }
        _ => Ok(()),
    }
}

/// Tells the parent of a subagent that is over, once, however often it is tried.
pub async fn report(daemon: Arc<Daemon>, desk: Arc<Desk>) {
    while let Err(problem) = try_report(&daemon, &desk).await {
        tracing::error!(agent = %desk.id, %problem, "its parent is not told");
        if daemon.is_ending() {
            break;
        }
        // tidy: polls until the journal can be written again
        tokio::time::sleep(AGAIN).await;
    }
    let mut guard = desk.lock().await;
    guard.reporting = false;
    daemon.mind(&desk, &mut guard);
}

async fn try_report(daemon: &Arc<Daemon>, desk: &Arc<Desk>) -> Result<()> {
    let errand = {
        let guard = desk.lock().await;
        let errand = guard.state.errand.clone();
        errand.filter(|_| guard.state.owes_report())
    };
    let Some(errand) = errand else { return Ok(()) };
    if let Some(outcome) = errand.outcome {
        let report = report_of(daemon, desk, outcome).await?;
        tell(daemon, desk.id, &errand, &report).await?;
    }
    desk.lock().await.note([ParentTold {}.into()]).await?;
    Ok(())
}

/// How it ended, and what it has spent; its lease is over with that.
async fn report_of(daemon: &Daemon, desk: &Desk, outcome: SubagentOutcome) -> Result<Report> {
    let (text, error) = last_words(daemon, desk).await;
    let mut guard = desk.lock().await;
    if let Some(spec) = kin::closed(&guard.state) {
        let spec = Box::new(spec);
        guard.note([SpecSet { spec }.into()]).await?;
    }
    Ok(Report {
        outcome,
        spent: guard.state.subtree_spent(),
        text,
        error: error.filter(|_| outcome != SubagentOutcome::Completed),
    })
}

async fn tell(
    daemon: &Arc<Daemon>,
    child: AgentId,
    errand: &Errand,
    report: &Report,
) -> Result<()> {
    let parent = match daemon.desk(errand.parent).await {
        Ok(parent) => parent,
        // It was imported without its parent: there is nobody to tell.
        Err(problem) if problem.kind == Kind::NotFound => return Ok(()),
        Err(problem) => return Err(problem),
    };
    note(daemon, &parent, child, report).await
}

async fn note(
    daemon: &Arc<Daemon>,
    parent: &Arc<Desk>,
    child: AgentId,
    report: &Report,
) -> Result<()> {
    let mut guard = parent.lock().await;
    let prompt = PromptId::new(clock::new_id());
    let bodies: Option<Vec<Body>> = kin::ended(&guard.state, child, report, prompt);
    if let Some(bodies) = bodies {
        guard.note(bodies).await?;
        daemon.mind(parent, &mut guard);
    }
    Ok(())
}
