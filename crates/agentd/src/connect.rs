//! The way to the daemon. Where none listens, one is started.

use crate::error::{Error, Exit};
use crate::home;
use crate::outside;
use agentd_client::Client;
use agentd_core::environment::is_handed_on;
use agentd_daemon::layout::{Layout, private};
use agentd_process::{Child, Own, Start, failpoint};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a daemon may take until it answers.
const START: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
/// Between two tries to go on after the connection broke.
const BREATH: Duration = Duration::from_millis(100);
/// Tries without an answer, after which nobody waits any longer.
const TRIES: u32 = 50;
/// One that ends at once is tried again: its predecessor may just be ending.
const STARTS: u32 = 3;
const LOG_BYTES: u64 = 10 * 1024 * 1024;
const LOG_LINES: usize = 5;

/// What a daemon gets of our environment, besides what any program may have and what begins with `AGENTD_`.
/// Keys are not among it: they come with each question, from whoever asks.
const OF_DAEMONS: [&str; 15] = [
    "TZ",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "RUST_BACKTRACE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

pub struct Connection {
    pub client: Client,
    home: PathBuf,
    /// The daemon, where we started it: nobody else can reap it.
    daemon: Option<Child>,
    /// Tries in a row that brought nothing.
    in_vain: u32,
}

/// For one question; starts a daemon where none listens.
pub async fn client() -> Result<Client, Error> {
    Ok(Connection::open().await?.client)
}

/// For whoever does not want one to be started.
pub fn client_of_any() -> Result<Client, Error> {
    Ok(client_at(&home::folder()?))
}

fn client_at(home: &Path) -> Client {
    let points = failpoint::folder().map(|_| failpoint::hit_of as agentd_client::Points);
    Client::new(socket(home)).with_points(points)
}

pub fn socket(home: &Path) -> PathBuf {
    Layout::new(home).api_socket()
}

pub fn log(home: &Path) -> PathBuf {
    Layout::new(home).daemon_log()
}

/// Whether somebody listens there.
pub fn listens(socket: &Path) -> Result<bool, Error> {
    match UnixStream::connect(socket) {
        Ok(_) => Ok(true),
        Err(error) => {
            match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(false),
                io::ErrorKind::InvalidInput => Err(cannot_use(socket, error)
                    .next("set AGENTD_HOME to a folder with a shorter path")),
                _ => Err(cannot_use(socket, error)),
            }
        }
    }
}

/// The daemon is not there any more; all that was accepted is.
pub const fn is_gone(error: &agentd_client::Error) -> bool {
    matches!(
        error,
        agentd_client::Error::NotRunning { .. } | agentd_client::Error::Broken(_)
    )
}

impl Connection {
    pub async fn open() -> Result<Self, Error> {
        Self::at(home::folder()?).await
    }

    /// To the daemon of this folder.
    pub async fn at(home: PathBuf) -> Result<Self, Error> {
        let mut connection = Self {
            client: client_at(&home),
            home,
            daemon: None,
            in_vain: 0,
        };
        connection.ensure().await?;
        Ok(connection)
    }

