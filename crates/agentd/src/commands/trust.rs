//! `agentd trust`.

use crate::connect;
use crate::error::Error;
use crate::output::Output;
use agentd_client::api::{ProjectTrust, Trust, TrustQuery};
use agentd_core::plain::only_plain;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  agentd trust
  agentd trust ~/src/project
  agentd trust --show

The hooks, settings, skills, agent files (`.agentd/`), `.mcp.json`, `.claude/settings.json` and `.claude/agents` of a \
project come with its repository. They are used only after you have trusted them, and only while their content does not change. Read the files first.";

/// Trust the current content of a project's files for agents
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub which: Which,
    /// Only list the files and whether they are trusted
    #[arg(long, conflicts_with = "hash")]
    show: bool,
    /// Fail unless the files still have this hash; `--show --json` prints it
    #[arg(long, value_name = "HASH")]
    hash: Option<String>,
}

/// A project.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// The project's directory [default: this one]
    #[arg(value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Which {
    /// The absolute path of the directory.
    fn dir(&self) -> Result<String, Error> {
        let given = self.dir.as_deref().unwrap_or(Path::new("."));
        let whole = std::fs::canonicalize(given).map_err(|error| {
            let what = format!("{} is not a directory", given.display());
            Error::of_file(what, &error)
        })?;
        Ok(whole.display().to_string())
    }
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    if args.show {
        let query = TrustQuery {
            dir: args.which.dir()?,
        };
        let found = connect::client().await?.trust(&query).await?;
        return tell(&found, args.which.json, out);
    }
    set(&args.which, args.hash.clone(), true, out).await
}

/// Trusts a project's files, or revokes the trust.
pub async fn set(
    which: &Which,
    hash: Option<String>,
    trusted: bool,
    out: &mut Output,
) -> Result<(), Error> {
    let ask = Trust {
        dir: which.dir()?,
        hash,
        trusted,
    };
    let found = connect::client().await?.set_trust(&ask).await?;
    tell(&found, which.json, out)
}

fn tell(found: &ProjectTrust, json: bool, out: &mut Output) -> Result<(), Error> {
    if json {
        return out.json(found);
    }
    if found.files.is_empty() {
        return out.line(format_args!("{}: no files for agents", found.dir));
    }
    for file in &found.files {
        let state = if file.trusted {
            "trusted in its current state"
        } else {
            "not trusted"
        };
        out.line(format_args!("{}: {state}", file.path))?;
    }
    for skipped in &found.skipped_servers {
        out.aside(format_args!("skipped: {}", only_plain(skipped)))?;
    }
    for unused in &found.unused {
        out.aside(only_plain(unused))?;
    }
    if !found.new_skills.is_empty() {
        out.line("new skills count from an agent's next conversation: a conversation keeps the list that it began with")?;
        out.line("  next: agentd reset NAME, for an agent that works in this project")?;
    }
    Ok(())
}
