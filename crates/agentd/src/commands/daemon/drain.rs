//! `agentd daemon drain`.

use crate::connect;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::render::{count, time};
use agentd_client::api::{Daemon, Drain};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(200);

/// Finish the turns that are running, and start no others
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  agentd daemon drain && agentd daemon stop
  agentd daemon drain --timeout 10m
  agentd daemon drain --off

Prompts are accepted and wait. Turns that wait for an approval or a key do not count as running. The daemon starts turns \
again after `--off`, or when it is started again.

Exit: 0 no turn is running, 124 turns are still running after the timeout.")]
pub struct Args {
    /// Start turns again
    #[arg(long, conflicts_with_all = ["no_wait", "timeout"])]
    off: bool,
    /// Return at once, while turns are running
    #[arg(long)]
    no_wait: bool,
    /// Wait at most this long: 30s, 10m, or a number of seconds
    #[arg(long, value_name = "TIME", value_parser = time::duration, conflicts_with = "no_wait")]
    timeout: Option<Duration>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client_of_any()?;
    let mut daemon = client.drain_daemon(&Drain { off: args.off }).await?;
    let begin = Instant::now();
    let mut is_late = false;
    while !args.off && !args.no_wait && daemon.turns > 0 && !is_late {
        // tidy: polls for the end of turns
        tokio::time::sleep(POLL).await;
        daemon = client.daemon().await?;
        is_late = args.timeout.is_some_and(|limit| begin.elapsed() >= limit);
    }
    let late = (is_late && daemon.turns > 0).then(|| {
        let running = count(daemon.turns, "turn");
        Error::new(
            Exit::TimedOut,
            format!("{running} still running after the timeout"),
        )
        .next(
            "`agentd daemon drain` waits for them again; after `agentd daemon stop`, they continue with the next daemon",
        )
    });
    match (args.json, late) {
        (true, Some(late)) => out.json(&daemon).and(Err(late.printed())),
        (true, None) => out.json(&daemon),
        (false, Some(late)) => Err(late),
        (false, None) => out.line(said(args, &daemon)),
    }
}

fn said(args: &Args, daemon: &Daemon) -> String {
    match (args.off, daemon.turns) {
        (true, _) => "the daemon starts turns again".to_owned(),
        (false, 0) => "no turn is running, and none is started".to_owned(),
        (false, turns) => format!("{} running, and no other is started", count(turns, "turn")),
    }
}