    /// What came of a question; none where the daemon went away before it answered, and is back now.
    pub async fn or_again<T>(
        &mut self,
        answer: Result<T, agentd_client::Error>,
    ) -> Result<Option<T>, Error> {
        match answer {
            Ok(answer) => {
                self.in_vain = 0;
                Ok(Some(answer))
            }
            Err(error) if is_gone(&error) && self.in_vain < TRIES => {
                self.in_vain += 1;
                tokio::time::sleep(BREATH).await;
                self.ensure().await?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The daemon, where we started it.
    pub const fn daemon(&mut self) -> Option<&mut Child> {
        self.daemon.as_mut()
    }

    /// Starts a daemon where none listens.
    pub async fn ensure(&mut self) -> Result<(), Error> {
        if listens(self.client.socket())? {
            return Ok(());
        }
        outside::check(&self.home)?;
        let layout = Layout::new(&self.home);
        let made = private(&layout.run());
        made.map_err(|error| cannot_use(&layout.run(), error))?;
        let deadline = Instant::now() + START;
        // Whoever holds it starts one; the others find it there.
        let Some(_lock) = self.lock(&layout.start_lock(), deadline).await? else {
            return Ok(());
        };
        let mut log_from = 0;
        failpoint::hit("after", "lock");
        for attempt in 1..=STARTS {
            if listens(self.client.socket())? {
                return Ok(());
            }
            log_from = self.start()?;
            if self.answers(deadline).await? {
                return Ok(());
            }
            if Instant::now() >= deadline {
                break;
            }
            tokio::time::sleep(BREATH * attempt).await;
        }
        Err(did_not_start(&self.home, log_from))
    }

    /// The lock, or none where a daemon has come while we waited for it.
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
                    let what = "somebody else is starting the daemon, and it does not answer";
                    return Err(Error::new(Exit::Unavailable, what)
                        .next(format!("look at {}", log(&self.home).display())));
                }
                // tidy: polls for the lock
                Err(TryLockError::WouldBlock) => tokio::time::sleep(POLL).await,
            }
            if listens(self.client.socket())? {
                return Ok(None);
            }
        }
    }

    /// Starts a daemon in a session of its own; where in the log it begins to speak.
    fn start(&mut self) -> Result<u64, Error> {
        let (log, from) = open_log(&self.home)?;
        let also = log
            .try_clone()
            .map_err(|error| cannot_use(&self.home, error))?;
        // This very program, even if its file was replaced since.
        let mut start = Start::new("/proc/self/exe");
        start.args = vec!["daemon".into(), "run".into()];
        start.env = environment(std::env::vars_os());
        start
            .env
            .push(("AGENTD_HOME".into(), self.home.clone().into()));
        // It keeps no folder busy, nor does it depend on ours.
        start.cwd = Some(PathBuf::from("/"));
        start.stdout = log.into();
        start.stderr = also.into();
        start.own = Own::Session;
        let child = start.spawn().map_err(|error| {
            Error::new(Exit::Unavailable, "the daemon cannot be started").because(error)
        })?;
        self.daemon = Some(child);
        failpoint::hit("after", "spawn");
        Ok(from)
    }

    /// Waits until the daemon answers; not if it ends, or takes too long.
    async fn answers(&mut self, deadline: Instant) -> Result<bool, Error> {
        loop {
            let answer = tokio::time::timeout(START, self.client.daemon()).await;
            match answer {
                Ok(Err(error)) if is_gone(&error) => {}
                Ok(_) => return Ok(true),
                Err(_) => return Ok(false),
            }
            let ended = match &mut self.daemon {
                Some(daemon) => daemon.try_wait().ok().flatten().is_some(),
                None => true,
            };
            if ended {
                self.daemon = None;
            }
            if ended || Instant::now() >= deadline {
                return Ok(false);
            }
            // tidy: polls for the daemon
            tokio::time::sleep(POLL).await;
        }
    }
}

fn environment(ours: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let is_for_it = |name: &OsStr| {
        let name = name.to_string_lossy();
        let is_its_own = name.starts_with("AGENTD_") || OF_DAEMONS.contains(&name.as_ref());
        is_its_own || is_handed_on(&name)
    };
    ours.filter(|(name, _)| is_for_it(name)).collect()
}

/// The log, and how long it is. A long one is put aside first, in the place of the one before.
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
    let said = last_lines(&path, log_from);
    let error = Error::new(Exit::Unavailable, "the daemon did not start");
    let error = match said.is_empty() {
        true => error,
        false => error.because(said.join("\n        ")),
    };
    error.next(format!("look at {}", path.display()))
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

fn cannot_use(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::new(
        Exit::Unavailable,
        format!("{} cannot be used", path.display()),
    )
    .because(error)
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
    fn a_long_log_is_put_aside() {
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
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "before\n1\n2\n\n3\n4\n5\n6\n").unwrap();
        assert_eq!(last_lines(&path, 7), ["2", "3", "4", "5", "6"]);
        assert_eq!(last_lines(&path, 18), ["6"]);
    }
}
