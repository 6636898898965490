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

A state directory that was copied, restored from a backup or moved to another machine is open read-only until it is \
adopted: its original may be in use. Commands that were running when it was copied become unknown here; turns that \
were under way go on here, as after a crash.

Exit: 0 it is adopted, 3 it is no copy, 4 there is none or it cannot be used.";

/// How long the daemon that has it open may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Make a copied state directory a home of its own
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
        return Err(Error::new(Exit::Refused, what).next("do it from a terminal of your own"));
    }
    let layout = Layout::new(&home);
    let cannot = |error: io::Error| {
        let what = format!("{} cannot be adopted", home.display());
        Error::new(Exit::Unavailable, what).because(error)
    };
    if !home.join("journal.db").is_file() {
        let what = format!("there is no journal in {}", home.display());
        return Err(Error::new(Exit::Unavailable, what)
            .next("set AGENTD_HOME to the state directory that you mean"));
    }
    layout.make().map_err(cannot)?;
    if look(&layout).map_err(cannot)?.1.is_none() {
        let what = format!("{} is no copy", home.display());
        return Err(Error::new(Exit::Refused, what)
            .because("it is where it was made; there is nothing to adopt"));
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
        "{} is a home of its own now (id {})",
        home.display(),
        adopted.id
    ))
}

/// The daemon's lock. A daemon that only reads the copy is stopped for it: no agent's process ends with that.
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
            // It may be ending already.
            drop(client.stop_daemon().await);
        }
        // tidy: polls for the daemon's end
        tokio::time::sleep(POLL).await;
    }
}

fn in_use(home: &Path) -> Error {
    let what = format!("{} is in use", home.display());
    Error::new(Exit::Unavailable, what).next("`agentd daemon stop`, and try again")
}
