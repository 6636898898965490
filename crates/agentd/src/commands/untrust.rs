//! `agentd untrust`.

use super::trust::{self, Which};
use crate::error::Error;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  agentd untrust
  agentd untrust ~/src/project";

/// Revoke the trust in a project's files
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    which: Which,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    trust::set(&args.which, None, false, out).await
}
