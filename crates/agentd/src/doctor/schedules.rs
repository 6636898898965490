//! Schedules that cannot run, or not when they are due.

use super::keys::Keys;
use super::{Finding, Level};
use crate::connect;
use crate::error::Error;
use crate::render::named;
use agentd_client::Client;
use agentd_client::api::{Agent, Daemon, Schedule};
use agentd_core::event::PausedBecause;
use agentd_core::id::AgentId;
use agentd_core::state::ScheduleWaits;
use agentd_daemon::layout::Layout;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub async fn look(
    layout: &Layout,
    daemon: Option<&Daemon>,
    keys: Option<&Keys>,
) -> Result<Vec<Finding>, Error> {
    if daemon.is_none() {
        return Ok(Vec::new());
    }
    let client = connect::client_at(layout.home());
    let all = client.all_schedules().await?.schedules;
    let unable = unable(&client, &all, keys).await;
    let find = |schedule: &Schedule| {
        let by_agent = || of_agent(schedule, unable.get(&schedule.agent.id)?);
        of(schedule).or_else(by_agent)
    };
    let mut findings: Vec<Finding> = all.iter().filter_map(find).collect();
    if findings.is_empty() && !all.is_empty() {
        let what = format!("{} can run when they are due", all.len());
        findings.push(Finding::ok("schedules", what));
    }
    Ok(findings)
}

/// Why the turns of an agent fail, and what to do.
struct Unable {
    /// A warning if they may not fail.
    level: Level,
    why: String,
    fix: String,
}

/// The agents with schedules whose turns cannot run.
async fn unable(
    client: &Client,
    schedules: &[Schedule],
    keys: Option<&Keys>,
) -> BTreeMap<AgentId, Unable> {
    let agents: BTreeSet<AgentId> = schedules.iter().map(|it| it.agent.id).collect();
    let mut unable = BTreeMap::new();
    for id in agents {
        // It may have been removed meanwhile.
        let Ok(agent) = client.agent(&id.to_string()).await else {
            continue;
        };
        if let Some(found) = without_directory(&agent).or_else(|| without_key(&agent, keys?)) {
            unable.insert(id, found);
        }
    }
    unable
}

fn without_directory(agent: &Agent) -> Option<Unable> {
    let cwd = agent.cwd.as_ref()?;
    (!Path::new(cwd).is_dir()).then(|| Unable {
        level: Level::Problem,
        why: format!("its working directory {cwd} does not exist"),
        fix: format!("create it, or `agentd set {} cwd=DIR`", agent.name),
    })
}

fn without_key(agent: &Agent, keys: &Keys) -> Option<Unable> {
    let provider = agent.provider.as_deref()?;
    let why = keys.broken(provider)?;
    Some(Unable {
        // The daemon may have been started with the same variable, or a command may have sent it.
        level: match keys.has_variable(provider) {
            true => Level::Warning,
            false => Level::Problem,
        },
        why: why.to_owned(),
        fix: "correct the provider in config.toml, or `agentd secret set NAME`".to_owned(),
    })
}

/// A schedule that is not paused, and whose agent cannot run a turn. A reset alone is no turn.
fn of_agent(schedule: &Schedule, unable: &Unable) -> Option<Finding> {
    if schedule.paused.is_some() || !schedule.action.has_prompt() {
        return None;
    }
    let (agent, name) = (named(&schedule.agent), &schedule.name);
    let (why, fix) = (&unable.why, unable.fix.clone());
    Some(match unable.level {
        Level::Problem => {
            let what = format!("`{name}` of `{agent}` cannot run: {why}");
            Finding::problem("schedules", what, fix)
        }
        Level::Ok | Level::Warning => {
            let what = format!("`{name}` of `{agent}` may not run by itself: {why}");
            Finding::warning("schedules", what, fix)
        }
    })
}

