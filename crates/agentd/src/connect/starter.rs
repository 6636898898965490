//! Starts a daemon if none listens, and decides whether an unanswered request is sent again.

use super::by_systemd;
use super::socket::{cannot_use, client_at, connect, log, see_log};
use crate::error::{Error, Exit};
use crate::home;
use crate::outside;
use crate::service::systemd;
use agentd_client::{Client, Kind, Problem, Retry, Unanswered};
use agentd_core::environment::is_handed_on;
use agentd_core::id::OpId;
use agentd_daemon::layout::{Layout, private};
use agentd_daemon::stop_mark::StopMark;
use agentd_failpoint as failpoint;
use agentd_process::{Child, Ownership, Start};
use futures_util::future::BoxFuture;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long a new daemon may take to answer its first request.
const START: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
/// Delay before a retry after the connection broke.
const BREATH: Duration = Duration::from_millis(100);
/// How long an unanswered request is retried.
const RETRY: Duration = Duration::from_secs(15);
/// How often a daemon that exits at once is started: its predecessor may still be shutting down.
const STARTS: u32 = 3;
const LOG_BYTES: u64 = 10 * 1024 * 1024;
const LOG_LINES: usize = 5;

/// The variables that a daemon inherits, besides those of [`is_handed_on`] and those that begin with `AGENTD_`.
/// Keys are not among them: each client sends its keys with its requests.
const OF_DAEMONS: [&str; 5] = [
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "RUST_BACKTRACE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// The result of starting a daemon.
enum Started {
    Answers,
    /// A signal ended it.
    Killed,
    /// It exited by itself, or does not answer.
    Failed,
}

pub struct Starter {
    home: PathBuf,
    /// A client without retries, to find out whether the daemon answers.
    client: Client,
    /// The daemon, if this process started it: no other process can reap it.
    daemon: Mutex<Option<Child>>,
    /// The last stop when this command began. The command came after it and may start a daemon.
    stopped_before: Option<Uuid>,
    /// The home's device and inode, once a daemon has answered from it.
    known: OnceLock<(u64, u64)>,
}

impl Starter {
    pub fn new(home: PathBuf) -> Self {
        let mark = StopMark::read(&Layout::new(&home));
        Self {
            client: client_at(&home),
            home,
            daemon: Mutex::default(),
            stopped_before: mark.map(|mark| mark.id),
            known: OnceLock::new(),
        }
    }

    /// A daemon has answered from this home.
    pub fn remember_home(&self) {
        if let Some(found) = file_id(&self.home) {
            let _known = self.known.set(found);
        }
    }

    /// Fails if the home was deleted or replaced since a daemon answered: a new home would not contain the agent.
    fn check_home(&self) -> Result<(), Error> {
        let known = self.known.get().copied();
        if known.is_none() || known == file_id(&self.home) {
            return Ok(());
        }
        let what = format!(
            "the state directory {} was deleted, or replaced by another one",
            self.home.display()
        );
        Err(Error::new(Exit::Unavailable, what).next("restore it from a backup"))
    }

    /// The daemon, if this process started it.
    pub fn take_daemon(&self) -> Option<Child> {
        self.child().take()
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits a moment and ensures that a daemon listens. Fails after the retry period, or if the daemon was stopped by
    /// `agentd daemon stop` since this command began.
    pub async fn again(&self, since: Instant) -> Result<(), Error> {
        if since.elapsed() >= RETRY {
            let what = "the daemon exited before it answered, and a new one does not answer";
            return Err(Error::new(Exit::Unavailable, what).next(see_log(&self.home)));
        }
        tokio::time::sleep(BREATH).await;
        self.check_home()?;
        let mark = StopMark::read(&Layout::new(&self.home));
        let is_stopped = mark.is_some_and(|mark| Some(mark.id) != self.stopped_before);
        if is_stopped && !failpoint::injected_bug("stop_undone") {
            let what = "the daemon was stopped";
            return Err(Error::new(Exit::Unavailable, what)
                .because("after `agentd daemon stop`, only a new command starts the daemon again")
                .next("`agentd daemon start`, or run the same command again"));
        }
        self.ensure().await.map(drop)
    }

    /// Starts a daemon if none listens. Returns the connection that showed that one listens, if there was one.
    pub async fn ensure(&self) -> Result<Option<UnixStream>, Error> {
        if let Some(stream) = connect(self.client.socket())? {
            return Ok(Some(stream));
        }
        outside::check()?;
        home::check_no_own_socket()?;
        home::check_whole(&self.home)?;
        let layout = Layout::new(&self.home);
        let made = private(&layout.run());
        made.map_err(|error| cannot_use(&layout.run(), error))?;
        let mut patience = START;
        if systemd::serves(&self.home) {
            patience += by_systemd::LONGEST;
        }
        // The process that holds this lock starts the daemon; others wait until it listens.
        let others = Instant::now() + patience;
        let Some(_lock) = self.lock(&layout.start_lock(), others).await? else {
            return Ok(None);
        };
        let mut log_from = 0;
        failpoint::hit("after", "lock");
        if let Some(stream) = connect(self.client.socket())? {
            return Ok(Some(stream));
        }
        if let Some(stream) = by_systemd::start(&self.home, self.client.socket()).await? {
            return Ok(Some(stream));
        }
        // It begins here: the service manager may have taken long.
        let deadline = Instant::now() + START;
        let mut failures = 0;
        while failures < STARTS && Instant::now() < deadline {
            if let Some(stream) = connect(self.client.socket())? {
                return Ok(Some(stream));
            }
            log_from = self.start()?;
            match self.answers(deadline).await? {
                Started::Answers => return Ok(None),
                // A kill is not counted as a failure of the daemon: try again.
                Started::Killed => {}
                Started::Failed => failures += 1,
            }
            tokio::time::sleep(BREATH * (failures + 1)).await;
        }
        Err(did_not_start(&self.home, log_from))
    }

    /// Takes the lock; none if a daemon began to listen in the meantime.
    async fn lock(&self, path: &Path, deadline: Instant) -> Result<Option<File>, Error> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path)
            .map_err(|error| cannot_use(path, error))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::Error(error)) => return Err(cannot_use(path, error)),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    let what = "another process is starting the daemon, and it does not answer";
                    return Err(Error::new(Exit::Unavailable, what).next(see_log(&self.home)));
                }
                // tidy: polls for the lock
                Err(TryLockError::WouldBlock) => tokio::time::sleep(POLL).await,
            }
            if connect(self.client.socket())?.is_some() {
                return Ok(None);
            }
        }
    }

    /// Starts a daemon in its own session. Returns the position in the log where its output begins.
    fn start(&self) -> Result<u64, Error> {
        let (log, from) = open_log(&self.home)?;
        let also = log
            .try_clone()
            .map_err(|error| cannot_use(&self.home, error))?;
        // The program that is running now, even if its file was replaced in the meantime.
        let mut start = Start::new("/proc/self/exe");
        start.name = Some("agentd");
        start.args = vec!["daemon".into(), "run".into()];
        start.env = environment(std::env::vars_os());
        start
            .env
            .push(("AGENTD_HOME".into(), self.home.clone().into()));
        // A daemon in `/` keeps no directory busy and does not depend on the current one.
        start.cwd = Some(PathBuf::from("/"));
        start.stdout = log.into();
        start.stderr = also.into();
        start.own = Ownership::Session;
        let child = start.spawn().map_err(|error| {
            Error::new(Exit::Unavailable, "the daemon cannot be started").because(error)
        })?;
        *self.child() = Some(child);
        failpoint::hit("after", "spawn");
        Ok(from)
    }

    /// Waits until the daemon answers, exits or exceeds the deadline.
    async fn answers(&self, deadline: Instant) -> Result<Started, Error> {
        loop {
            let answer = tokio::time::timeout(START, self.client.daemon()).await;
            match answer {
                Ok(Err(error)) if error.is_gone() => {}
                Ok(_) => return Ok(Started::Answers),
                Err(_) => return Ok(Started::Failed),
            }
            let ended = {
                let mut child = self.child();
                let ended = match child.as_mut() {
                    Some(daemon) => daemon.try_wait().ok().flatten().map(|exit| match exit {
                        agentd_process::Exit::Code(_) => Started::Failed,
                        _ => Started::Killed,
                    }),
                    None => Some(Started::Failed),
                };
                if ended.is_some() {
                    *child = None;
                }
                ended
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
            if Instant::now() >= deadline {
                return Ok(Started::Failed);
            }
            // tidy: polls for the daemon
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Retry for Starter {
    fn again<'a>(&'a self, unanswered: &'a Unanswered) -> BoxFuture<'a, Result<(), Problem>> {
        Box::pin(async move {
            let again = Self::again(self, unanswered.since).await;
            again.map_err(|error| {
                let problem = error.into_problem(Kind::Unavailable);
                match unanswered.op {
                    Some(op) => outcome_unknown(problem, op),
                    None => problem,
                }
            })
        })
    }
}

/// Adds to a problem that the outcome of the change is unknown, and how to repeat it safely.
fn outcome_unknown(mut problem: Problem, op: OpId) -> Problem {
    let why = format!("it is unknown whether the change was applied; its op is `{op}`");
    problem.detail = Some(match problem.detail.take() {
        Some(detail) => format!("{detail}; {why}"),
        None => why,
    });
    problem.next(format!(
        "run the same command again with `--op '{op}'`: the change is applied once"
    ))
}

fn file_id(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

fn environment(ours: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let is_inherited = |name: &OsStr| {
        let name = name.to_string_lossy();
        let is_for_daemons = name.starts_with("AGENTD_") || OF_DAEMONS.contains(&name.as_ref());
        is_for_daemons || is_handed_on(&name)
    };
    ours.filter(|(name, _)| is_inherited(name)).collect()
}

/// Opens the log and returns its length. A log past its limit is renamed to `.1` first.
fn open_log(home: &Path) -> Result<(File, u64), Error> {
    let path = log(home);
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if length(&path) >= LOG_BYTES {
        let old = home.join("daemon.log.1");
        std::fs::rename(&path, &old).map_err(|error| cannot_use(&path, error))?;
    }
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| cannot_use(&path, error))?;
    Ok((file, length(&path)))
}

fn did_not_start(home: &Path, log_from: u64) -> Error {
    let path = log(home);
    let output = last_lines(&path, log_from);
    let error = Error::new(Exit::Unavailable, "the daemon did not start");
    match output.is_empty() {
        true => error.next(see_log(home)),
        false => error
            .because(output.join("\n        "))
            .next(format!("see {}", path.display())),
    }
}

/// The last lines of a file that come after `from`.
fn last_lines(path: &Path, from: u64) -> Vec<String> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(from))?;
        file.read_to_end(&mut text)
    });
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = lines.iter().rev().take(LOG_LINES).rev();
    last.map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_gets_no_keys() {
        let ours = [
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "sk-1"),
            ("AGENTD_X", "1"),
        ];
        let ours = ours.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let names: Vec<OsString> = environment(ours.into_iter())
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["PATH", "AGENTD_X"]);
    }

    #[test]
    fn a_long_log_is_rotated() {
        let home = tempfile::tempdir().unwrap();
        let path = log(home.path());
        let file = File::create(&path).unwrap();
        file.set_len(LOG_BYTES).unwrap();
        let (_, from) = open_log(home.path()).unwrap();
        assert_eq!(from, 0);
        let old = std::fs::metadata(home.path().join("daemon.log.1")).unwrap();
        assert_eq!(old.len(), LOG_BYTES);
    }

    #[test]
    fn the_last_lines_are_those_of_this_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "before\n1\n2\n\n3\n4\n5\n6\n").unwrap();
        assert_eq!(last_lines(&path, 7), ["2", "3", "4", "5", "6"]);
        assert_eq!(last_lines(&path, 18), ["6"]);
    }
}
