//! `agentd apply`.

use crate::connect;
use crate::described::{read_spec, settle_cwd, settle_defaults, settle_provider};
use crate::error::{Error, Exit};
use crate::keys;
use crate::op::Op;
use crate::output::Output;
use crate::{complete, providers};
use agentd_client::Kind;
use agentd_client::api::{Agent, Create};
use agentd_core::event::Mode;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  agentd apply -f reviewer.md
  agentd apply second-reviewer -f reviewer.md
  agentd show coder --spec > coder.md; agentd apply -f coder.md

The agent is called as the file is, without its extension, unless a name is given. It is created if it is \
not there. The spec that is stored is the only one: the file is not read again. Where the file names no \
directory or provider, an agent keeps its own.";

/// Make an agent what a file says: create it, or change its spec
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent [default: as the file is called]
    #[arg(add = complete::agents())]
    name: Option<String>,
    /// The agent file: settings in YAML between `---` lines, then the system prompt
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    op: Op,
    /// Print the agent and what was done as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let mut spec = read_spec(&args.file)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => args
            .file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .ok_or_else(|| Error::new(Exit::Usage, "the file has no name").next("say NAME"))?,
    };
    let client = connect::client().await?.under(args.op.id);
    let stored = match client.spec(&name).await {
        Ok(stored) => Some(stored),
        Err(agentd_client::Error::Problem(problem)) if problem.kind == Kind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let catalog = providers::catalog()?;
    settle_defaults(&mut spec, &catalog);
    let Some(stored) = stored else {
        settle_cwd(&mut spec, None)?;
        settle_provider(&mut spec, &catalog)?;
        let create = Create {
            name: Some(name),
            mode: Some(Mode::Persistent),
            spec,
            prompt: None,
            env: providers::env(&catalog),
        };
        let created = client.create(&create).await?;
        return tell(args, &created.agent, "created", out);
    };
    if spec.cwd.is_none() {
        spec.cwd.clone_from(&stored.cwd);
    }
    if spec.provider.is_none() && spec.model.is_none() {
        spec.provider.clone_from(&stored.provider);
    }
    if spec == stored {
        let agent = client.agent(&name).await?;
        return tell(args, &agent, "unchanged", out);
    }
    keys::merge_env(&client, &name).await?;
    let agent = client.set_spec(&name, &spec).await?;
    tell(args, &agent, "changed", out)
}

fn tell(args: &Args, agent: &Agent, done: &str, out: &mut Output) -> Result<(), Error> {
    match args.json {
        true => out.json(&json!({ "done": done, "agent": agent })),
        false => out.line(format_args!("{}: {done}", agent.name)),
    }
}
