//! `agentd context`.

use crate::error::Error;
use crate::output::{HEADING, Output, QUIET};
use crate::untrusted;
use crate::{complete, connect, providers, render};
use agentd_client::api::ModelContext;

const EXAMPLES: &str = "\
Examples:
  agentd context coder
  agentd context coder --full | less
  agentd context coder --json | jq -r .system

The system prompt and the instruction files are those with which the current conversation began; `agentd reset` reads \
the files again. Numbers of tokens are estimates.";

/// Show what the model is given, and how much of its context each part takes
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::archived())]
    name: String,
    /// Print the system prompt and the descriptions of the tools as well
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let context = client.context(&args.name).await?;
    if args.json {
        return out.json(&context);
    }
    let window = window(&context)?;
    for line in render::context::lines(&args.name, &context, window, out.width()) {
        out.line(line)?;
    }
    let agent = client.agent(&args.name).await.ok();
    let dir = agent.as_ref().and_then(|agent| agent.cwd.as_deref());
    for line in untrusted::lines(&client, dir).await {
        out.line(line)?;
    }
    if args.full {
        out.line(format_args!("\n{HEADING}System prompt{HEADING:#}\n"))?;
        out.line(context.system.trim_end())?;
        for tool in &context.tools {
            let (name, what) = (&tool.name, &tool.description);
            out.line(format_args!("\n{HEADING}Tool {name}{HEADING:#}\n\n{what}"))?;
            out.line(format_args!("{QUIET}{}{QUIET:#}", tool.parameters))?;
        }
    }
    Ok(())
}

/// The size of the model's window in tokens, if it is known.
fn window(context: &ModelContext) -> Result<Option<u64>, Error> {
    let Some(model) = &context.model else {
        return Ok(None);
    };
    let catalog = providers::catalog()?;
    let choice = catalog.resolve(context.provider.as_deref(), Some(model));
    let known = choice.ok().and_then(|choice| choice.known);
    Ok(known.and_then(|known| known.window))
}
