//! `agentd daemon install` and `agentd daemon uninstall`.

use crate::ask;
use crate::connect::{self, is_held};
use crate::error::{Error, Exit};
use crate::home;
use crate::output::Output;
use crate::service::account::{self, Account};
use crate::service::cron;
use crate::service::systemd::{self, Manager};
use crate::service::units::Unit;
use agentd_process::{Identity, Signal};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the running daemon may take to end.
const END: Duration = Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  agentd daemon install --dry-run
  agentd daemon install
  sudo agentd daemon install --system --user ann

The service starts at boot, and when a command needs it. A daemon that is running is replaced; agents keep running. \
Keys for turns that no command waits for come from `agentd secret set`, or from `key_file` in config.toml.";

/// Install the daemon as a service that starts at boot
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Install {
    #[command(flatten)]
    which: Which,
    /// Print what would be written, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Answer yes to what is offered: lingering, or a line in the crontab
    #[arg(long, short)]
    yes: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "dry_run")]
    json: bool,
}

/// Remove the service; agents keep their state
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agentd daemon uninstall\n  agentd daemon uninstall --dry-run")]
pub struct Uninstall {
    #[command(flatten)]
    which: Which,
    /// Print what would be removed, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "dry_run")]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Which {
    /// A service of the system, which runs as one user (as root only)
    #[arg(long)]
    system: bool,
    /// The user that a service of the system runs as [default: the one that called sudo]
    #[arg(long, value_name = "NAME", requires = "system")]
    user: Option<String>,
}

impl Which {
    fn unit(&self) -> Result<Unit, Error> {
        let program = std::env::current_exe().map_err(Error::no_runtime)?;
        let path = std::env::var("PATH").ok().filter(|path| !path.is_empty());
        let (home, user) = match self.system {
            false => (home::dir()?, None),
            true => {
                let account = self.account()?;
                let named = std::env::var_os("AGENTD_HOME").map(PathBuf::from);
                let usual = || account.home.join(".local/state/agentd");
                (named.unwrap_or_else(usual), Some(account.name))
            }
        };
        Unit::new(&program, &home, path, user)
            .map_err(|unfit| Error::new(Exit::Usage, "no unit can be written").because(unfit))
    }

    fn account(&self) -> Result<Account, Error> {
        let named = self
            .user
            .clone()
            .or_else(|| std::env::var("SUDO_USER").ok());
        let found = match &named {
            Some(name) => account::of_name(name),
            None => account::own(),
        };
        found.ok_or_else(|| {
            let name = named.unwrap_or_else(|| "the current user".to_owned());
            Error::new(Exit::NotFound, format!("{name} is not in /etc/passwd"))
                .next("name a user with `--user`")
        })
    }
}

pub async fn install(args: &Install, out: &mut Output) -> Result<(), Error> {
    let mut unit = args.which.unit()?;
    let manager = Manager::of(&unit);
    let version = manager.version();
    unit.systemd = version.clone().ok().flatten();
    if args.dry_run {
        for (path, text) in systemd::files(&unit)? {
            out.line(format_args!("# {}\n{text}", path.display()))?;
        }
        // A crontab is that of one user: it cannot contain a service of the system.
        if unit.user.is_some() {
            return Ok(());
        }
        let line = unit.cron_line();
        return out.line(format_args!("# without systemd, in the crontab\n{line}"));
    }
    if let Err(why) = version {
        return without_systemd(args, &unit, &why, out).await;
    }
    systemd::check_free(&unit)?;
    systemd::check_only(&unit)?;
    if unit.user.is_some() && is_held(Path::new(&unit.home)) {
        let what = format!("a daemon runs in {}", unit.home);
        return Err(Error::new(Exit::Refused, what)
            .next("stop it as its user with `agentd daemon stop`, then install again"));
    }
    let files = systemd::write(&unit)?;
    manager.order(&["daemon-reload"])?;
    let names = systemd::names(&unit);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    manager.order(&[&["enable"][..], &names].concat())?;
    let replaced = end_running(Path::new(&unit.home)).await?;
    manager.order(&[&["start"][..], &names].concat())?;
    let lingers = linger(args, &unit, out).await?;
    if args.json {
        return out.json(&json!({
            "manager": "systemd", "files": files, "replaced": replaced, "lingers": lingers,
        }));
    }
    for file in files {
        out.line(format_args!("wrote {}", file.display()))?;
    }
    if let Some(pid) = replaced {
        out.line(format_args!(
            "the daemon (pid {pid}) was replaced; agents kept running"
        ))?;
    }
    out.line(format_args!(
        "{}.service is enabled and running",
        unit.name()
    ))?;
    if !lingers {
        out.line(
            "it starts when you log in; to start it at boot, and to keep it after you log out:\n  loginctl enable-linger",
        )?;
    }
    Ok(())
}

