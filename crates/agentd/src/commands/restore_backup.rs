//! `agentd restore-backup`.

use super::backup::{absolute, check_caller, watched};
use super::exec::quoted;
use crate::error::Error;
use crate::home;
use crate::output::Output;
use crate::render::count;
use agentd_daemon::backup::{self, Restore, RestoredBackup};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  agentd restore-backup /srv/backups/agentd-20261117T160812345Z-0a1b2c3d.backup
  agentd restore-backup FILE --into /srv/agentd
  mv ~/.local/state/agentd ~/.local/state/agentd.old
  agentd restore-backup FILE --old-home ~/.local/state/agentd.old

Creates a home from a backup, and from the earlier ones that an incremental backup needs; these must be in the same directory. The \
home must be empty. Everything is checked first, and a restore that fails leaves nothing behind. The new home has its own id, and all \
agents are stopped: `agentd start NAME` starts one. Conversations that were purged after the backup are purged again: agentd keeps a \
list of purges beside the backups, and --old-home adds those of a home that still exists. Stored secrets are not in a backup; set them \
again with `agentd secret`. Hooks and settings come from the backup, so restore only a backup that you trust.

Exit: 0 restored, 1 the backup is damaged, 2 not a backup, 3 refused (the home is not empty, or not a directory), 4 unavailable.";

/// Restore all agents from a backup into an empty home
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The backup
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// The new home [default: the state directory]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    into: Option<PathBuf>,
    /// The home that the backup was made of, whose later purges are applied too
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    old_home: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    check_caller("an agent's tools may not restore a backup")?;
    let ask = Restore {
        file: absolute(&args.file)?,
        into: match &args.into {
            Some(dir) => absolute(dir)?,
            None => home::dir()?,
        },
        old_home: args.old_home.as_deref().map(absolute).transpose()?,
    };
    let restored = watched(out, "restoring", |watch| backup::restore(ask, watch)).await?;
    match args.json {
        true => out.json(&restored),
        false => print(&restored, &prefix(&restored), out),
    }
}

/// What a command begins with that is about the restored home: in this shell, `agentd` may use another one.
fn prefix(restored: &RestoredBackup) -> String {
    let is_own = home::dir().is_ok_and(|own| own == Path::new(&restored.home));
    match is_own {
        true => String::new(),
        false => format!("AGENTD_HOME={} ", quoted(&restored.home)),
    }
}

fn print(restored: &RestoredBackup, prefix: &str, out: &mut Output) -> Result<(), Error> {
    out.line(format_args!(
        "{} and {} were restored to {} (id {})",
        count(restored.agents, "agent"),
        count(restored.events, "event"),
        restored.home,
        restored.home_id
    ))?;
    if restored.purged > 0 {
        let purged = count(restored.purged, "conversation");
        out.line(format_args!(
            "  purged again, because purged after the backup: {purged}"
        ))?;
    }
    out.line(format_args!(
        "  all agents are stopped; to start one: {prefix}agentd start NAME"
    ))?;
    out.line(format_args!(
        "  secrets are not in a backup; to set one again: {prefix}agentd secret set NAME"
    ))
}
