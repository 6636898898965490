//! `agentd import`.

use super::tell;
use crate::connect;
use crate::error::{Error, Exit};
use crate::output::Output;
use std::io::Read as _;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  agentd import coder.jsonl.zst
  ssh other agentd export coder - | agentd import -

The agent comes with its id, its names, all its conversations and what they cost. It is refused where an \
agent of that id or name is there already.";

/// Take an agent from a file that `agentd export` wrote
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file; `-` is standard input
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let bytes = read(&args.file).map_err(|error| {
        let what = format!("{} cannot be read", args.file.display());
        Error::new(Exit::Refused, what).because(error)
    })?;
    let agent = connect::client().await?.import(bytes.into()).await?;
    tell(&agent, args.json, out)
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}
