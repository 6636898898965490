//! `agentd demo`.

use crate::error::Error;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  agentd demo

It exits with 0 only if everything it says turned out true.";

/// See a conversation survive a kill -9: offline, in seconds
///
/// An agent works with real tools and the model that is built in. Its process is killed while a command
/// runs, and again in the middle of a reply. Each time it goes on: nothing that was acknowledged is
/// missing, the command ran once, the half-written reply is kept and finished, and a reset is undone to
/// the byte. All of it happens in a temporary folder, which is removed at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {}

pub async fn run(_args: &Args, out: &mut Output) -> Result<(), Error> {
    crate::demo::run(out).await
}
