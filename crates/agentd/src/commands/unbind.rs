//! `agentd unbind`.

use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::output::Output;
use agentd_client::api::Unbind;

const EXAMPLES: &str = "\
Examples:
  agentd unbind chat:team/42
  agentd unbind chat:team/42 --now

The address accepts no more messages. Answers that are on their way are still delivered, and then a last message.";

/// Remove the binding of an outside address
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The address
    #[arg(add = complete::addresses())]
    address: String,
    /// Drop what was not delivered, and send no last message
    #[arg(long)]
    now: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let unbind = Unbind { now: args.now };
    let binding = client.unbind(&args.address, unbind).await?;
    match args.json {
        true => out.json(&binding),
        false => out.line(format_args!("{} is no longer bound", binding.address)),
    }
}
