//! `agentd export`.

use crate::complete;
use crate::connect;
use crate::conversation::Which;
use crate::error::{Error, Exit};
use crate::output::Output;
use agentd_client::api::AgentRef;
use serde_json::json;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

const EXAMPLES: &str = "\
Examples:
  agentd export coder
  agentd export coder backup/coder.jsonl.zst --force
  agentd export coder - | zstd -d | head
  agentd export coder --conversation 2 coder-2.jsonl

Writes one portable file (JSON lines, zstd) with the complete agent; `agentd import` creates the same agent from it. \
With --conversation, writes plain JSON lines for reading: every event of this conversation, preceded by the events \
that it branched off from, and no event of any other conversation.";

/// Export an agent to one portable file
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::archived())]
    name: String,
    /// The file; `-` is standard output [default: NAME.jsonl.zst, or NAME-N.jsonl for conversation N]
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Only this conversation, by its id or number
    #[arg(long, value_name = "ID|N", add = complete::conversations())]
    conversation: Option<Which>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Print the agent, the file and its size as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let path = match (&args.file, &args.conversation) {
        (Some(path), _) => path.clone(),
        (None, Some(which)) => PathBuf::from(format!("{}-{which}.jsonl", args.name)),
        (None, None) => PathBuf::from(format!("{}.jsonl.zst", args.name)),
    };
    let to_stdout = path == Path::new("-");
    if !to_stdout && !args.force && path.exists() {
        let what = format!("{} already exists", path.display());
        return Err(Error::new(Exit::Refused, what).next("pass --force, or another file"));
    }
    let client = connect::client().await?;
    let bytes = match &args.conversation {
        Some(which) => client.transcript(&args.name, &which.to_string()).await?,
        None => client.export(&args.name).await?,
    };
    if to_stdout {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(&bytes).and_then(|()| stdout.flush());
        return written.map_err(|error| Error::of_output(&error));
    }
    write(&path, &bytes, args.force)?;
    if args.json {
        let shown = client.agent(&args.name).await?;
        let agent = AgentRef {
            id: shown.id,
            name: Some(shown.name),
        };
        return out.json(&json!({ "agent": agent, "file": path, "bytes": bytes.len() }));
    }
    let (name, path, length) = (&args.name, path.display(), bytes.len());
    out.line(format_args!(
        "{name} was exported to {path} ({length} bytes)"
    ))
}

/// Writes the file atomically.
fn write(path: &Path, bytes: &[u8], replace: bool) -> Result<(), Error> {
    let cannot = |error: std::io::Error| {
        let what = format!("{} cannot be written", path.display());
        Error::of_file(what, &error)
    };
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let mut file = NamedTempFile::new_in(dir).map_err(cannot)?;
    file.write_all(bytes).map_err(cannot)?;
    file.as_file().sync_all().map_err(cannot)?;
    let put = match replace {
        true => file.persist(path),
        false => file.persist_noclobber(path),
    };
    put.map(|_| ()).map_err(|error| cannot(error.error))
}
