//! `agentd adopt-copy`.

use crate::connect;
use crate::error::{Error, Exit};
use crate::home;
use crate::output::Output;
use crate::outside;
use agentd_daemon::home::{adopt, look};
use agentd_daemon::layout::{self, Layout};
use serde_json::json;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  cp -a ~/.local/state/agentd /srv/agentd
  AGENTD_HOME=/srv/agentd agentd adopt-copy

A state directory that was copied, restored from a backup or moved to another machine is read-only until it is \
adopted, because the original may be in use. After adoption, commands that were running at the time of the copy have \
an unknown outcome, and turns that were running continue as after a crash.

Exit: 0 adopted, 3 not a copy, 4 the state directory does not exist or cannot be used.";

/// How long a daemon that has the directory open may take to exit.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Adopt a copied state directory, so that it can be used
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let home = home::dir()?;
    if outside::is_in_task() {
        let what = "an agent's tools may not adopt a state directory";
        return Err(Error::new(Exit::Refused, what).next("run it in a terminal of your own"));
    }
    let layout = Layout::new(&home);
    let cannot = |error: io::Error| {
        let what = format!("{} cannot be adopted", home.display());
        Error::new(Exit::Unavailable, what).because(error)
    };
    if !home.join("journal.db").is_file() {
        let what = format!("{} has no journal", home.display());
        return Err(Error::new(Exit::Unavailable, what)
            .next("set AGENTD_HOME to the right state directory"));
    }
    layout.make().map_err(cannot)?;
    if look(&layout).map_err(cannot)?.1.is_none() {
        let what = format!("{} is not a copy", home.display());
        return Err(Error::new(Exit::Refused, what)
            .because("it is still where it was created; there is nothing to adopt"));
    }
    let _lock = lock(&layout).await?;
    let adopted = adopt(&layout).map_err(cannot)?;
    if args.json {
        return out.json(&json!({
            "home": home.display().to_string(), "home_id": adopted.id,
            "copied_from": adopted.copied_from,
        }));
    }
    out.line(format_args!(
        "{} is adopted (id {})",
        home.display(),
        adopted.id
    ))
}

/// Takes the daemon's lock. A daemon that serves the copy read-only is stopped; it has no agents' processes to end.
async fn lock(layout: &Layout) -> Result<std::fs::File, Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match layout::hold(&layout.daemon_lock()) {
            Ok(lock) => return Ok(lock),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(in_use(layout.home()).because(error));
            }
            Err(_) if Instant::now() >= deadline => return Err(in_use(layout.home())),
            Err(_) => {}
        }
        let client = connect::client_of_any()?;
        if connect::listens(client.socket())? {
            // It may already be shutting down.
            drop(client.stop_daemon().await);
        }
        // tidy: polls for the daemon's end
        tokio::time::sleep(POLL).await;
    }
}

fn in_use(home: &Path) -> Error {
    let what = format!("{} is in use", home.display());
    Error::new(Exit::Unavailable, what).next("`agentd daemon stop`, then try again")
}