fn of(schedule: &Schedule) -> Option<Finding> {
    let (agent, name) = (named(&schedule.agent), &schedule.name);
    let about = |why: &str| format!("`{name}` of `{agent}` {why}");
    let resume = format!("`agentd schedule resume {agent} {name}`");
    let replace = format!("`agentd schedule rm {agent} {name}`, and add it again");
    let start = format!("`agentd start {agent}`");
    let is_lost = schedule.action.has_prompt() && schedule.prompt.is_none();
    if is_lost && schedule.paused != Some(PausedBecause::User) {
        let what = about("cannot run: its prompt cannot be read");
        return Some(Finding::problem("schedules", what, replace));
    }
    let (why, fix) = match (schedule.paused, schedule.waits) {
        (Some(PausedBecause::CannotRun), _) => {
            let what =
                about("cannot run: its due times cannot be computed, or its prompt was missing");
            return Some(Finding::problem("schedules", what, replace));
        }
        (Some(PausedBecause::Imported), _) => (
            "is paused, because it was imported",
            format!("read it first: `agentd schedule list {agent} --json`; then {resume}"),
        ),
        (Some(PausedBecause::Archived), _) => ("is paused, because the agent was removed", resume),
        (None, Some(ScheduleWaits::Stopped)) => ("waits: the agent is stopped", start),
        (None, Some(ScheduleWaits::Failed)) => ("waits: the agent has failed", start),
        (None, Some(ScheduleWaits::QueueFull)) => (
            "waits: the queue is full",
            format!("`agentd queue {agent}`"),
        ),
        // The user paused it, or it runs after the turn.
        (Some(PausedBecause::User), _) | (None, Some(ScheduleWaits::Turn) | None) => return None,
    };
    Some(Finding::warning("schedules", about(why), fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::event::ScheduleAction;
    use serde_json::json;

    fn schedule(paused: Option<&str>, waits: Option<&str>, prompt: Option<&str>) -> Schedule {
        let schedule = json!({
            "agent": {"id": "0198c5a2-7d1e-7000-8000-000000000001", "name": "coder"},
            "id": "0198c5a2-7d1e-7000-8000-000000000002",
            "name": "nightly",
            "when": {"type": "every", "every_ms": 3_600_000},
            "action": "prompt",
            "prompt": prompt,
            "missed": "once",
            "overlap": "skip",
            "added_at": "2026-01-31T09:30:00.000Z",
            "paused": paused,
            "waits": waits,
            "next": [],
        });
        serde_json::from_value(schedule).unwrap()
    }

    #[test]
    fn what_cannot_run_is_a_problem_and_each_finding_has_a_fix() {
        let prompt = Some("look");
        for (paused, waits, prompt, level, fix) in [
            (
                Some("cannot_run"),
                None,
                prompt,
                Level::Problem,
                "add it again",
            ),
            (None, None, None, Level::Problem, "add it again"),
            (
                Some("imported"),
                None,
                prompt,
                Level::Warning,
                "read it first: `agentd schedule list coder --json`; then `agentd schedule resume",
            ),
            (
                Some("archived"),
                None,
                prompt,
                Level::Warning,
                "resume coder nightly",
            ),
            (None, Some("stopped"), prompt, Level::Warning, "start coder"),
            (None, Some("failed"), prompt, Level::Warning, "start coder"),
            (
                None,
                Some("queue_full"),
                prompt,
                Level::Warning,
                "queue coder",
            ),
        ] {
            let found = of(&schedule(paused, waits, prompt)).unwrap();
            assert_eq!(found.level, level, "{found:?}");
            assert!(found.what.contains("`nightly` of `coder`"), "{found:?}");
            assert!(found.fix.as_ref().unwrap().contains(fix), "{found:?}");
        }
        for (paused, waits) in [(None, None), (Some("user"), None), (None, Some("turn"))] {
            assert!(of(&schedule(paused, waits, prompt)).is_none(), "{paused:?}");
        }
    }

    /// Regression: a reset, which needs no key and no directory, was said not to run.
    #[test]
    fn only_a_schedule_with_a_prompt_needs_an_agent_that_can_run_a_turn() {
        let unable = |level| Unable {
            level,
            why: "it has no key".to_owned(),
            fix: "correct it".to_owned(),
        };
        let mut one = schedule(None, None, Some("look"));
        for level in [Level::Problem, Level::Warning] {
            let found = of_agent(&one, &unable(level)).unwrap();
            assert_eq!(found.level, level, "{found:?}");
            assert!(found.what.contains("it has no key"), "{found:?}");
        }
        one.action = ScheduleAction::Fresh;
        assert!(of_agent(&one, &unable(Level::Problem)).is_some());
        one.action = ScheduleAction::Reset;
        assert!(of_agent(&one, &unable(Level::Problem)).is_none());
    }
}