/// Ends the daemon that runs in this home, so that the service takes over. The agents' processes continue.
async fn end_running(home: &Path) -> Result<Option<u32>, Error> {
    if !is_held(home) {
        return Ok(None);
    }
    let daemon = connect::client_at(home).daemon().await?;
    let Ok(identity) = Identity::of(daemon.pid) else {
        return Ok(None);
    };
    // An error means that it has ended already.
    let _gone = agentd_process::signal(identity, Signal::TERM);
    let ended = tokio::time::timeout(END, agentd_process::ended(identity)).await;
    match ended {
        Ok(_) => Ok(Some(daemon.pid)),
        Err(_) => {
            let what = format!("the daemon (pid {}) did not end", daemon.pid);
            Err(Error::new(Exit::Unavailable, what)
                .next("`agentd daemon stop`, then install again"))
        }
    }
}

/// Whether the service starts at boot. If it does not yet, offers to change that.
async fn linger(args: &Install, unit: &Unit, out: &mut Output) -> Result<bool, Error> {
    let Some(account) = account::own().filter(|_| unit.user.is_none()) else {
        return Ok(unit.user.is_some());
    };
    if account::lingers(&account) {
        return Ok(true);
    }
    let question =
        "Start it at boot, and keep it after you log out (loginctl enable-linger)? [y/N]";
    if !offered(args, question).await? {
        return Ok(false);
    }
    match crate::service::enable_linger() {
        Ok(()) => Ok(true),
        Err(why) => {
            out.aside(format_args!("lingering was not enabled: {why}"))?;
            Ok(false)
        }
    }
}

async fn offered(args: &Install, question: &str) -> Result<bool, Error> {
    if args.yes {
        return Ok(true);
    }
    if args.json || !ask::is_possible() {
        return Ok(false);
    }
    let answer = ask::line(question).await?.unwrap_or_default();
    Ok(answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes"))
}

/// Offers a line in the crontab.
async fn without_systemd(
    args: &Install,
    unit: &Unit,
    why: &str,
    out: &mut Output,
) -> Result<(), Error> {
    let lacking = Error::new(Exit::Unavailable, "systemd cannot be used").because(why);
    if let Some(user) = &unit.user {
        return Err(lacking.next(format!(
            "start the daemon at boot in another way, as {user}; `agentd daemon install --dry-run` of that user prints a \
             line for the crontab"
        )));
    }
    let line = unit.cron_line();
    if cron::installed().is_none() {
        return Err(lacking.next(format!("start the daemon at boot in another way: `{line}`")));
    }
    let question =
        format!("systemd cannot be used ({why}). Add this line to your crontab?\n  {line}\n[y/N]");
    if !offered(args, &question).await? {
        return Err(lacking.next("`agentd daemon install --yes` adds a line to your crontab"));
    }
    cron::add(unit)?;
    match args.json {
        true => out.json(&json!({ "manager": "cron", "line": line })),
        false => out.line(format_args!("added to the crontab: {line}")),
    }
}

pub fn uninstall(args: &Uninstall, out: &mut Output) -> Result<(), Error> {
    let unit = args.which.unit()?;
    let manager = Manager::of(&unit);
    let files = systemd::files(&unit)?.into_iter().map(|(path, _)| path);
    let existing: Vec<PathBuf> = files.filter(|path| path.exists()).collect();
    // A service of the system has no line in a crontab.
    let has_cron = unit.user.is_none();
    if args.dry_run {
        for path in &existing {
            out.line(format_args!("would remove {}", path.display()))?;
        }
        let is_in_cron = has_cron && cron::installed() == Some(true);
        return match (is_in_cron, existing.is_empty()) {
            (true, _) => out.line("would remove a line from the crontab"),
            (false, true) => out.line("the service is not installed: nothing would be removed"),
            (false, false) => Ok(()),
        };
    }
    systemd::check_free(&unit)?;
    if !existing.is_empty() && manager.missing().is_none() {
        let names = systemd::names(&unit);
        // The socket first: otherwise a connection would start the service again.
        for name in &names {
            manager.order(&["stop", name])?;
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        manager.order(&[&["disable"][..], &names].concat())?;
    }
    let removed = systemd::remove(&unit)?;
    if !removed.is_empty() && manager.missing().is_none() {
        manager.order(&["daemon-reload"])?;
    }
    let was_in_cron = has_cron && cron::remove()?;
    if args.json {
        return out.json(&json!({ "files": removed, "cron": was_in_cron }));
    }
    for path in &removed {
        out.line(format_args!("removed {}", path.display()))?;
    }
    if was_in_cron {
        out.line("removed a line from the crontab")?;
    }
    match removed.is_empty() && !was_in_cron {
        true => out.line("the service is not installed"),
        false => out.line("agents that are running continue; the next command starts a daemon"),
    }
}
