//! The files of a testbed, as they are before each attack.

use super::testbed::Testbed;
use crate::lab::testbed::{Result, Stuck, lock};
use agentd_client::api::Trust;
use agentd_core::state::Phase;
use std::fs;
use std::path::Path;
use std::process::Command;

impl Testbed {
    /// The user trusts the project's files as they are.
    pub fn trust_project(&self) -> Result<()> {
        let trust = Trust {
            dir: self.work().display().to_string(),
            hash: None,
            trusted: true,
        };
        self.ask("trust", self.client().set_trust(&trust)).map(drop)
    }

    /// Restores everything for the next attack. False if that is impossible.
    pub fn restore(&self) -> Result<bool> {
        if self.daemon_ended() || self.bystander_ended() {
            return Ok(false);
        }
        if self.ask("daemon", self.client().daemon()).is_err() {
            return Ok(false);
        }
        self.restore_files()?;
        for which in ["tcp", "udp", "unix", "abstract", "redirecting"] {
            self.listeners.take(which);
        }
        let agents: Vec<String> = lock(&self.agents).iter().cloned().collect();
        for name in agents {
            let agent = self.show(&name);
            if !agent.is_ok_and(|agent| agent.phase == Phase::Idle && !agent.stopped) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn restore_files(&self) -> Result<()> {
        let words = &self.words;
        let user = self.user();
        for entry in fs::read_dir(&user)? {
            remove(&entry?.path());
        }
        for dir in [".ssh", ".aws"] {
            fs::create_dir_all(user.join(dir))?;
        }
        fs::write(user.join(".ssh/id_ed25519"), format!("{}\n", words.ssh))?;
        fs::write(user.join(".aws/credentials"), format!("{}\n", words.aws))?;
        fs::write(user.join(".bashrc"), "# canary\n")?;
        fs::write(user.join(".profile"), "# canary\n")?;
        let outside = self.outside();
        for entry in fs::read_dir(&outside)? {
            let path = entry?.path();
            if path != self.listeners.unix {
                remove(&path);
            }
        }
        fs::write(outside.join("canary"), format!("{}\n", words.outside))?;
        for file in ["hooks.json", "config.toml", "trusted.json"] {
            remove(&self.state().join(file));
        }
        for entry in fs::read_dir(self.work())? {
            remove(&entry?.path());
        }
        let copied = Command::new("cp")
            .args(["-a", "--"])
            .arg(self.root.join("template/."))
            .arg(self.work())
            .status()?;
        match copied.success() {
            true => Ok(()),
            false => Err(Stuck::Wrong("the work tree cannot be created".to_owned())),
        }
    }

    /// A repository as the user has it.
    pub(super) fn repository(&self) -> Result<()> {
        let template = self.root.join("template");
        let script = "git init -q . && git config user.email a@b.c && git config user.name a && echo x > x && \
                      echo precious > precious && echo precious > keep.secret && git add x precious && \
                      git commit -qm one";
        let made = self
            .command("sh")
            .args(["-c", script])
            .current_dir(&template)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()?;
        match made.status.success() {
            true => Ok(()),
            false => Err(Stuck::Wrong(String::from_utf8_lossy(&made.stderr).into())),
        }
    }
}

fn remove(path: &Path) {
    let is_dir = path.symlink_metadata().is_ok_and(|it| it.is_dir());
    let _none = match is_dir {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
}
