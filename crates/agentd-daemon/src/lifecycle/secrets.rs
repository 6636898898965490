//! Stored secrets: set, list and remove. Agents that wait for one continue.

use super::revive::all_that_are;
use crate::clock;
use crate::daemon::Daemon;
use crate::error::{Error, Kind, Result};
use crate::secrets::{self, Stored};
use crate::spawn::blocking;
use agentd_client::api::{StoredSecret, StoredSecrets};
use agentd_core::id::AgentId;
use agentd_core::state::Phase;
use std::collections::BTreeSet;
use std::sync::Arc;

pub async fn list(daemon: &Daemon) -> Result<StoredSecrets> {
    let _alone = daemon.secret_file.lock().await;
    let layout = daemon.layout.clone();
    let stored = blocking(move || secrets::read(&layout)).await;
    let stored = stored.map_err(|error| cannot(&error))?;
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
    let (put, value) = (name.to_owned(), value.to_owned());
    change(daemon, move |stored| secrets::put(stored, &put, &value, at)).await?;
    tracing::info!(name, "secret stored");
    Ok(StoredSecret {
        name: name.to_owned(),
        set_at: at,
    })
}

pub async fn remove(daemon: &Arc<Daemon>, name: &str) -> Result<StoredSecret> {
    let removed = name.to_owned();
    let removed = change(daemon, move |stored| Ok(stored.remove(&removed))).await?;
    let Some(removed) = removed else {
        let what = format!("no secret `{name}` is stored");
        let error = Error::new(Kind::NotFound, what);
        return Err(error.next("`agentd secret list` shows all stored secrets"));
    };
    tracing::info!(name, "secret removed");
    Ok(StoredSecret {
        name: name.to_owned(),
        set_at: removed.set_at,
    })
}

async fn change<T: Send + 'static>(
    daemon: &Arc<Daemon>,
    make: impl FnOnce(&mut Stored) -> Result<T, secrets::Error> + Send + 'static,
) -> Result<T> {
    let alone = daemon.secret_file.lock().await;
    let layout = daemon.layout.clone();
    let changed = blocking(move || {
        let before = secrets::read(&layout)?;
        let mut stored = before.clone();
        let made = make(&mut stored)?;
        if stored != before {
            secrets::write(&layout, stored.clone())?;
        }
        Ok((made, stored))
    });
    // Agents get the key after it is on disk: a key that an agent continues with still exists after a reboot.
    let (made, stored) = changed.await.map_err(|error| cannot(&error))?;
    daemon.envs.set_secrets(secrets::values(&stored));
    drop(alone);
    daemon.deliveries.again.notify_waiters();
    give_to_all(daemon).await?;
    Ok(made)
}

/// Every agent in use gets the stored secrets with its next process. An agent that waits for a key continues.
async fn give_to_all(daemon: &Arc<Daemon>) -> Result<()> {
    let at_hand = daemon.handles().into_iter().map(|handle| handle.id);
    let mut agents: BTreeSet<AgentId> = at_hand.collect();
    agents.extend(all_that_are(daemon, Phase::Waiting).await?);
    for agent in agents {
        let Ok(handle) = daemon.handle(agent).await else {
            continue;
        };
        let mut guard = handle.lock().await;
        guard.env = daemon.envs.of(agent);
        guard.reconcile();
    }
    Ok(())
}

fn cannot(error: &secrets::Error) -> Error {
    use secrets::Error as Secrets;
    let not_stored = "the secret cannot be stored";
    match error {
        Secrets::BadName(_) | Secrets::HandedOn(_) | Secrets::Empty | Secrets::NotOneLine => {
            Error::new(Kind::Invalid, not_stored).because(error)
        }
        Secrets::TooLong | Secrets::TooMany => {
            Error::new(Kind::TooLarge, not_stored).because(error)
        }
        Secrets::Foreign(_) | Secrets::Open { .. } | Secrets::NoFile(_) | Secrets::Malformed(_) => {
            let what = "the stored secrets cannot be used";
            Error::new(Kind::Refused, what)
                .because(error)
                .next("find out what changed it; fix it, or delete secrets.json and set them again")
        }
        Secrets::Newer(_) => Error::new(Kind::Refused, "the stored secrets cannot be used")
            .because(error)
            .next("use the newer version"),
        Secrets::Io { .. } => {
            Error::new(Kind::Unavailable, "the stored secrets cannot be accessed").because(error)
        }
    }
}
