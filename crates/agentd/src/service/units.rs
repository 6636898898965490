//! The texts of the units and of the crontab line.

use std::path::{Path, PathBuf};

/// Some crons read a line of at most about a thousand bytes. Without a longer PATH, the daemon starts at least.
const LONGEST_CRON_PATH: usize = 700;
/// The end of the crontab line, by which `uninstall` finds it.
pub const CRON_MARK: &str = "# agentd daemon install";

/// What the units and the crontab line contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub program: String,
    pub home: String,
    /// The search path of tools whose agents no client has given one.
    pub path: Option<String>,
    /// The user that a system service runs as. None for a service of the user's own manager.
    pub user: Option<String>,
    /// The version of systemd, if it is known. Without it, a unit is written for a present one.
    pub systemd: Option<u32>,
}

/// The first version of systemd that knows `DelegateSubgroup`; earlier ones warn about it at each reload.
const HAS_SUBGROUPS: u32 = 254;

/// A value that no unit can contain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} contains a line break, which a unit cannot")]
pub struct Unfit {
    what: &'static str,
}

impl Unit {
    /// Fails if a value cannot be written into a unit.
    pub fn new(
        program: &Path,
        home: &Path,
        path: Option<String>,
        user: Option<String>,
    ) -> Result<Self, Unfit> {
        let text = |what, value: &Path| fit(what, value.to_string_lossy().into_owned());
        Ok(Self {
            program: text("the path of the program", program)?,
            home: text("the path of the state directory", home)?,
            path: path.map(|path| fit("PATH", path)).transpose()?,
            user: user.map(|user| fit("the user name", user)).transpose()?,
            systemd: None,
        })
    }

    /// The name of both units, without their suffix. A system has one for each user.
    pub fn name(&self) -> String {
        match &self.user {
            Some(user) => format!("agentd-{user}"),
            None => "agentd".to_owned(),
        }
    }

    pub fn socket_path(&self) -> PathBuf {
        Path::new(&self.home).join("run/api.sock")
    }

    /// The line by which a service names its state directory.
    pub fn home_line(&self) -> String {
        format!(
            "Environment={}",
            quoted(&format!("AGENTD_HOME={}", self.home))
        )
    }

    pub fn service(&self) -> String {
        let name = self.name();
        let program = quoted(&self.program).replace('$', "$$");
        let path = self.path.as_ref();
        let path = path.map(|path| format!("Environment={}\n", quoted(&format!("PATH={path}"))));
        let has_subgroups = self.systemd.is_none_or(|version| version >= HAS_SUBGROUPS);
        let subgroup = has_subgroups.then_some("DelegateSubgroup=daemon\n");
        let (edit, wants, user, target) = match &self.user {
            Some(user) => (
                "systemctl edit",
                String::new(),
                format!("User={user}\n"),
                "multi-user.target",
            ),
            None => (
                "systemctl --user edit",
                format!("Wants={name}.socket\nAfter={name}.socket\n"),
                String::new(),
                "default.target",
            ),
        };
        format!(
            "# Written by `agentd daemon install`, which replaces this file. Change it with `{edit} {name}.service`.\n\
             [Unit]\n\
             Description=agentd, which runs AI agents\n\
             {wants}\n\
             [Service]\n\
             Type=notify\n\
             NotifyAccess=main\n\
             {user}{home}\n\
             {path}ExecStart={program} daemon run\n\
             ExecReload={program} daemon reload\n\
             WorkingDirectory=/\n\
             # The end of the daemon ends no agent: only the daemon gets the signal.\n\
             KillMode=process\n\
             # The kernel may end one tool of one agent for lack of memory. The service continues.\n\
             OOMPolicy=continue\n\
             # Tools have cgroups of their own below the service.\n\
             Delegate=yes\n\
             {subgroup}Restart=on-failure\n\
             RestartSec=1\n\
             # Another daemon runs in this state directory: a restart would not change that.\n\
             RestartPreventExitStatus=3\n\
             WatchdogSec=60\n\
             TimeoutStartSec=300\n\
             TimeoutStopSec=60\n\
             \n\
             [Install]\n\
             WantedBy={target}\n",
            home = self.home_line(),
            path = path.unwrap_or_default(),
            subgroup = subgroup.unwrap_or_default(),
        )
    }

    /// The socket, which starts the service. A service of the system has none: systemd would create the socket as root,
    /// and clients trust only a socket of their own user.
    pub fn socket(&self) -> Option<String> {
        if self.user.is_some() {
            return None;
        }
        let name = self.name();
        let path = self.socket_path().to_string_lossy().replace('%', "%%");
        Some(format!(
            "# Written by `agentd daemon install`, which replaces this file. Change it with `systemctl --user edit {name}.socket`.\n\
             [Unit]\n\
             Description=API of agentd\n\
             \n\
             [Socket]\n\
             ListenStream={path}\n\
             SocketMode=0600\n\
             DirectoryMode=0700\n\
             \n\
             [Install]\n\
             WantedBy=sockets.target\n"
        ))
    }

