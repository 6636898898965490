//! `agentd apply`.

use crate::connect;
use crate::described::{cwd_of, read_spec, settle_cwd, settle_defaults, settle_provider};
use crate::error::{Error, Exit};
use crate::keys;
use crate::layers::{self, Given};
use crate::op::Op;
use crate::output::Output;
use crate::{complete, passing, providers};
use agentd_client::Kind;
use agentd_client::api::{Agent, Create};
use agentd_core::event::Mode;
use agentd_core::spec::AgentSpec;
use serde_json::json;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  agentd apply -f reviewer.md
  agentd apply second-reviewer -f reviewer.md
  agentd show coder --spec > coder.md; agentd apply -f coder.md

Without NAME, the agent has the name of the file without its extension. It is created if it does not exist. The \
spec is stored, and the file is not read again. If the file sets no directory or provider, an existing agent keeps \
its own.";

/// Create or update an agent from an agent file
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent [default: the name of the file]
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
    let (mut spec, keys) = read_spec(&args.file)?;
    let given = Given {
        file: keys,
        ..Given::default()
    };
    let name = match &args.name {
        Some(name) => name.clone(),
        None => args
            .file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .ok_or_else(|| Error::new(Exit::Usage, "the file has no name").next("pass NAME"))?,
    };
    let client = connect::client().await?.under(args.op.id);
    let stored = match client.spec(&name).await {
        Ok(stored) => Some(stored),
        Err(agentd_client::Error::Problem(problem)) if problem.kind == Kind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let catalog = providers::catalog()?;
    if spec.cwd.is_none()
        && let Some(stored) = &stored
    {
        spec.cwd.clone_from(&stored.cwd);
    }
    if stored.is_none() {
        settle_cwd(&mut spec, None)?;
    }
    let catalog = layers::of(&catalog, cwd_of(&spec)).await?.catalog;
    settle_defaults(&mut spec, &given, &catalog);
    let Some(stored) = stored else {
        settle_provider(&mut spec, &catalog, &providers::stored())?;
        passing::tell(&spec, &AgentSpec::default(), &catalog, out)?;
        let env = providers::env(&catalog, &providers::env_names(&spec));
        let create = Create {
            name: Some(name),
            mode: Some(Mode::Persistent),
            spec,
            env,
            ..Create::default()
        };
        let created = client.create(&create).await?;
        return tell(args, &created.agent, "created", out);
    };
    if spec.provider.is_none() && spec.model.is_none() {
        spec.provider.clone_from(&stored.provider);
    }
    if spec == stored {
        let agent = client.agent(&name).await?;
        return tell(args, &agent, "unchanged", out);
    }
    passing::tell(&spec, &stored, &catalog, out)?;
    let agent = keys::set_spec(&client, &name, &spec).await?;
    tell(args, &agent, "changed", out)
}

fn tell(args: &Args, agent: &Agent, done: &str, out: &mut Output) -> Result<(), Error> {
    match args.json {
        true => out.json(&json!({ "done": done, "agent": agent })),
        false => out.line(format_args!("{}: {done}", agent.name)),
    }
}
