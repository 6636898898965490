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

The agent keeps its id, its names, all its conversations and their costs. The import is refused if an agent with \
that id or name exists, unless --as gives another name: in that case the journal is verified and stored under a new \
id, which records where it comes from.

The settings, queue and hooks may come from an untrusted author, so the agent is held: nothing of it runs before \
`agentd start`, which shows what it contains.";

/// Import an agent from a file that `agentd export` wrote
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file; `-` is standard input
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Import it under another name; if the agent exists already, as a copy with a new id
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
