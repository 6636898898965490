//! What the service manager passes to a daemon that it starts.

use agentd_daemon::service::{Notify, Service};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::Duration;

/// Reads the variables of the service manager, and takes the socket that it passed. The caller has not opened a file
/// yet. What cannot be used is left out: the daemon then runs without it.
pub fn manager() -> Service {
    read(variable)
}

fn read(variable: impl Fn(&str) -> Option<OsString>) -> Service {
    let pid = std::process::id();
    let number = |name: &str| -> Option<u64> { variable(name)?.to_str()?.parse().ok() };
    let is_for_us = |name: &str| number(name).is_none_or(|of| of == u64::from(pid));
    let is_passed = number("LISTEN_PID") == Some(pid.into()) && number("LISTEN_FDS") >= Some(1);
    let watchdog = number("WATCHDOG_USEC").filter(|_| is_for_us("WATCHDOG_PID"));
    let notify = variable("NOTIFY_SOCKET").and_then(|name| Notify::at(&name).ok());
    Service {
        listener: match is_passed {
            true => agentd_process::inherited_socket().ok().map(Arc::new),
            false => None,
        },
        // Only a user's manager sets MANAGERPID. Programs that its services start inherit the variable, so it is not
        // enough by itself.
        is_users_own: notify.is_some() && number("MANAGERPID").is_some(),
        notify: notify.map(Arc::new),
        watchdog: watchdog
            .map(Duration::from_micros)
            .filter(|it| !it.is_zero()),
        without_scopes: Arc::default(),
    }
}

/// Whether standard error goes to systemd's journal: lines then have a priority, and no time of their own.
pub fn logs_to_journal() -> bool {
    let Some(stream) = variable("JOURNAL_STREAM") else {
        return false;
    };
    let own = std::fs::metadata("/proc/self/fd/2");
    own.is_ok_and(|own| stream.to_str() == Some(&format!("{}:{}", own.dev(), own.ino())))
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_of_the_system_is_not_one_of_the_users_manager() {
        let is_users_own = |set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(key, _)| *key == name);
            read(|name| value(name).map(|(_, value)| OsString::from(*value))).is_users_own
        };
        let (notify, manager) = (("NOTIFY_SOCKET", "@agentd"), ("MANAGERPID", "812"));
        assert!(is_users_own(&[notify, manager]));
        // A service of the system, and a program that a service of the user has started.
        assert!(!is_users_own(&[notify]));
        assert!(!is_users_own(&[manager]));
    }
}
