//! `agentd daemon`.

mod drain;
mod install;
mod reload;

use super::status::of_daemon;
use crate::connect::{self, Connection, is_held};
use crate::error::{Error, Exit};
use crate::home;
use crate::log::{LineStyle, Log};
use crate::output::Output;
use crate::outside;
use crate::providers;
use crate::service::{started_by, systemd};
use crate::setup;
use agentd_client::Kind;
use agentd_core::catalog::{Catalog, LogLevel};
use agentd_core::spec::AgentSpec;
use agentd_daemon::confine;
use agentd_daemon::layout::Layout;
use agentd_daemon::stop_mark::StopMark;
use agentd_daemon::{ScheduledBackups, Settings, StartError};
use agentd_failpoint as failpoint;
use agentd_process::Identity;
use agentd_store::{Options, SqliteStore, Store};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  agentd daemon status
  agentd daemon stop
  agentd daemon run
  agentd daemon install

Commands that need the daemon start it. When it stops, it waits up to 20 s for tools that are running; a command \
that runs longer continues by itself. Turns continue when a daemon runs again.";

/// How long a daemon may take to end.
const STOP: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// The size at which the log is rotated.
const LOG_CAP: u64 = 10 * 1024 * 1024;

/// Run, start, stop, install or query the daemon
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Run the daemon in the foreground until Ctrl-C
    #[command(
        after_help = "Examples:\n  agentd daemon run\n  AGENTD_HOME=/srv/agentd agentd daemon run"
    )]
    Run(Run),
    /// Start the daemon in the background, unless it is running
    #[command(after_help = "Examples:\n  agentd daemon start")]
    Start(Json),
    /// Stop the daemon; agents keep their state
    #[command(after_help = "Examples:\n  agentd daemon stop")]
    Stop(Json),
    /// Show whether the daemon is running, without starting it
    #[command(
        after_help = "Examples:\n  agentd daemon status --json | jq .pid\n\nExit: 0 running, 4 not running."
    )]
    Status(Json),
    Install(install::Install),
    Uninstall(install::Uninstall),
    Drain(drain::Args),
    Reload(reload::Args),
}