    /// The line of the user's crontab, where there is no systemd.
    pub fn cron_line(&self) -> String {
        let (home, program) = (shell(&self.home), shell(&self.program));
        // The PATH of cron has only the directories of the system.
        let path = self.path.as_ref();
        let path = path.map(|path| format!("PATH={} ", shell(path)));
        let path = path.filter(|path| path.len() <= LONGEST_CRON_PATH);
        let path = path.unwrap_or_default();
        format!("@reboot AGENTD_HOME={home} {path}{program} daemon start {CRON_MARK}")
    }
}

fn fit(what: &'static str, value: String) -> Result<String, Unfit> {
    match value.contains(['\n', '\r']) {
        true => Err(Unfit { what }),
        false => Ok(value),
    }
}

/// A value in quotes; `%` begins a specifier in a unit.
fn quoted(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", value.replace('%', "%%"))
}

/// A value in quotes for the shell; `%` is a line break in a crontab.
fn shell(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''")).replace('%', "\\%")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(home: &str, user: Option<&str>) -> Unit {
        let user = user.map(str::to_owned);
        Unit::new(Path::new("/usr/bin/agentd"), Path::new(home), None, user).unwrap()
    }

    #[test]
    fn special_characters_are_escaped() {
        let odd = Unit {
            program: "/opt/a $b/agentd".to_owned(),
            ..unit("/h/100% \"x\"", None)
        };
        assert_eq!(
            odd.home_line(),
            r#"Environment="AGENTD_HOME=/h/100%% \"x\"""#
        );
        assert!(
            odd.service()
                .contains(r#"ExecStart="/opt/a $$b/agentd" daemon run"#)
        );
        assert!(
            odd.socket()
                .unwrap()
                .contains("ListenStream=/h/100%% \"x\"/run/api.sock\n")
        );
        let line = unit("/h/it's 1%", None).cron_line();
        assert!(line.contains(r"AGENTD_HOME='/h/it'\''s 1\%'"), "{line}");
    }

    /// Regression: systemd 252 warned about an unknown key at each reload.
    #[test]
    fn a_unit_has_only_keys_that_its_systemd_knows() {
        for (systemd, expected) in [
            (None, true),
            (Some(252), false),
            (Some(254), true),
            (Some(257), true),
        ] {
            let unit = Unit {
                systemd,
                ..unit("/h", None)
            };
            let service = unit.service();
            assert_eq!(service.contains("DelegateSubgroup="), expected);
            assert!(service.contains("Delegate=yes\n"), "{service}");
        }
    }

    /// Regression: tools of agents had the PATH of cron after a reboot.
    #[test]
    fn the_crontab_line_has_the_search_path() {
        let mut unit = unit("/h", None);
        assert_eq!(
            unit.cron_line(),
            "@reboot AGENTD_HOME='/h' '/usr/bin/agentd' daemon start # agentd daemon install"
        );
        unit.path = Some("/home/ann/.cargo/bin:/opt/it's 1%:/usr/bin".to_owned());
        assert_eq!(
            unit.cron_line(),
            r"@reboot AGENTD_HOME='/h' PATH='/home/ann/.cargo/bin:/opt/it'\''s 1\%:/usr/bin' '/usr/bin/agentd' daemon start # agentd daemon install"
        );
        unit.path = Some("/long".repeat(200));
        assert!(!unit.cron_line().contains("PATH="));
    }

    #[test]
    fn a_line_break_cannot_add_a_line_to_a_unit() {
        let home = Path::new("/h\nExecStartPre=/bin/evil");
        let made = Unit::new(Path::new("/a"), home, None, None);
        assert!(made.is_err());
    }

    /// Agents' tools inherit it: their files would have other permissions than under a daemon that a command started.
    #[test]
    fn a_service_does_not_change_the_umask_of_tools() {
        for user in [None, Some("ann")] {
            let service = unit("/home/ann/.local/state/agentd", user).service();
            assert!(!service.contains("UMask"), "{service}");
        }
    }

    #[test]
    fn a_system_service_runs_as_one_user() {
        let unit = unit("/home/ann/.local/state/agentd", Some("ann"));
        assert_eq!(unit.name(), "agentd-ann");
        let service = unit.service();
        for line in ["User=ann", "Delegate=yes", "WantedBy=multi-user.target"] {
            assert!(service.lines().any(|it| it == line), "{line}: {service}");
        }
        assert_eq!(unit.socket(), None);
        assert!(!service.contains(".socket\n"), "{service}");
    }
}
