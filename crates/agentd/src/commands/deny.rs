//! `agentd deny`.

use super::approve::{self, Question};
use crate::error::Error;
use crate::output::Output;
use agentd_client::Client;
use agentd_client::api::Deny;

const EXAMPLES: &str = "\
Examples:
  agentd deny coder
  agentd deny coder --reason 'push to a branch instead'
  agentd deny coder 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f

The model receives the denial, with the reason if you give one, and continues without the call. Without an \
id, denies the only waiting call.";

/// Deny a tool call that is waiting for permission
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    question: Question,
    /// Reason, sent to the model
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let reason = args.reason.clone();
    let deny = async |client: &Client, name: &str, id, hash| {
        client.deny(name, id, &Deny { hash, reason }).await
    };
    approve::answer(&args.question, "denied", deny, out)
        .await
        .map(drop)
}
