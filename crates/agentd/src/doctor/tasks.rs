//! Directories that are left of tasks: no process, no output and no recorded end.

use super::{Finding, SafeFix};
use crate::error::Error;
use crate::render::count;
use agentd_client::Client;
use agentd_client::api::{Agent, List};
use agentd_core::id::TaskId;
use agentd_daemon::layout::Layout;
use agentd_process::task::is_left;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Agents whose tasks are looked at; the most recently used ones.
const AGENTS: usize = 100;
/// A newer directory may belong to a task that is about to start.
const SETTLED: Duration = Duration::from_secs(3600);

pub async fn look(layout: &Layout, client: &Client) -> Result<Vec<Finding>, Error> {
    let list = List {
        limit: Some(AGENTS),
        ..List::default()
    };
    let mut findings = Vec::new();
    for line in client.agents(&list).await?.agents {
        let id = line.id.to_string();
        // It may have been removed meanwhile.
        let (Ok(agent), Ok(known)) = (client.agent(&id).await, client.tasks(&id).await) else {
            continue;
        };
        let known = known.tasks.into_iter().map(|task| task.id).collect();
        findings.extend(of_agent(layout, &agent, &known));
    }
    Ok(findings)
}

/// The directories of an agent without a turn. `known` are the tasks that run according to the journal.
fn of_agent(layout: &Layout, agent: &Agent, known: &BTreeSet<TaskId>) -> Option<Finding> {
    if agent.turn.is_some() {
        return None;
    }
    let ids = layout.tasks_of(agent.id).into_iter();
    let ids = ids.filter(|id| !known.contains(id));
    let dirs = ids.map(|id| layout.task_dir(agent.id, id));
    let left: Vec<PathBuf> = dirs.filter(|dir| may_go(dir)).collect();
    if left.is_empty() {
        return None;
    }
    let many = count(left.len() as u64, "task");
    let what = format!(
        "{many} of `{}` left a directory without a process, an output or an end",
        agent.name
    );
    let fix = "`agentd doctor --fix` removes what is left";
    let finding = Finding::warning("directories", what, fix);
    Some(finding.fixed_by(SafeFix::RemoveTasks { dirs: left }))
}

/// Whether nothing is lost with the directory. One that cannot be read stays.
fn may_go(dir: &Path) -> bool {
    let is_settled = || {
        let changed = std::fs::symlink_metadata(dir).ok()?.modified().ok()?;
        let age = SystemTime::now().duration_since(changed).ok()?;
        Some(age >= SETTLED)
    };
    let is_empty = |name: &str| match std::fs::symlink_metadata(dir.join(name)) {
        Ok(file) => file.is_file() && file.len() == 0,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    is_settled().unwrap_or_default()
        && is_empty("output")
        && is_empty("errors")
        && is_left(dir).unwrap_or_default()
}

/// Removes those that are still left.
pub fn remove(dirs: &[PathBuf]) -> io::Result<()> {
    for dir in dirs.iter().filter(|dir| may_go(dir)) {
        std::fs::remove_dir_all(dir)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    /// A directory of a task that was last changed two hours ago, with this file.
    fn dir(root: &Path, name: &str, file: Option<(&str, &str)>) -> PathBuf {
        let dir = root.join(name);
        fs::create_dir_all(&dir).unwrap();
        if let Some((file, text)) = file {
            fs::write(dir.join(file), text).unwrap();
        }
        let before = SystemTime::now() - 2 * SETTLED;
        File::open(&dir).unwrap().set_modified(before).unwrap();
        dir
    }

    #[test]
    fn only_a_directory_without_an_output_or_an_end_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let exit = r#"{"code":0,"signal":null,"timed_out":false,"stopped":false,"output_bytes":0,"dropped_bytes":0,"duration_ms":1}"#;
        let left = dir(root.path(), "left", None);
        let kept = [
            dir(root.path(), "ended", Some(("exit", exit))),
            dir(root.path(), "output", Some(("output", "text"))),
            dir(root.path(), "unreadable", Some(("exit", "{"))),
        ];
        let fresh = root.path().join("fresh");
        fs::create_dir_all(&fresh).unwrap();
        assert!(may_go(&left));
        for dir in kept.iter().chain([&fresh]) {
            assert!(!may_go(dir), "{}", dir.display());
        }
        let all: Vec<PathBuf> = [left.clone(), fresh.clone()]
            .into_iter()
            .chain(kept.clone())
            .collect();
        remove(&all).unwrap();
        assert!(!left.exists() && fresh.exists());
        assert!(kept.iter().all(|dir| dir.exists()));
    }
}
