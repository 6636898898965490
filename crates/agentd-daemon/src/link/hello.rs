//! Reads the hello, the first frame on a link. Its sender has not authenticated yet, so its size, its time and the
//! number of such connections are limited.

use super::{Reader, codec, next};
use agentd_core::link::{Hello, Up};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::codec::{AnyDelimiterCodec, FramedRead};

/// The limit of open links. Each agent's process has one.
const LINKS: usize = 4096;
/// How many of them may be without a hello.
const UNGREETED: usize = 32;
/// Time limit for the hello.
const WITHIN: Duration = Duration::from_secs(10);
/// The largest hello, in bytes. Most of it is the agent's environment variables: those of [`Envs`](crate::envs::Envs) and
/// the stored secrets, each of which has its own limit.
const MAX_HELLO: usize = 2 * 1024 * 1024;

/// The link limits. Kept outside the server, so that a restarted server continues with the same counts.
#[derive(Clone)]
pub struct Room {
    links: Arc<Semaphore>,
    ungreeted: Arc<Semaphore>,
}

/// The permits of one link.
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
    /// Waits for permits. Meanwhile a runtime that connects waits in the socket's queue.
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
    tracing::warn!(limit, of, "link limit reached: new runtimes wait");
    Arc::clone(room).acquire_owned().await.ok()
}

/// The hello, the reader for the frames after it, and the link's permit. None if the connection is to be closed.
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
