//! `agentd daemon reload`.

use crate::connect;
use crate::error::Error;
use crate::output::Output;

/// Make the daemon read config.toml again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  agentd daemon reload

The daemon reads `[daemon]`, `[providers]`, `[models]` and `[retention]`; agents' processes read their settings when they \
start. If the file has an error, the daemon keeps its settings. Changes of `orphan_ms`, `log`, `supervisor`, `[backup]` and \
`[notify]` take effect when the daemon starts again.")]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let daemon = connect::client_of_any()?.reload_daemon().await?;
    if args.json {
        return out.json(&daemon);
    }
    out.line("the daemon has read its settings again")?;
    match daemon.needs_restart.as_slice() {
        [] => Ok(()),
        changed => out.line(format_args!(
            "not in effect until the daemon is restarted: {}",
            changed.join(", ")
        )),
    }
}
