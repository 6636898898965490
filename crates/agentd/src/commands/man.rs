//! `agentd man`, which packages are built with: the manual pages are made of the help texts.

use crate::error::Error;
use crate::version;
use clap::Command;
use clap_mangen::Man;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  agentd man target/dist/man";

/// Write the manual pages of all commands into a directory (for packages)
#[derive(Debug, clap::Args)]
#[command(hide = true, after_help = EXAMPLES)]
pub struct Args {
    /// The directory; it is created if it is missing
    #[arg(value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: PathBuf,
}

/// `command` is the command line without the groups of `agentd --help`: a page has its own list of commands.
pub fn run(args: &Args, command: Command) -> Result<(), Error> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let written = fs::create_dir_all(&args.dir).and_then(|()| write_page(&command, &args.dir));
    let what = || format!("cannot write manual pages into {}", args.dir.display());
    written.map_err(|error| Error::of_file(what(), &error))
}

/// `agentd.1`, and a page for each command below it, as `agentd-schedule-add.1`.
fn write_page(command: &Command, dir: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_page(below, dir)?;
    }
    let page = Man::new(command.clone())
        .date(version::date())
        .source(format!("agentd {}", env!("CARGO_PKG_VERSION")))
        .manual("agentd");
    page.generate_to(dir).map(drop)
}
