//! `agentd verify --repair`.

use super::{cannot, existing};
use crate::error::{Error, Exit};
use crate::output::{BAD, GOOD, Output};
use crate::render::count;
use agentd_daemon::layout::{self, Layout};
use agentd_store::{Hit, Repaired, SqliteStore};
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::path::Path;

pub async fn run(dir: &Path, json: bool, out: &mut Output) -> Result<(), Error> {
    let options = existing(dir)?;
    let _lock = lock(dir)?;
    let repaired = SqliteStore::repair(&options).await;
    let repaired = repaired.map_err(|error| cannot(dir, &error))?;
    if json {
        out.line(as_json(dir, &repaired))?;
    } else {
        print(out, dir, &repaired)?;
    }
    if repaired.hit.is_empty() && repaired.nobodys == 0 {
        return Ok(());
    }
    let kept = repaired.kept.unwrap_or_default();
    let error = Error::new(Exit::Failed, "not everything could be recovered");
    let error = match json {
        true => error.printed(),
        false => error,
    };
    Err(error
        .because("see the list above; the journal is consistent again and can be used")
        .next(format!(
            "keep {} until you no longer need the lost events",
            kept.display()
        )))
}

/// The lock that keeps all other processes from the journal while it is held.
fn lock(dir: &Path) -> Result<File, Error> {
    let cannot = |error: io::Error| {
        let what = format!("{} cannot be locked", dir.display());
        Error::new(Exit::Unavailable, what).because(error)
    };
    // An agent that runs without a daemon has a lock file of its own.
    let alone = dir.join("lock");
    let layout = Layout::new(dir);
    let path = match alone.exists() {
        true => alone,
        false => {
            layout::private(&layout.run()).map_err(cannot)?;
            layout.daemon_lock()
        }
    };
    let lock = match layout::hold(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let what = format!("{} is in use", dir.display());
            return Err(Error::new(Exit::Refused, what)
                .because("a daemon is running there, or an agent without a daemon")
                .next("`agentd daemon stop`, then repair again"));
        }
        Err(error) => return Err(cannot(error)),
    };
    let runtimes = match layout.taken_runtime_locks() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        runtimes => runtimes.map_err(cannot)?,
    };
    if let Some((agent, process)) = runtimes.first() {
        let what = format!("the process of agent {agent} is still running");
        return Err(Error::new(Exit::Refused, what)
            .because("it would continue from events that the repair may not recover")
            .next(format!(
                "wait until it has exited, or kill it: kill -9 {}",
                process.pid
            )));
    }
    Ok(lock)
}

fn print(out: &mut Output, dir: &Path, repaired: &Repaired) -> Result<(), Error> {
    let mark = match repaired.hit.is_empty() {
        true => format!("{GOOD}✓{GOOD:#}"),
        false => format!("{BAD}✗{BAD:#}"),
    };
    let verdict = match repaired.kept {
        Some(_) => "recovered",
        None => "no damage",
    };
    out.line(format_args!(
        "{mark} {}: {}, {}, {verdict}",
        dir.display(),
        count(repaired.agents, "agent"),
        count(repaired.events, "event"),
    ))?;
    for hit in &repaired.hit {
        out.line(format_args!("  {}", lost(hit)))?;
    }
    if repaired.nobodys > 0 {
        out.line(format_args!(
            "  no agent could be found for {}",
            count(repaired.nobodys, "event")
        ))?;
    }
    if let Some(kept) = &repaired.kept {
        out.line(format_args!(
            "  the damaged files are kept in {}",
            kept.display()
        ))?;
    }
    Ok(())
}

fn lost(hit: &Hit) -> String {
    let agent = match &hit.name {
        Some(name) => format!("{name}, agent {}", hit.agent),
        None => format!("agent {}", hit.agent),
    };
    let (from, through) = (hit.damage.from, hit.damage.through);
    match hit.recovered.0 {
        0 => format!("{agent}: nothing could be recovered of its {through} events"),
        _ => format!("{agent}: events {from} to {through} could not be recovered"),
    }
}

fn as_json(dir: &Path, repaired: &Repaired) -> Value {
    let hit = repaired.hit.iter().map(|hit| {
        json!({
            "agent": {"id": hit.agent, "name": hit.name}, "recovered": hit.recovered,
            "from": hit.damage.from, "through": hit.damage.through,
            "reason": hit.damage.reason.to_string(),
        })
    });
    json!({
        "home": dir.display().to_string(),
        "repaired": repaired.kept.is_some(),
        "kept": repaired.kept.as_ref().map(|kept| kept.display().to_string()),
        "agents": repaired.agents,
        "events": repaired.events,
        "lost": hit.collect::<Vec<_>>(),
        "events_of_no_agent": repaired.nobodys,
    })
}
