//! `agentd demo`.

use crate::error::Error;
use crate::output::Output;
use agentd_runtime::provider::DEMO_HELP;

const EXAMPLES: &str = "\
Examples:
  agentd demo
  agentd run --provider demo \"list the files here and count the lines of the largest\"

It exits with 0 only if everything it says turned out true.";

/// See a conversation survive two kill -9: offline, in seconds
///
/// A daemon is started in a temporary directory, and an agent works with real tools and the model that is
/// built in. The agent's process is killed while a command runs: it goes on by itself, and the command
/// ran once. Then the daemon is killed in the middle of a reply and started again: the agent's process
/// was not restarted, and nothing is missing or doubled. A reset is undone to the byte. At the end all of it
/// is removed, and no process is left.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{DEMO_HELP}"))]
pub struct Args {}

pub async fn run(_args: &Args, out: &mut Output) -> Result<(), Error> {
    crate::demo::run(out).await
}