#[derive(Debug, clap::Args)]
struct Run {
    /// Program that runs the agents, instead of this one
    #[arg(long, value_name = "PATH", hide = true)]
    runtime_program: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Json {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// `daemon run` handles signals itself and shuts down in order.
    pub const fn handles_signals(&self) -> bool {
        matches!(self.verb, Verb::Run(_))
    }
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    match &args.verb {
        Verb::Run(run) => be(run).await,
        Verb::Start(style) => {
            // The socket of a daemon that was just killed may accept for a moment longer: the client retries.
            let daemon = connect::client().await?.daemon().await?;
            match style.json {
                true => out.json(&daemon),
                false => out.line(format_args!("the daemon is running (pid {})", daemon.pid)),
            }
        }
        Verb::Stop(style) => stop(style, out).await,
        Verb::Status(style) => status(style, out).await,
        Verb::Install(args) => install::install(args, out).await,
        Verb::Uninstall(args) => install::uninstall(args, out),
        Verb::Drain(args) => drain::run(args, out).await,
        Verb::Reload(args) => reload::run(args, out).await,
    }
}

/// The open files of a daemon with all its connections, streams and agents.
const OPEN_FILES: u64 = 16_384;
/// Below this, the daemon warns: its connections alone may need more.
const FEW_OPEN_FILES: u64 = 2048;

async fn be(run: &Run) -> Result<(), Error> {
    // First: later descriptors must not get the number of the one that the service manager passed.
    let service = started_by::manager();
    setup::close_to_others()?;
    let home = home::dir()?;
    outside::check()?;
    home::check_whole(&home)?;
    let program = match &run.runtime_program {
        Some(program) => program.clone(),
        // Its own image: the daemon and a file that replaced it meanwhile may speak different versions of the link.
        None => PathBuf::from("/proc/self/exe"),
    };
    let catalog = providers::catalog()?;
    let daemon = catalog.daemon();
    let style = match started_by::logs_to_journal() {
        true => LineStyle::Journal,
        false => LineStyle::Plain,
    };
    let log = Log::start(level(daemon.log), style, &connect::log(&home), LOG_CAP);
    let log = log.map_err(Error::no_runtime)?;
    let settings = Settings {
        home,
        program,
        orphan: Duration::from_millis(daemon.orphan_ms),
        backups: backups(&catalog)?,
        env: providers::env(&catalog, &of_defaults(&catalog)),
        catalog,
        runtime_env: std::env::vars_os()
            .filter(|(name, _)| name.to_str().is_some_and(is_handed_on))
            .collect(),
        desktop_env: std::env::vars_os()
            .filter(|(name, _)| name.to_str().is_some_and(finds_screen))
            .collect(),
        service,
        reload: || providers::catalog().map_err(|error| error.to_string()),
    };
    tell_open_files(agentd_process::raise_open_files(OPEN_FILES));
    let ended = agentd_daemon::run(settings, open_store).await;
    log.flush();
    ended.map_err(|error| {
        let exit = match error {
            StartError::Taken(_) => Exit::Refused,
            _ => Exit::Unavailable,
        };
        Error::new(exit, "the daemon cannot run").because(error)
    })
}

/// Says at the start that the daemon may not have enough files open: later there may be none left to say it with.
fn tell_open_files(limit: std::io::Result<u64>) {
    match limit {
        Ok(limit) if limit < FEW_OPEN_FILES => tracing::warn!(
            limit,
            wanted = OPEN_FILES,
            "few open files allowed: clients wait when they are used up; raise the hard limit (`ulimit -Hn`)"
        ),
        Ok(limit) => tracing::debug!(limit, "limit of open files"),
        Err(error) => tracing::warn!(%error, "limit of open files not raised"),
    }
}

/// The backups that the daemon makes by itself.
fn backups(catalog: &Catalog) -> Result<Option<ScheduledBackups>, Error> {
    let Some(backup) = catalog.backup() else {
        return Ok(None);
    };
    let directory = match backup.directory.strip_prefix("~/") {
        None => PathBuf::from(&backup.directory),
        Some(below) => {
            let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
            let what = "`backup.directory` in config.toml begins with ~/, and HOME is not set";
            let home = home.ok_or_else(|| Error::new(Exit::Unavailable, what))?;
            PathBuf::from(home).join(below)
        }
    };
    Ok(Some(ScheduledBackups {
        directory,
        every: Duration::from_millis(backup.every_ms),
        keep: backup.keep,
    }))
}

/// The variables that the user's defaults pass to the tools of new agents.
fn of_defaults(catalog: &Catalog) -> BTreeSet<String> {
    let mut spec = AgentSpec::default();
    catalog.agents().apply(&mut spec, &BTreeSet::new());
    spec.passed_env()
}

/// The store of a daemon: SQLite, in its state directory.
fn open_store(layout: &Layout) -> agentd_store::Result<Arc<dyn Store>> {
    let mut options = Options::new(layout.home());
    options.beside = vec![layout.agents()];
    options.failpoints = failpoint::dir().map(|_| failpoint::hit_of as agentd_store::Failpoints);
    options.injected_bugs =
        failpoint::dir().map(|_| failpoint::injected_bug as agentd_store::InjectedBugs);
    Ok(Arc::new(SqliteStore::open(options)?))
}

/// The variables of this process that a runtime inherits: never a key.
fn is_handed_on(name: &str) -> bool {
    const NAMES: [&str; 17] = [
        "PATH",
        "HOME",
        "LANG",
        "TMPDIR",
        "TZ",
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
        confine::VARIABLE,
        failpoint::VARIABLE,
    ];
    NAMES.contains(&name)
}

/// The variables of this process by which `notify-send` finds the user's screen.
fn finds_screen(name: &str) -> bool {
    const NAMES: [&str; 8] = [
        "PATH",
        "HOME",
        "LANG",
        "DISPLAY",
        "XAUTHORITY",
        "WAYLAND_DISPLAY",
        "XDG_RUNTIME_DIR",
        "DBUS_SESSION_BUS_ADDRESS",
    ];
    NAMES.contains(&name)
}

const fn level(level: LogLevel) -> tracing::Level {
    match level {
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Debug => tracing::Level::DEBUG,
    }
}

async fn stop(style: &Json, out: &mut Output) -> Result<(), Error> {
    let home = home::dir()?;
    // Before the daemon: a connection would start it again. A connection that only asks would start it too, so the lock
    // tells whether it runs.
    let is_service = systemd::stop_socket(&home)?;
    let client = connect::client_at(&home);
    let listens = !is_service && connect::listens(client.socket())?;
    if !listens && !is_held(&home) {
        return match style.json {
            true => out.json(&json!({ "stopped": false })),
            false => out.line("the daemon is not running"),
        };
    }
    let deadline = Instant::now() + STOP;
    let pid = loop {
        let why = match stop_once(&home, deadline).await? {
            StopAttempt::Stopped(pid) => break pid,
            StopAttempt::Again(why) => why,
        };
        if Instant::now() >= deadline {
            let error = does_not_end(&home, "the daemon did not stop");
            return Err(match why {
                Some(why) => error.because(why),
                None => error,
            });
        }
    };
    match style.json {
        true => out.json(&json!({ "stopped": true, "pid": pid })),
        false => out.line(format_args!("the daemon has stopped (pid {pid})")),
    }
}

/// What became of a daemon that was asked to stop.
enum StopAttempt {
    /// The daemon with this pid has stopped.
    Stopped(u32),
    /// It ended in another way: by a signal, or before it was done. The agents' processes continue in that case, and another
    /// daemon must end them. Or it could not be asked, for the reason that it gave.
    Again(Option<String>),
}

/// Asks a daemon to end the agents' processes and then itself.
async fn stop_once(home: &Path, deadline: Instant) -> Result<StopAttempt, Error> {
    let connection = Connection::at(home.to_owned()).await?;
    let asked = connect::client_at(home).stop_daemon().await;
    let daemon = match asked {
        Ok(daemon) => daemon,
        Err(error) if error.is_gone() || is_ending(&error) => {
            // tidy: polls for the end of a daemon that is already ending
            tokio::time::sleep(POLL).await;
            return Ok(StopAttempt::Again(Some(error.to_string())));
        }
        Err(error) => return Err(error.into()),
    };
    let pid = daemon.pid;
    // Wait for the process, not only for its socket: after this command the home can be copied.
    if let Ok(identity) = Identity::of(pid) {
        let ours = connection.take_daemon();
        let ours = ours.filter(|child| child.identity() == identity);
        let ended = tokio::time::timeout_at(deadline.into(), agentd_process::ended(identity));
        match ended.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(Error::no_runtime(std::io::Error::other(error))),
            Err(_) => {
                let what = format!("the daemon (pid {pid}) did not exit");
                return Err(does_not_end(home, &what));
            }
        }
        if let Some(mut child) = ours {
            // It has exited: this only reaps it.
            let _reaped = child.try_wait();
        }
    }
    let mark = StopMark::read(&Layout::new(home));
    let is_complete = mark.is_some_and(|mark| mark.pid == pid && mark.complete);
    Ok(match is_complete {
        true => StopAttempt::Stopped(pid),
        false => StopAttempt::Again(None),
    })
}

/// Whether the daemon was already shutting down when the request arrived.
fn is_ending(error: &agentd_client::Error) -> bool {
    matches!(error, agentd_client::Error::Problem(problem) if problem.kind == Kind::Unavailable)
}

fn does_not_end(home: &Path, what: &str) -> Error {
    Error::new(Exit::Unavailable, what).next(connect::see_log(home))
}

async fn status(style: &Json, out: &mut Output) -> Result<(), Error> {
    let client = connect::client_of_any()?;
    let is_down = match home::own_socket() {
        // A connection to the service manager's socket would start the daemon.
        None if systemd::serves(&home::dir()?) => !is_held(&home::dir()?),
        _ => !connect::listens(client.socket())?,
    };
    if is_down {
        let what = "the daemon is not running";
        return Err(Error::new(Exit::Unavailable, what)
            .next("`agentd daemon start`, or any command that needs the daemon"));
    }
    let daemon = client.daemon().await?;
    if style.json {
        return out.json(&daemon);
    }
    for line in of_daemon(&daemon) {
        out.line(line)?;
    }
    Ok(())
}
