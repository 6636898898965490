//! `agentd demo`.

use crate::error::Error;
use crate::output::Output;
use agentd_runtime::provider::DEMO_HELP;

const EXAMPLES: &str = "\
Examples:
  agentd demo
  agentd run --provider demo \"list the files here and count the lines of the largest\"

Exit: 0 only if every check passed.";

/// Show a conversation that survives two kill -9, offline and in seconds
///
/// The demo starts a daemon in a temporary directory and runs an agent with real tools and the built-in
/// model. It kills the agent's process while a command runs: the agent continues by itself, and the command
/// has run once. Then it kills the daemon in the middle of a reply and starts a new one: the agent's process
/// was not restarted, and no text is missing or duplicated. An undone reset restores the conversation byte
/// for byte. At the end the demo removes its files and leaves no process behind.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{DEMO_HELP}"))]
pub struct Args {}

pub async fn run(_args: &Args, out: &mut Output) -> Result<(), Error> {
    crate::demo::run(out).await
}
