//! `agentd import`.

use super::tell;
use crate::connect;
use crate::error::Error;
use crate::op::Op;
use crate::output::Output;
use agentd_client::api::Import;
use std::io::Read as _;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  agentd import coder.jsonl.zst
  agentd import coder.jsonl.zst --as coder-2
  ssh other agentd export coder - | agentd import -

The agent comes with its id, its names, all its conversations and what they cost. It is refused where an \
agent of that id or name is there already, unless --as gives it another name: the journal is verified, and kept \
under a new id that records where it comes from.

Its settings, its queue and its hooks may be a stranger's: the agent is held. Nothing of it runs before `agentd \
start`, which shows what it contains.";

/// Take an agent from a file that `agentd export` wrote
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file; `-` is standard input
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Import it under another name; where the agent is there already, as a copy with an id of its own
    #[arg(long = "as", value_name = "NAME")]
    name_it: Option<String>,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let bytes = read(&args.file).map_err(|error| {
        let what = format!("{} cannot be read", args.file.display());
        Error::of_file(what, &error)
    })?;
    let import = Import {
        name: args.name_it.clone(),
    };
    let client = connect::client().await?.under(args.op.id);
    let agent = client.import(bytes.into(), &import).await?;
    tell(&agent, args.json, out)?;
    match args.json {
        true => Ok(()),
        false => super::tell_displaced(&agent, out),
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}
