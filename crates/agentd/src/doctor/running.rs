//! The daemon: whether it answers, and whether it is of this build.

use super::Finding;
use crate::connect;
use crate::version;
use agentd_client::api::{Daemon, FailingBackup};
use agentd_daemon::layout::Layout;
use std::time::Duration;

/// How long the daemon may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// The longest path of a socket.
const LONGEST: usize = 107;

/// The findings, and the daemon if it answers. A daemon that does not run is not started.
pub async fn look(layout: &Layout) -> (Vec<Finding>, Option<Daemon>) {
    let socket = layout.api_socket();
    let mut findings = Vec::new();
    if socket.as_os_str().len() > LONGEST {
        let what = format!("the path of the socket is too long: {}", socket.display());
        let fix = "set AGENTD_HOME to a directory with a shorter path";
        findings.push(Finding::problem("socket", what, fix));
    }
    if !connect::is_held(layout.home()) {
        let what = "the daemon is not running; the next command starts it";
        findings.push(Finding::ok("daemon", what));
        return (findings, None);
    }
    let client = connect::client_at(layout.home());
    match tokio::time::timeout(ANSWER, client.daemon()).await {
        Ok(Ok(daemon)) => {
            findings.extend(of(&daemon));
            (findings, Some(daemon))
        }
        Ok(Err(error)) => {
            let what = format!("the daemon runs, and does not answer: {error}");
            findings.push(no_answer(layout, what));
            (findings, None)
        }
        Err(_) => {
            let what = format!("the daemon does not answer within {} s", ANSWER.as_secs());
            findings.push(no_answer(layout, what));
            (findings, None)
        }
    }
}

fn no_answer(layout: &Layout, what: String) -> Finding {
    let see = connect::see_log(layout.home());
    let fix = format!("{see}; `kill` ends it, and agents keep running");
    Finding::problem("daemon", what, fix)
}

fn of(daemon: &Daemon) -> Vec<Finding> {
    let own = env!("CARGO_PKG_VERSION");
    let is_same = daemon.version == own && !is_of_another_file(daemon);
    let mut findings = vec![match is_same {
        true => Finding::ok("daemon", format!("it answers (pid {})", daemon.pid)),
        false => Finding::warning(
            "daemon",
            another_build(daemon),
            "`agentd daemon drain && agentd daemon stop`; the next command starts the new one",
        ),
    }];
    if let Some(why) = &daemon.read_only {
        let fix = "`agentd adopt-copy`, if this is the copy that you want to use";
        findings.push(Finding::problem(
            "daemon",
            format!("nothing can be changed: {why}"),
            fix,
        ));
    }
    if let Some(why) = &daemon.without_scopes {
        let what = format!(
            "agents run without scopes, and without `limits.memory_bytes` and `limits.cpu_percent`: {why}"
        );
        let fix = "start your session bus (on Debian: install dbus-user-session), then restart the daemon; or set \
                   `supervisor = \"native\"` under `[daemon]`";
        findings.push(Finding::warning("scopes", what, fix));
    }
    findings.extend(daemon.failing_backup.as_ref().map(of_backup));
    if daemon.draining {
        let what = format!(
            "no turn begins: it is draining, and {} wait",
            daemon.waiting
        );
        findings.push(Finding::warning(
            "daemon",
            what,
            "`agentd daemon drain --off`",
        ));
    } else if daemon.waiting > 0 {
        let what = format!("turns wait to begin: {}", daemon.waiting);
        let fix = "`agentd show NAME` says why";
        findings.push(Finding::warning("daemon", what, fix));
    }
    findings
}

/// How the daemon's build differs. Builds of one version differ in the file that they run.
fn another_build(daemon: &Daemon) -> String {
    let own = version::TEXT;
    if daemon.version != env!("CARGO_PKG_VERSION") {
        let other = &daemon.version;
        return format!("it runs another build: version {other}, and this is {own}");
    }
    let file = |pid: &str| {
        let file = std::fs::read_link(format!("/proc/{pid}/exe"));
        file.map_or_else(|_| "another file".to_owned(), |it| it.display().to_string())
    };
    let (other, this) = (file(&daemon.pid.to_string()), file("self"));
    format!("it runs another build of the same version: {other}, and this is {own}, {this}")
}

fn of_backup(failing: &FailingBackup) -> Finding {
    let (error, attempts) = (&failing.error, failing.attempts);
    let what = format!("the scheduled backup is not made: {error} ({attempts} attempts)");
    let fix = format!(
        "correct it, or `directory` under [backup] in config.toml and restart the daemon; `agentd backup {}` tries now",
        failing.directory
    );
    Finding::problem("backups", what, fix)
}

/// Whether the daemon runs another file than this command. An older daemon does not say which.
fn is_of_another_file(daemon: &Daemon) -> bool {
    daemon.build.is_some() && daemon.build != agentd_process::own_build()
}
