//! `agentd deny`.

use super::approve::{self, Question};
use crate::error::Error;
use crate::output::Output;
use agentd_core::event::Decision;

const EXAMPLES: &str = "\
Examples:
  agentd deny coder
  agentd deny coder 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f

The agent is told that the call was refused, and goes on without it. Without an id, the only call that \
waits is meant.";

/// Say no to a call that waits for your leave
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    question: Question,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    approve::decide(&args.question, Decision::Deny, out).await
}
