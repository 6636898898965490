//! `agentd edit`.

use super::tell;
use crate::error::{Error, Exit};
use crate::keys;
use crate::op::Op;
use crate::output::Output;
use crate::{ask, complete, connect, editor, passing, providers};
use agentd_core::spec::{self, AgentSpec};
use agentd_files::own;
use std::path::Path;
use tempfile::NamedTempFile;

const EXAMPLES: &str = "\
Examples:
  agentd edit coder
  EDITOR=\"code --wait\" agentd edit coder

Opens the spec in $VISUAL, $EDITOR or vi: settings in YAML between `---` lines, then the system prompt. \
The new spec is stored when the editor exits, and applies from the next request on.";

/// Edit the settings and the system prompt of an agent
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?.under(args.op.id);
    let before = client.spec(&args.name).await?;
    let file = editor::write(&before.to_markdown())?;
    let spec = loop {
        editor::open(file.path())?;
        match read(file.path()) {
            Ok(spec) => break spec,
            Err(error) if ask::is_possible() => {
                out.aside(&error)?;
                let answer = ask::line("edit again? [Y/n]").await?;
                if !matches!(answer.as_deref(), Some("" | "y" | "Y" | "yes")) {
                    return Err(kept(file, error));
                }
            }
            Err(error) => return Err(kept(file, error)),
        }
    };
    if spec == before {
        return match args.json {
            true => out.json(&client.agent(&args.name).await?),
            false => out.line("no changes"),
        };
    }
    // Another client may have changed the spec while the editor was open.
    if client.spec(&args.name).await? != before {
        let what = format!(
            "{} was changed by another client in the meantime",
            args.name
        );
        return Err(kept(file, Error::new(Exit::Refused, what)));
    }
    passing::tell(&spec, &before, &providers::catalog()?, out)?;
    match keys::set_spec(&client, &args.name, &spec).await {
        Ok(agent) => tell(&agent, args.json, out),
        Err(error) => Err(kept(file, error)),
    }
}

fn read(path: &Path) -> Result<AgentSpec, Error> {
    let cannot = || Error::new(Exit::Usage, "the edited spec is not valid");
    let text = own::read_to_string(path).map_err(|error| cannot().because(error))?;
    spec::parse(&text).map_err(|error| cannot().because(error))
}

/// Keeps the edited file after an error, and adds its path to the error.
fn kept(file: NamedTempFile, error: Error) -> Error {
    match file.keep() {
        Ok((_, path)) => error.next(format!(
            "your edits are in {}: apply them with `agentd apply NAME -f`",
            path.display()
        )),
        Err(_) => error,
    }
}
