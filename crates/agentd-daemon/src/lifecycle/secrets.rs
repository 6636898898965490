//! Stored secrets: set, list and remove. Agents that wait for one continue.

use super::revive::all_that_are;
use crate::clock;
use crate::daemon::Daemon;
use crate::problem::Result;
use crate::secrets::{self, Error, Stored};
use agentd_client::api::{Env, StoredSecret, StoredSecrets};
use agentd_client::{Kind, Problem};
use agentd_core::id::AgentId;
use agentd_core::state::Phase;
use std::collections::BTreeSet;
use std::sync::Arc;

pub async fn list(daemon: &Daemon) -> Result<StoredSecrets> {
    let _alone = daemon.secret_file.lock().await;
    let stored = secrets::read(&daemon.layout).map_err(|error| problem(&error))?;
    let secrets = stored.iter();
    let secrets = secrets.map(|(name, secret)| StoredSecret {
        name: name.clone(),
        set_at: secret.set_at,
    });
    Ok(StoredSecrets {
        secrets: secrets.collect(),
    })
}

pub async fn set(daemon: &Arc<Daemon>, name: &str, value: &str) -> Result<StoredSecret> {
    let at = clock::now();
    change(daemon, |stored| secrets::put(stored, name, value, at)).await?;
    tracing::info!(name, "secret stored");
    Ok(StoredSecret {
        name: name.to_owned(),
        set_at: at,
    })
}

pub async fn remove(daemon: &Arc<Daemon>, name: &str) -> Result<StoredSecret> {
    let mut removed = None;
    change(daemon, |stored| {
        removed = stored.remove(name);
        Ok(())
    })
    .await?;
    let Some(removed) = removed else {
        let what = format!("no secret `{name}` is stored");
        let problem = Problem::new(Kind::NotFound, what);
        return Err(problem.next("`agentd secret list` shows all stored secrets"));
    };
    tracing::info!(name, "secret removed");
    Ok(StoredSecret {
        name: name.to_owned(),
        set_at: removed.set_at,
    })
}

async fn change(
    daemon: &Arc<Daemon>,
    make: impl FnOnce(&mut Stored) -> std::result::Result<(), Error>,
) -> Result<()> {
    let alone = daemon.secret_file.lock().await;
    let before = secrets::read(&daemon.layout).map_err(|error| problem(&error))?;
    let mut stored = before.clone();
    make(&mut stored).map_err(|error| problem(&error))?;
    if stored != before {
        // On disk first: a key that an agent continues with still exists after a reboot.
        secrets::write(&daemon.layout, stored.clone()).map_err(|error| problem(&error))?;
    }
    daemon.envs.set_secrets(values(&stored));
    drop(alone);
    give_to_all(daemon).await
}

/// The secrets as environment variables.
pub fn values(stored: &Stored) -> Env {
    let pairs = stored.iter();
    pairs
        .map(|(name, secret)| (name.clone(), secret.value.clone()))
        .collect()
}

/// Every agent in use gets them with its next process; an agent that waits for its key continues.
async fn give_to_all(daemon: &Arc<Daemon>) -> Result<()> {
    let at_hand = daemon.handles().await.into_iter().map(|handle| handle.id);
    let mut agents: BTreeSet<AgentId> = at_hand.collect();
    agents.extend(all_that_are(daemon, Phase::Waiting).await?);
    for agent in agents {
        let Ok(handle) = daemon.handle(agent).await else {
            continue;
        };
        let mut guard = handle.lock().await;
        guard.env = daemon.envs.of(agent);
        daemon.reconcile(&handle, &mut guard);
    }
    Ok(())
}

fn problem(error: &Error) -> Problem {
    let not_stored = "the secret cannot be stored";
    match error {
        Error::BadName(_) | Error::HandedOn(_) | Error::Empty | Error::NotOneLine => {
            Problem::new(Kind::Invalid, not_stored).because(error)
        }
        Error::TooLong | Error::TooMany => Problem::new(Kind::TooLarge, not_stored).because(error),
        Error::Foreign(_) | Error::Open { .. } | Error::NoFile(_) | Error::Malformed(_) => {
            let what = "the stored secrets cannot be used";
            Problem::new(Kind::Refused, what)
                .because(error)
                .next("find out what changed it; fix it, or delete secrets.json and set them again")
        }
        Error::Newer(_) => Problem::new(Kind::Refused, "the stored secrets cannot be used")
            .because(error)
            .next("use the newer version"),
        Error::Io { .. } => {
            Problem::new(Kind::Unavailable, "the stored secrets cannot be accessed").because(error)
        }
    }
}
