//! `agentd daemon`.

use super::status::of_daemon;
use crate::connect::{self, Connection};
use crate::error::{Error, Exit};
use crate::home;
use crate::output::Output;
use crate::outside;
use crate::providers;
use crate::setup;
use agentd_core::catalog::LogLevel;
use agentd_daemon::Settings;
use agentd_process::failpoint;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  agentd daemon status
  agentd daemon stop
  agentd daemon run

Commands that need the daemon start it. When it stops, agents end what they have in hand and keep all they \
have; they go on when it is back.";

/// How long a daemon may take to end.
const STOP: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Run, start or stop the daemon
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Be the daemon, here and until Ctrl-C
    #[command(
        after_help = "Examples:\n  agentd daemon run\n  AGENTD_HOME=/srv/agentd agentd daemon run"
    )]
    Run(Run),
    /// Start the daemon in the background, where none runs
    #[command(after_help = "Examples:\n  agentd daemon start")]
    Start(Json),
    /// Stop the daemon; agents keep all they have
    #[command(after_help = "Examples:\n  agentd daemon stop")]
    Stop(Json),
    /// Say whether a daemon runs, and start none
    #[command(
        after_help = "Examples:\n  agentd daemon status --json | jq .pid\n\nExit: 0 it runs, 4 it does not."
    )]
    Status(Json),
}

#[derive(Debug, clap::Args)]
struct Run {
    /// What runs the agents, in this program's place
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
    /// A daemon hears signals itself, and ends in order.
    pub const fn hears_signals(&self) -> bool {
        matches!(self.verb, Verb::Run(_))
    }
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    match &args.verb {
        Verb::Run(run) => be(run).await,
        Verb::Start(style) => {
            let mut connection = Connection::open().await?;
            // One that was just killed may listen for a moment longer, and answers nobody.
            let daemon = loop {
                let answer = connection.client.daemon().await;
                if let Some(daemon) = connection.or_again(answer).await? {
                    break daemon;
                }
            };
            match style.json {
                true => out.json(&daemon),
                false => out.line(format_args!("the daemon runs, pid {}", daemon.pid)),
            }
        }
        Verb::Stop(style) => stop(style, out).await,
        Verb::Status(style) => status(style, out).await,
    }
}

async fn be(run: &Run) -> Result<(), Error> {
    setup::close_to_others()?;
    let home = home::folder()?;
    outside::check(&home)?;
    let program = match &run.runtime_program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(Error::no_runtime)?,
    };
    let catalog = providers::catalog()?;
    let daemon = catalog.daemon();
    log_to_stderr(daemon.log);
    let settings = Settings {
        home,
        program,
        orphan: Duration::from_millis(daemon.orphan_ms),
        env: providers::env(&catalog),
        runtime_env: std::env::vars_os()
            .filter(|(name, _)| name.to_str().is_some_and(is_handed_on))
            .collect(),
    };
    let ended = agentd_daemon::run(settings).await;
    ended.map_err(|error| {
        let exit = match error {
            agentd_daemon::Error::Taken(_) => Exit::Refused,
            _ => Exit::Unavailable,
        };
        Error::new(exit, "the daemon cannot run").because(error)
    })
}

/// What of this process's environment a runtime's own holds: never a key.
fn is_handed_on(name: &str) -> bool {
    const NAMES: [&str; 16] = [
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
        failpoint::VARIABLE,
    ];
    NAMES.contains(&name)
}

/// Which is the log's file, where the daemon was started in the background.
fn log_to_stderr(level: LogLevel) {
    let level = match level {
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Debug => tracing::Level::DEBUG,
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_max_level(level)
        .with_target(false)
        .init();
}

async fn stop(style: &Json, out: &mut Output) -> Result<(), Error> {
    let client = connect::client_of_any()?;
    if !connect::listens(client.socket())? {
        return match style.json {
            true => out.json(&json!({ "stopped": false })),
            false => out.line("no daemon runs"),
        };
    }
    let daemon = client.stop_daemon().await?;
    let deadline = Instant::now() + STOP;
    while connect::listens(client.socket())? {
        if Instant::now() >= deadline {
            let what = format!("the daemon (pid {}) does not end", daemon.pid);
            let log = connect::log(&home::folder()?);
            return Err(
                Error::new(Exit::Unavailable, what).next(format!("look at {}", log.display()))
            );
        }
        // tidy: polls for the daemon's end
        tokio::time::sleep(POLL).await;
    }
    match style.json {
        true => out.json(&json!({ "stopped": true, "pid": daemon.pid })),
        false => out.line(format_args!("the daemon has stopped (pid {})", daemon.pid)),
    }
}

async fn status(style: &Json, out: &mut Output) -> Result<(), Error> {
    let client = connect::client_of_any()?;
    if !connect::listens(client.socket())? {
        let what = "no daemon runs";
        return Err(Error::new(Exit::Unavailable, what)
            .next("`agentd daemon start`, or any command that needs one"));
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
