//! The process that `agentd demo` starts, and kills. Not for people.

use crate::demo::writer;
use crate::error::Error;
use agentd_core::id::AgentId;
use std::path::PathBuf;

/// Work for the demo's agent until killed
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(long, value_name = "DIR")]
    home: PathBuf,
    #[arg(long, value_name = "ID")]
    agent: AgentId,
}

pub async fn run(args: &Args) -> Result<(), Error> {
    writer::work(&args.home, args.agent).await
}
