//! The first thing on a link, from a process that has not shown yet who it is: limits for what it may say, how long it
//! may take, and how many such processes there may be.

use super::{Reader, codec, next};
use agentd_core::link::{Hello, Up};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::codec::{AnyDelimiterCodec, FramedRead};

/// Links at once: one for each agent's process.
const LINKS: usize = 4096;
/// Those among them that have said nothing yet.
const UNGREETED: usize = 32;
/// How long the hello may take.
const WITHIN: Duration = Duration::from_secs(10);
/// What it may hold: an agent's variables, above all.
const MAX_HELLO: usize = 1024 * 1024;

/// How many links there may be. Kept beside the socket: another server takes over from one that dies.
#[derive(Clone)]
pub struct Room {
    links: Arc<Semaphore>,
    ungreeted: Arc<Semaphore>,
}

/// What one link takes of it.
pub struct Places {
    link: Option<OwnedSemaphorePermit>,
    ungreeted: Option<OwnedSemaphorePermit>,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            links: Arc::new(Semaphore::new(LINKS)),
            ungreeted: Arc::new(Semaphore::new(UNGREETED)),
        }
    }
}

impl Room {
    /// A runtime that comes when there is no room waits in the socket's own queue.
    pub async fn next(&self) -> Places {
        Places {
            link: place(&self.links, LINKS, "links").await,
            ungreeted: place(&self.ungreeted, UNGREETED, "links without a hello").await,
        }
    }
}

async fn place(room: &Arc<Semaphore>, limit: usize, of: &str) -> Option<OwnedSemaphorePermit> {
    if let Ok(place) = Arc::clone(room).try_acquire_owned() {
        return Some(place);
    }
    tracing::warn!(limit, of, "no more runtimes are accepted until one ends");
    Arc::clone(room).acquire_owned().await.ok()
}

/// The hello, what follows it, and the link's place. None where the connection is to end.
pub async fn read(
    stream: OwnedReadHalf,
    pid: Option<u32>,
    places: Places,
) -> Option<(Hello, Reader, Option<OwnedSemaphorePermit>)> {
    let short = AnyDelimiterCodec::new_with_max_length(vec![0], vec![0], MAX_HELLO);
    let mut reader = FramedRead::new(stream, short);
    let first = match tokio::time::timeout(WITHIN, next(&mut reader)).await {
        Ok(first) => first,
        Err(_) => {
            let limit_s = WITHIN.as_secs();
            tracing::warn!(pid, limit_s, "link closed: no hello in time");
            None
        }
    };
    drop(places.ungreeted);
    let Up::Hello(hello) = first? else {
        return None;
    };
    *reader.decoder_mut() = codec();
    Some((hello, reader, places.link))
}
