//! `agentd create`.

use crate::attach::AttachArgs;
use crate::connect;
use crate::described::Described;
use crate::error::{Error, Exit};
use crate::op::Op;
use crate::output::Output;
use crate::{passing, prompt, providers};
use agentd_client::api::Create;
use agentd_core::event::Mode;
use agentd_core::spec::AgentSpec;

const EXAMPLES: &str = "\
Examples:
  agentd create coder
  agentd create reviewer -f reviewer.md
  agentd create helper --provider ollama --model qwen3 --system \"You answer in one line.\"
  agentd create nightly --cwd ~/project --prompt \"Run the tests and report\"

The agent exists until it is removed. Its working directory is the current one, unless --cwd or the file \
sets another. Send it prompts with `agentd send`.";

/// Create a persistent agent
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The name: lower-case letters, digits, `-`, `_` and `.`
    name: String,
    #[command(flatten)]
    described: Described,
    /// The first prompt; `-` reads it from standard input
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    #[command(flatten)]
    attach: AttachArgs,
    #[command(flatten)]
    op: Op,
    /// Print what was created as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    if !args.attach.is_empty() && args.prompt.is_none() {
        let what = "--attach needs --prompt: files are attached to a prompt";
        return Err(Error::new(Exit::Usage, what).next("pass --prompt, or `agentd send` later"));
    }
    let catalog = providers::catalog()?;
    let spec = args.described.spec(&catalog, out).await?;
    let env = providers::env(&catalog, &providers::env_names(&spec));
    passing::tell(&spec, &AgentSpec::default(), &catalog, out)?;
    let create = Create {
        name: Some(args.name.clone()),
        mode: Some(Mode::Persistent),
        spec,
        prompt: args.prompt.as_deref().map(prompt::read).transpose()?,
        attachments: args.attach.read()?,
        env,
    };
    let client = connect::client().await?;
    let created = client.under(args.op.id).create(&create).await?;
    if args.json {
        return out.json(&created);
    }
    let name = &created.agent.name;
    out.line(format_args!("created {name}"))?;
    super::tell_displaced(&created.agent, out)?;
    match created.prompt {
        Some(_) => out.line(format_args!("  next: agentd logs -f {name}")),
        None => out.line(format_args!("  next: agentd send {name} \"…\"")),
    }
}
