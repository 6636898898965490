//! `agentd restore`.

use crate::complete;
use crate::connect;
use crate::error::Error;
use crate::keys;
use crate::op::Op;
use crate::output::Output;
use agentd_client::api::Restore;

const EXAMPLES: &str = "\
Examples:
  agentd restore coder
  agentd restore coder --as coder-2
  agentd restore 0198c5a2-7d1e-7cc3-98c4-dc0c0c07398f

If several archived agents have the same name, give the id: `agentd list --archived --json`.";

/// Restore an archived agent
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The name or the id of the agent
    #[arg(add = complete::only_archived())]
    name: String,
    /// Restore it under another name, if its own is taken
    #[arg(long = "as", value_name = "NAME")]
    name_it: Option<String>,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?.under(args.op.id);
    let restore = Restore {
        name: args.name_it.clone(),
    };
    let agent = client.restore(&args.name, &restore).await?;
    keys::merge_env(&client, &agent.id.to_string()).await?;
    if args.json {
        return out.json(&agent);
    }
    out.line(format_args!("{} is restored", agent.name))?;
    super::tell_displaced(&agent, out)
}
