//! Agents: leftover directories, processes without a daemon or of another build, leftover cgroups.

use super::{Finding, SafeFix, hooks, tasks};
use crate::connect;
use crate::error::Error;
use agentd_client::api::Daemon;
use agentd_client::{Client, Kind};
use agentd_core::id::AgentId;
use agentd_daemon::layout::Layout;

pub async fn look(layout: &Layout, daemon: Option<&Daemon>) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    findings.extend(cgroups());
    let Some(daemon) = daemon else {
        findings.extend(without_daemon(layout));
        return Ok(findings);
    };
    findings.extend(outdated(daemon));
    let client = connect::client_at(layout.home());
    findings.extend(hooks::look(&client).await?);
    if daemon.read_only.is_none() {
        findings.extend(leftovers(layout, &client).await);
        findings.extend(tasks::look(layout, &client).await?);
    }
    Ok(findings)
}

fn cgroups() -> Option<Finding> {
    let stale = agentd_process::stale_cgroups();
    (stale > 0).then(|| {
        let what = format!("{stale} cgroups of ended tasks are left");
        let fix = "`agentd doctor --fix`, or the next start of the daemon";
        Finding::warning("cgroups", what, fix).fixed_by(SafeFix::RemoveCgroups)
    })
}

/// Processes that no daemon looks after.
fn without_daemon(layout: &Layout) -> Option<Finding> {
    let running = layout.taken_runtime_locks().unwrap_or_default();
    if running.is_empty() {
        return None;
    }
    let pids: Vec<String> = running.iter().map(|(_, it)| it.pid.to_string()).collect();
    let what = format!(
        "agents' processes run without a daemon: {}",
        pids.join(", ")
    );
    let fix = "`agentd daemon start` adopts them";
    Some(Finding::warning("processes", what, fix))
}

/// Processes of another build than the daemon.
fn outdated(daemon: &Daemon) -> Option<Finding> {
    if daemon.outdated == 0 {
        return None;
    }
    let what = format!(
        "agents' processes of another build than the daemon's: {}",
        daemon.outdated
    );
    let fix = "none: each is replaced when its turn has ended; `agentd restart NAME` does it now";
    Some(Finding::warning("processes", what, fix))
}

/// Directories of agents that no longer exist.
async fn leftovers(layout: &Layout, client: &Client) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Before the daemon is asked: the directory of a new agent is created after the agent.
    for agent in directories(layout) {
        let asked = client.agent(&agent.to_string()).await;
        let is_gone = matches!(
            asked,
            Err(agentd_client::Error::Problem(problem)) if problem.kind == Kind::NotFound
        );
        if is_gone && layout.holder(agent).is_ok_and(|holder| holder.is_none()) {
            let dir = layout.agent_dir(agent);
            let what = format!("{} belongs to no agent", dir.display());
            // Not a safe fix: the journal may be an old one that was restored.
            let fix = format!(
                "if the journal has not lost this agent by mistake: rm -r {}",
                dir.display()
            );
            findings.push(Finding::warning("directories", what, fix));
        }
    }
    findings
}

fn directories(layout: &Layout) -> Vec<AgentId> {
    let entries = std::fs::read_dir(layout.agents()).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}
