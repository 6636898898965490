//! `agentd acp`.

use crate::error::Error;
use crate::{acp, complete};

const EXAMPLES: &str = "\
Examples:
  agentd acp                  Each new session creates an agent in the editor's directory
  agentd acp --agent coder    Each new session is a new conversation of `coder`

An editor starts this command and speaks the Agent Client Protocol to it over standard input and output; see docs/acp.md \
for how to set up Zed and others. A session is a conversation. If the editor is closed, the agent continues; `agentd chat` \
shows the same conversation.";

/// Serve an editor that speaks the Agent Client Protocol
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A new session begins a new conversation of this agent, unless its conversation is empty [default: a new agent]
    #[arg(long, value_name = "NAME", add = complete::agents())]
    agent: Option<String>,
}

pub async fn run(args: &Args) -> Result<(), Error> {
    acp::run(args.agent.clone()).await
}
