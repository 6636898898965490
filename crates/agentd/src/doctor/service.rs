//! systemd, lingering and cron.

use super::Finding;
use crate::service::systemd::{self, Manager};
use crate::service::{account, cron};
use agentd_client::api::Daemon;
use agentd_daemon::layout::Layout;

const INSTALL: &str = "`agentd daemon install` starts it at boot";

pub fn look(layout: &Layout, daemon: Option<&Daemon>) -> Vec<Finding> {
    if !systemd::serves(layout.home()) {
        return match systemd::system_service(layout.home()) {
            Some(name) => vec![of_system(&name)],
            None => vec![not_installed()],
        };
    }
    let mut findings = Vec::new();
    if let Some(why) = Manager::User.missing() {
        let what = format!("the service is installed, and systemd cannot be used: {why}");
        let fix = "log in again, or run `agentd daemon uninstall`";
        return vec![Finding::warning("systemd", what, fix)];
    }
    for unit in ["agentd.socket", "agentd.service"] {
        let (enabled, active) = states(Manager::User, unit);
        let is_needed = unit == "agentd.socket" || daemon.is_some();
        let is_well = enabled == "enabled" && (active == "active" || !is_needed);
        findings.push(match is_well {
            true => Finding::ok("systemd", format!("{unit} is {enabled} and {active}")),
            false => Finding::warning(
                "systemd",
                format!("{unit} is {enabled} and {active}"),
                "`agentd daemon install` enables and starts it",
            ),
        });
    }
    findings.push(linger());
    findings
}

/// Whether a unit is enabled, and whether it is active, as `systemctl` says it.
fn states(manager: Manager, unit: &str) -> (String, String) {
    let state = |verb| {
        let ran = manager.ctl(&[verb, unit]);
        ran.map_or_else(|_| "unknown".to_owned(), |ran| ran.out.trim().to_owned())
    };
    (state("is-enabled"), state("is-active"))
}

/// No command starts a service of the system, so it must be active.
fn of_system(unit: &str) -> Finding {
    let (enabled, active) = states(Manager::System, unit);
    let what = format!("{unit} of the system is {enabled} and {active}");
    match enabled == "enabled" && active == "active" {
        true => Finding::ok("systemd", what),
        false => Finding::warning(
            "systemd",
            what,
            format!("sudo systemctl enable --now {unit}"),
        ),
    }
}

fn not_installed() -> Finding {
    match cron::installed() {
        Some(true) => Finding::ok("service", "a line in the crontab starts the daemon at boot"),
        _ => Finding::warning(
            "service",
            "after a reboot, agents continue only when a command is run",
            INSTALL,
        ),
    }
}

fn linger() -> Finding {
    let lingers = account::own().is_some_and(|account| account::lingers(&account));
    match lingers {
        true => Finding::ok("linger", "the daemon starts at boot"),
        false => Finding::warning(
            "linger",
            "the daemon starts when you log in, and ends after you log out",
            "loginctl enable-linger",
        ),
    }
}
