//! `agentd man`, which packages are built with: the manual pages are made of the help texts.

use crate::cli::Cli;
use crate::error::Error;
use crate::version;
use clap::{Command, CommandFactory as _};
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

pub fn run(args: &Args) -> Result<(), Error> {
    let what = || format!("cannot write manual pages into {}", args.dir.display());
    write(&args.dir).map_err(|error| Error::of_file(what(), &error))
}

fn write(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    // Without the groups of `agentd --help`: a page has its own list of commands.
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write_page(&command, dir)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_shown_has_a_page() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("man")).unwrap();
        let page = |name: &str| fs::read_to_string(dir.path().join("man").join(name));
        let mut command = Cli::command();
        command.build();
        let verbs = command.get_subcommands().filter(|it| !it.is_hide_set());
        let names = verbs.map(Command::get_name);
        for name in names.filter(|name| *name != "help") {
            let text = page(&format!("agentd-{name}.1")).unwrap_or_default();
            assert!(text.contains(".SH SYNOPSIS"), "{name}: {text}");
            assert!(text.contains("Examples:"), "{name}: {text}");
        }
        let nested = page("agentd-schedule-add.1").unwrap();
        let (date, version) = (version::date(), env!("CARGO_PKG_VERSION"));
        let title = format!(".TH agentd-schedule-add 1 {date} \"agentd {version}\" agentd\n");
        assert!(nested.contains(&title), "{nested}");
        let first = page("agentd.1").unwrap();
        assert!(first.contains("agentd\\-send(1)"), "{first}");
        assert!(first.contains(env!("CARGO_PKG_VERSION")), "{first}");
        for hidden in ["agentd-man.1", "agentd-runtime.1"] {
            assert!(page(hidden).is_err(), "{hidden}");
        }
    }
}
