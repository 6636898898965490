//! `agentd continue`.

use super::{tell, wait};
use crate::connect::Connection;
use crate::error::Error;
use crate::live::Scope;
use crate::op::Op;
use crate::output::Output;
use crate::showing::{Remarks, ShowArgs};
use crate::waiting::Show;
use crate::{complete, keys, render, watch};
use agentd_client::api::Start;

const EXAMPLES: &str = "\
Examples:
  agentd set coder limits.turn.usd=5
  agentd continue coder

Continues a turn that ended at a limit which you have raised since, a turn that waits after a crash \
(`on_crash: wait`), or a turn that waits for a provider key: the keys in your environment are passed on. A terminal \
shows the turn until it has ended, unless --no-wait is given; Ctrl-C stops watching, and the turn continues. Then \
the exit code is that of `agentd wait`.";

/// Continue a turn that ended at a limit or is waiting
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    #[command(flatten)]
    op: Op,
    /// Return as soon as the turn continues
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    show: ShowArgs,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let mut connection = Connection::open().await?;
    let client = connection.client.clone().under(args.op.id);
    let before = client.agent(&args.name).await?;
    let env = keys::env_of(&client, &args.name).await?;
    let agent = client.continue_turn(&args.name, &Start::with(env)).await?;
    if args.no_wait || !args.show.is_live(out) {
        return tell(&agent, args.show.is_json(), out);
    }
    let mut showing = args
        .show
        .showing(Scope::Agent, &agent, Remarks::Omitted, out)?;
    // The events of the turn that is continued may be in the journal before the answer arrives.
    let head = before.head;
    showing.catch_up(&connection, &before, head).await?;
    let agent = watch::idle(&mut connection, agent, head, &mut showing, out).await?;
    match showing.end(None) {
        Show::Json => {
            out.json(&agent)?;
            wait::outcome(&agent).map_err(Error::printed)
        }
        Show::Text | Show::Nothing => {
            out.line(render::agent::line(&agent))?;
            wait::outcome(&agent)
        }
    }
}
