//! `agentd runtime`, which only the daemon starts.

use crate::error::Error;
use crate::{home, runtime};
use agentd_core::id::AgentId;
use agentd_daemon::layout::Layout;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  agentd runtime coder --agent 019b76da-a800-7000-8000-000000000001";

/// Run the turns of one agent (started by the daemon)
#[derive(Debug, clap::Args)]
#[command(hide = true, after_help = EXAMPLES)]
pub struct Args {
    /// The agent's name when the process was started, for `ps`
    #[arg(value_name = "NAME")]
    _shown: String,
    /// The agent's id
    #[arg(long)]
    agent: AgentId,
    /// How long to continue without a daemon, in milliseconds
    #[arg(long, default_value_t = 3_600_000)]
    orphan_ms: u64,
}

pub async fn run(args: Args) -> Result<(), Error> {
    let layout = Layout::new(home::dir()?);
    runtime::run(&layout, args.agent, Duration::from_millis(args.orphan_ms)).await
}
