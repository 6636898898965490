//! Hooks that do not run, and hooks that failed when they last ran.

use super::Finding;
use crate::error::Error;
use crate::render::{count, line_of};
use agentd_client::Client;
use agentd_client::api::{Agent, EventQuery, HookLine, HookState, HooksQuery, List};
use agentd_core::event::{Body, Event, HookOutcome, HookStarted, HookWay};
use agentd_core::hook::HookEvent;
use agentd_core::id::HookId;
use agentd_core::plain::only_plain;
use std::collections::BTreeMap;

/// Agents whose hooks are looked at; the most recently used ones.
const AGENTS: usize = 100;
/// The newest events of an agent in which runs of its hooks are looked for: one page.
const EVENTS: u64 = 500;
/// Characters of a failure that are shown.
const REASON: usize = 200;

pub async fn look(client: &Client) -> Result<Vec<Finding>, Error> {
    let list = List {
        limit: Some(AGENTS),
        ..List::default()
    };
    let mut findings = Vec::new();
    for line in client.agents(&list).await?.agents {
        // It may have been removed meanwhile.
        let Ok(agent) = client.agent(&line.id.to_string()).await else {
            continue;
        };
        findings.extend(of_files(&agent));
        // An agent that was purged meanwhile has no events.
        findings.extend(failing(client, &agent).await.unwrap_or_default());
    }
    Ok(findings)
}

/// Files of hooks that cannot be used.
fn of_files(agent: &Agent) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(why) = &agent.broken_hooks {
        let what = format!("hooks of `{}` do not run: {why}", agent.name);
        findings.push(Finding::warning("hooks", what, "`agentd hooks check`"));
    }
    if let Some(path) = &agent.untrusted_hooks {
        let what = format!(
            "hooks of `{}` are ignored: {path} is not trusted",
            agent.name
        );
        let fix = "read the file, then `agentd trust`";
        findings.push(Finding::warning("hooks", what, fix));
    }
    findings
}

/// Hooks whose last runs failed, as the journal has them. A hook that was changed or removed since is not reported.
async fn failing(client: &Client, agent: &Agent) -> Result<Vec<Finding>, agentd_client::Error> {
    let id = agent.id.to_string();
    let query = HooksQuery {
        agent: Some(id.clone()),
        cwd: None,
    };
    let mut active = client.hooks(&query).await?.hooks;
    active.retain(|hook| hook.state == HookState::Active);
    if active.is_empty() {
        return Ok(Vec::new());
    }
    let recent = EventQuery {
        after: agent.head.0.saturating_sub(EVENTS),
        all: true,
        ..EventQuery::default()
    };
    let (events, _) = client.page(&id, &recent).await?;
    let failures = failures(&events);
    let of_active = failures.iter().filter_map(|((event, handler), failure)| {
        let is_it = |hook: &&HookLine| hook.event == *event && hook.handler == *handler;
        let hook = active.iter().find(is_it)?;
        Some(finding(&agent.name, hook, failure))
    });
    Ok(of_active.collect())
}

/// Failed runs of one hook in a row, up to its last one.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    /// Of the last run.
    why: String,
    times: u64,
    way: HookWay,
}

/// The hooks whose last run failed, by their event and the digest of what they run.
fn failures(events: &[Event]) -> BTreeMap<(HookEvent, String), Failure> {
    let mut running: BTreeMap<HookId, &HookStarted> = BTreeMap::new();
    let mut warnings: BTreeMap<HookId, &str> = BTreeMap::new();
    let mut failures: BTreeMap<(HookEvent, String), Failure> = BTreeMap::new();
    for event in events {
        match &event.body {
            Body::HookStarted(started) => {
                running.insert(started.hook, started);
            }
            Body::HookOutput(output) => {
                if let Some(warning) = &output.answer.warning {
                    warnings.insert(output.hook, warning);
                }
            }
            Body::HookEnded(ended) => {
                let Some(started) = running.remove(&ended.hook) else {
                    continue;
                };
                let key = (started.event, started.handler.clone());
                let warning = warnings.remove(&ended.hook);
                match warning.or(ended.timed_out.then_some("the hook timed out")) {
                    Some(why) => {
                        let before = failures.get(&key).map_or(0, |failure| failure.times);
                        let failure = Failure {
                            why: why.to_owned(),
                            times: before + 1,
                            way: started.way,
                        };
                        failures.insert(key, failure);
                    }
                    None if ended.outcome == HookOutcome::Ran => {
                        failures.remove(&key);
                    }
                    // It was cut off by the end of the daemon or of the turn.
                    None => {}
                }
            }
            _ => {}
        }
    }
    failures
}

fn finding(agent: &str, hook: &HookLine, failure: &Failure) -> Finding {
    let event = hook.event;
    // An address may contain a token.
    let run = match failure.way {
        HookWay::Command => format!(" ({})", line_of(&only_plain(&hook.run))),
        HookWay::Http => String::new(),
    };
    let why = only_plain(failure.why.lines().next().unwrap_or_default());
    let why: String = why.chars().take(REASON).collect();
    let times = match failure.times {
        1 => "in its last run".to_owned(),
        times => format!("in its last {}", count(times, "run")),
    };
    let what = format!("a {event} hook of `{agent}`{run} failed {times}: {why}");
    let fix = format!("correct it, then try it: `agentd hooks test {event} --agent {agent}`");
    Finding::warning("hooks", what, fix)
}
