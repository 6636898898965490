//! `agentd daemon`.

use crate::error::{Error, Exit};
use crate::home;
use agentd_daemon::Settings;
use std::time::Duration;

/// Run the daemon
#[derive(Debug, clap::Args)]
pub struct Args {
    verb: Option<String>,
}

pub async fn run(_args: Args) -> Result<(), Error> {
    let program = std::env::current_exe().map_err(Error::no_runtime)?;
    let settings = Settings {
        home: home::folder()?,
        program,
        orphan: Duration::from_secs(3600),
        env: std::env::vars().collect(),
    };
    let ran = agentd_daemon::run(settings).await;
    ran.map_err(|error| Error::new(Exit::Unavailable, "the daemon cannot run").because(error))
}
