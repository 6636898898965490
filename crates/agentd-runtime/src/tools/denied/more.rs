//! What a denied call would need, for the model: as entries of `needs`, or as what an approval did not include.

use super::{Actor, Found, NAMED, and};
use agentd_core::needs::Need;
use agentd_process::task::Confined;
use agentd_sandbox::{Network, is_protected};
use std::path::PathBuf;

impl Found {
    /// The entries of `needs` that would open what was denied, as far as the text shows it.
    fn entries(&self, actor: Actor) -> Vec<String> {
        let is_config = |path: &&PathBuf| is_protected(path);
        let mut entries: Vec<String> = Vec::new();
        let plain = self.read_only.iter().filter(|path| !is_config(path));
        entries.extend(
            plain
                .take(NAMED)
                .map(|path| format!("write:{}", path.display())),
        );
        if self.read_only.iter().any(|path| is_protected(path)) {
            entries.push("git-config".to_owned());
        }
        let access = match actor {
            Actor::Command => "read",
            Actor::FileTool | Actor::FileThread => "write",
        };
        // The socket of a service comes with the service.
        let is_of_service = |path: &&PathBuf| {
            !self.services.is_empty() && path.extension().is_some_and(|kind| kind == "sock")
        };
        let hidden = self.hidden.iter().filter(|path| !is_of_service(path));
        let hidden = hidden.take(NAMED);
        entries.extend(hidden.map(|path| format!("{access}:{}", path.display())));
        if self.network {
            entries.push("host:NAME".to_owned());
        }
        let services = self.services.iter();
        entries.extend(services.map(|pass| format!("service:{}", pass.name())));
        if entries.is_empty() && self.call {
            entries.push("everything".to_owned());
        }
        entries
    }

    /// How the model can get more access than the sandbox gives.
    pub(super) fn how_to_ask(&self, confined: &Confined, actor: Actor) -> String {
        let mut settings = Vec::new();
        if confined.is_read_only {
            settings.push("`sandbox: workspace-write` to write the working directory".to_owned());
            settings.push("`readable` for a directory".to_owned());
        } else {
            settings.push("`writable` or `readable` for a directory".to_owned());
        }
        match confined.policy.network {
            Network::On => {}
            Network::Off => settings.push("`network: on`".to_owned()),
            Network::Gate { .. } => settings.push("another host in `network`".to_owned()),
        }
        if self.call {
            settings.push("`sandbox: full-access` to run without a sandbox".to_owned());
        }
        let services = self.services.iter();
        settings.extend(services.map(|pass| format!("`pass: [{}]`", pass.name())));
        let settings = settings.join(", ");
        let entries = self.entries(actor);
        let such = match entries.is_empty() {
            true => String::new(),
            false => format!(" {}", serde_json::json!(entries)),
        };
        let once = match actor {
            Actor::Command => {
                format!("call shell again with `escalate` (the reason) and `needs`{such}")
            }
            Actor::FileTool | Actor::FileThread => {
                format!(
                    "to write, call the tool again with `escalate` (the reason) and `needs`{such}"
                )
            }
        };
        format!(
            "If the task needs more, {once}, or tell the user what it needs and why; the user can change the agent's \
             settings: {settings}."
        )
    }

    /// What the approval of this call did not include.
    pub(super) fn not_included(&self, needs: &[Need], actor: Actor) -> String {
        let mut missing: Vec<String> = Vec::new();
        let paths = |paths: &[PathBuf], access: &str| -> Vec<String> {
            let paths = paths.iter().take(NAMED);
            paths
                .map(|path| format!("{access} access to {}", path.display()))
                .collect()
        };
        missing.extend(paths(&self.read_only, "write"));
        missing.extend(paths(
            &self.hidden,
            match actor {
                Actor::Command => "any",
                Actor::FileTool | Actor::FileThread => "write",
            },
        ));
        if self.network {
            missing.push("this host".to_owned());
        }
        let services = self.services.iter();
        missing.extend(services.map(|pass| format!("service:{}", pass.name())));
        if missing.is_empty() && self.call {
            missing.push("running outside the sandbox (`everything`)".to_owned());
        }
        let what = and(&missing).unwrap_or_else(|| "that".to_owned());
        let file = match needs
            .iter()
            .any(|need| matches!(need, Need::Write(path) if path.is_file()))
        {
            true => {
                " A file that is opened alone can be written, but not replaced by another one: that needs its directory."
            }
            false => "",
        };
        let needs: Vec<String> = needs.iter().map(ToString::to_string).collect();
        format!(
            "The approval did not include {what}; it included only {}.{file} Tell the user what is missing.",
            needs.join(", ")
        )
    }
}
