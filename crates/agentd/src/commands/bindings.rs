//! `agentd bindings`.

use crate::connect;
use crate::error::Error;
use crate::output::Output;
use crate::render::table::{Head, table};
use crate::render::{named, time};
use agentd_client::api::Binding;
use agentd_daemon::clock;

const EXAMPLES: &str = "\
Examples:
  agentd bindings
  agentd bindings --json | jq -r '.bindings[].address'";

/// List the outside addresses that are bound to agents
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let all = connect::client().await?.bindings().await?;
    if args.json {
        return out.json(&all);
    }
    if all.bindings.is_empty() {
        return out.line("no bindings");
    }
    let now = clock::now();
    let rows = all.bindings.iter().map(|binding| {
        vec![
            binding.address.clone(),
            named(&binding.agent),
            time::ago(binding.bound_at, now),
            state(binding),
        ]
    });
    let rows: Vec<_> = rows.collect();
    for line in table(
        &["ADDRESS", "AGENT", "BOUND", "STATE"].map(Head::Kept),
        &rows,
        None,
    ) {
        out.line(line)?;
    }
    Ok(())
}

fn state(binding: &Binding) -> String {
    let state = match (binding.released, binding.archived) {
        (true, _) => "released",
        (false, true) => "archived",
        (false, false) => "bound",
    };
    match &binding.error {
        Some(error) => {
            let attempts = binding.failed_attempts;
            format!("{state}; {attempts} attempts failed: {error}")
        }
        None => state.to_owned(),
    }
}
