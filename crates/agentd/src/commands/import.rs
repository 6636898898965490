//! `agentd import`.

mod history;
mod settings;

use super::tell;
use crate::complete;
use crate::connect;
use crate::error::{Error, Exit};
use crate::op::Op;
use crate::output::Output;
use agentd_client::api::Import;
use agentd_core::import_history::Program;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

/// How an exported file begins: it is compressed.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// How much of a file is looked at.
const BEGINNING: u64 = 64 * 1024;

const EXAMPLES: &str = "\
Examples:
  agentd import coder.jsonl.zst
  agentd import coder.jsonl.zst --as coder-2
  ssh other agentd export coder - | agentd import -
  agentd import --from claude-code --list
  agentd import --from codex ~/.codex/sessions/2026/11/17/rollout-….jsonl
  agentd import --from goose --session 20261117_1 --as refactoring

The agent keeps its id, its names, all its conversations and their costs. The import is refused if an agent with \
that id or name exists, unless --as gives another name: in that case the journal is verified and stored under a new \
id, which records where it comes from.

With --from, each session of another program becomes an agent with one conversation, which can be continued, rewound, \
forked and searched. --list shows the sessions first. What a file contains besides is left out, and counted in the \
output; a damaged file gives what can be read. The files of the program are not changed.

The settings, queue and hooks may come from an untrusted author, so the agent is held: nothing of it runs before \
`agentd start`, which shows what it contains.";

/// Import an agent from an exported file, or from another program's history
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file; `-` is standard input. With --from, a file or a directory of that program [default with
    /// --list or --session: where the program keeps its histories]
    #[arg(value_hint = clap::ValueHint::AnyPath, required_unless_present_any = ["list", "sessions", "from"])]
    file: Option<PathBuf>,
    /// Import histories of this program
    #[arg(
        long,
        value_name = "PROGRAM",
        value_parser = PossibleValuesParser::new(Program::ALL.map(Program::name))
            .try_map(|name| name.parse::<Program>())
    )]
    from: Option<Program>,
    /// Only list the sessions that are there
    #[arg(long, requires = "from", conflicts_with_all = ["sessions", "name_it"])]
    list: bool,
    /// Only this session, by its id; repeat for several
    #[arg(long = "session", value_name = "ID", requires = "from")]
    sessions: Vec<String>,
    /// Import it under another name; if the agent exists already, as a copy with a new id
    #[arg(long = "as", value_name = "NAME")]
    name_it: Option<String>,
    /// The provider that continues the conversation [default: config.toml, else the first with a key]
    #[arg(long, requires = "from", add = complete::providers())]
    provider: Option<String>,
    /// The model that continues the conversation
    #[arg(long, requires = "from", add = complete::models())]
    model: Option<String>,
    /// Continue with the provider and the model of the history
    #[arg(long, requires = "from", conflicts_with_all = ["provider", "model"])]
    keep_model: bool,
    #[command(flatten)]
    op: Op,
    /// Print the agent as one JSON object; with --from, all agents and reports, or all sessions
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    if let Some(program) = args.from {
        if !args.list && args.file.is_none() && args.sessions.is_empty() {
            let name = program.name();
            let what = format!("which history of {name} is meant?");
            let next = format!(
                "see what is there with `agentd import --from {name} --list`, then import one with `--session ID`, or \
                 give a file or a directory"
            );
            return Err(Error::new(Exit::Usage, what).next(next));
        }
        return match args.list {
            true => history::list(program, args, out).await,
            false => history::import(program, args, out).await,
        };
    }
    let path = args.file.as_deref().unwrap_or_else(|| Path::new("-"));
    let file = open(path).map_err(|error| {
        let what = format!("{} cannot be read", path.display());
        Error::of_file(what, &error)
    })?;
    check_exported(&file, path)?;
    let import = Import {
        name: args.name_it.clone(),
    };
    let client = connect::client().await?.under(args.op.id);
    let agent = client.import(file, &import).await?;
    tell(&agent, args.json, out)?;
    match args.json {
        true => Ok(()),
        false => super::tell_displaced(&agent, out),
    }
}

/// Refuses a file that is no export, before it is sent: histories of other programs need `--from`.
fn check_exported(file: &File, path: &Path) -> Result<(), Error> {
    let cannot = |error: io::Error| {
        let what = format!("{} cannot be read", path.display());
        Error::of_file(what, &error)
    };
    let mut beginning = Vec::new();
    let mut file = file;
    file.take(BEGINNING)
        .read_to_end(&mut beginning)
        .map_err(cannot)?;
    file.rewind().map_err(cannot)?;
    if beginning.is_empty() || beginning.starts_with(&ZSTD) {
        return Ok(());
    }
    let what = format!("{} is not an exported agent", path.display());
    let error = Error::new(Exit::Usage, what);
    let shown = path.display();
    Err(
        match Program::recognized(&String::from_utf8_lossy(&beginning)) {
            Some(program) => {
                let name = program.name();
                let because = format!("it looks like a history of {name}");
                let next = format!("`agentd import --from {name} {shown}`");
                error.because(because).next(next)
            }
            None => {
                let names = Program::ALL.map(Program::name).join("|");
                let next = format!(
                    "`agentd export` writes such files; for the history of another program: `agentd import --from {names} {shown}`"
                );
                error.next(next)
            }
        },
    )
}

/// The file, or what comes from standard input in a file without a name.
fn open(path: &Path) -> io::Result<File> {
    if path != Path::new("-") {
        let file = File::open(path)?;
        // A pipe has no length, and a directory is no file.
        if file.metadata()?.is_file() {
            return Ok(file);
        }
        return spooled(file);
    }
    spooled(io::stdin().lock())
}

fn spooled(mut from: impl io::Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut from, &mut file)?;
    file.rewind()?;
    Ok(file)
}
