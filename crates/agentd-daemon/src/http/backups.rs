//! Backups of the home. The response is a stream: `progress` while the backup is made, then `end` with the backup, or `problem`.
//! A client that disconnects cancels the backup.

use super::events::{Item, named, problem, sse};
use super::respond::{Body, Fault, died};
use super::share::Share;
use crate::backup::{self, Kind, Order, Progress, Replace, Watch};
use crate::daemon::Daemon;
use crate::ending::{Ending, left};
use crate::error::{Error, Kind as ErrorKind};
use crate::spawn::spawn;
use agentd_client::api::{BackUp, BackupProgress};
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use futures_util::stream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// The shortest time between two reports of progress.
const PAUSE: Duration = Duration::from_millis(100);

pub async fn make(
    State(daemon): State<Arc<Daemon>>,
    Extension(share): Extension<Share>,
    Body(ask): Body<BackUp>,
) -> Result<Response, Fault> {
    let order = order(ask)?;
    let place = share.begin_stream()?;
    let (items, received) = mpsc::unbounded_channel();
    let stream = Items {
        received,
        ending: daemon.ending(),
        is_over: false,
    };
    let last = items.clone();
    spawn("backup", async move {
        let done = spawn("backup", async move {
            backup::make(&daemon, order, reports(items)).await
        });
        let item = match done.await {
            Ok(Ok(Ok(made))) => named("end", serde_json::to_string(&made).unwrap_or_default()),
            Ok(Ok(Err(error))) => problem(error.into()),
            Ok(Err(_)) | Err(_) => problem(died().0),
        };
        // The client may be gone.
        let _gone = last.send(Sent::Last(item));
    });
    let items = stream::unfold(stream, |mut items| async move {
        let item = items.next().await?;
        Some((item, items))
    });
    Ok(sse(place, items))
}

fn order(ask: BackUp) -> Result<Order, Error> {
    let to = PathBuf::from(&ask.to);
    if !to.is_absolute() {
        let what = format!("`to` must be an absolute path, not {:?}", ask.to);
        return Err(Error::new(ErrorKind::Invalid, what));
    }
    Ok(Order {
        to,
        kind: if ask.incremental {
            Kind::Incremental
        } else {
            Kind::Full
        },
        replace: if ask.replace {
            Replace::Yes
        } else {
            Replace::No
        },
    })
}

/// Sends progress, not too often. The backup is cancelled when the client is gone.
fn reports(items: mpsc::UnboundedSender<Sent>) -> Watch {
    let reported: Mutex<Option<Instant>> = Mutex::default();
    Arc::new(move |progress: Progress| {
        if items.is_closed() {
            return false;
        }
        let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.is_none_or(|at| at.elapsed() >= PAUSE) {
            *reported = Some(Instant::now());
            let progress = BackupProgress {
                bytes: progress.bytes,
                of: progress.of,
            };
            let data = serde_json::to_string(&progress).unwrap_or_default();
            return items.send(Sent::More(named("progress", data))).is_ok();
        }
        true
    })
}

enum Sent {
    More(Item),
    Last(Item),
}

struct Items {
    received: mpsc::UnboundedReceiver<Sent>,
    ending: watch::Receiver<Ending>,
    is_over: bool,
}

impl Items {
    async fn next(&mut self) -> Option<Item> {
        if self.is_over {
            return None;
        }
        tokio::select! {
            sent = self.received.recv() => match sent? {
                Sent::More(item) => Some(item),
                Sent::Last(item) => {
                    self.is_over = true;
                    Some(item)
                }
            },
            () = left(&mut self.ending) => None,
        }
    }
}
