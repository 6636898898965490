//! A few connections that read concurrently, each on its own thread.

use super::derived::Derived;
use super::{Options, connect};
use crate::error::{Error, Result};
use rusqlite::Connection;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// A thread's connections. A reader's are query-only; the writer writes `journal`, and the follower writes `derived`.
pub struct Databases {
    pub journal: Connection,
    pub derived: Derived,
}

type Job = Box<dyn FnOnce(&Databases) + Send>;

/// Reads that may be queued; when the queue is full, callers wait.
const QUEUE: usize = 256;

pub struct Readers {
    /// None only during drop: closing the channel ends the threads.
    jobs: Option<mpsc::Sender<Job>>,
    /// Of a connection for short reads alone, which exports and searches never keep waiting. None as `jobs`.
    short: Option<mpsc::Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub fn start(options: &Options) -> Result<Self> {
        let mut threads = Vec::new();
        let jobs = start_threads(options, options.readers.max(1), &mut threads)?;
        let short = start_threads(options, 1, &mut threads)?;
        Ok(Self {
            jobs: Some(jobs),
            short: Some(short),
            threads,
        })
    }

    /// Runs a read on one of the connections.
    pub async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Databases) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        run_on(self.jobs.as_ref(), read).await
    }

    /// Runs a read that takes no longer than a look into an index.
    pub async fn run_short<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Databases) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        run_on(self.short.as_ref(), read).await
    }
}

/// Starts threads that share a queue.
fn start_threads(
    options: &Options,
    count: usize,
    threads: &mut Vec<JoinHandle<()>>,
) -> Result<mpsc::Sender<Job>> {
    let (jobs, queue) = mpsc::channel::<Job>(QUEUE);
    let queue = Arc::new(Mutex::new(queue));
    for _ in 0..count {
        let databases = Databases {
            journal: connect::reader(options, &options.journal())?,
            derived: Derived::reader(options),
        };
        let queue = Arc::clone(&queue);
        let work = move || {
            loop {
                let job = queue
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .blocking_recv();
                match job {
                    Some(job) => job(&databases),
                    None => return,
                }
            }
        };
        threads.push(connect::spawn("reader", work)?);
    }
    Ok(jobs)
}

async fn run_on<T: Send + 'static>(
    jobs: Option<&mpsc::Sender<Job>>,
    read: impl FnOnce(&Databases) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (reply, answer) = oneshot::channel();
    let job: Job = Box::new(move |databases| {
        // The caller may be gone; then the answer is dropped.
        let _gone = reply.send(read(databases));
    });
    let jobs = jobs.ok_or(Error::Closed)?;
    jobs.send(job).await.map_err(|_| Error::Closed)?;
    answer.await.map_err(|_| Error::Closed)?
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.jobs = None;
        self.short = None;
        for thread in self.threads.drain(..) {
            // A reader that panicked has nothing to clean up.
            let _panicked = thread.join();
        }
    }
}
