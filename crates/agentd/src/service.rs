//! The daemon as a service: of systemd, or of cron where there is no systemd.
//!
//! - `units`: the texts of the units and of the crontab line. Pure.
//! - `programs`: runs `systemctl`, `loginctl` and `crontab`.
//! - `systemd`: the units of this home, and what is done with them.
//! - `cron`: the line in the user's crontab.
//! - `account`: the user that the daemon runs as.
//! - `started_by`: what the service manager passes to a daemon that it starts.

pub mod account;
pub mod cron;
pub mod programs;
pub mod started_by;
pub mod systemd;
pub mod units;

/// Lets the user's services start at boot and continue after the last session.
pub fn enable_linger() -> Result<(), String> {
    match programs::run("loginctl", &["enable-linger"], "") {
        Ok(ran) if ran.is_ok => Ok(()),
        Ok(ran) => Err(ran.why()),
        Err(error) => Err(error.to_string()),
    }
}
