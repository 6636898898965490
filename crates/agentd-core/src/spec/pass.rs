//! What tools get by the user's choice, in addition to what every tool gets: variables, sockets and credentials.

use super::path::Path;
use super::problem::Problem;
use super::AgentSpec;
use crate::environment::{MOST_NAMES, refuses};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A service of the user that tools may use: its socket or its files are visible in the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pass {
    SshAgent,
    GpgAgent,
    Docker,
    Kube,
    Gh,
}

impl Pass {
    pub const ALL: [Self; 5] = [
        Self::SshAgent,
        Self::GpgAgent,
        Self::Docker,
        Self::Kube,
        Self::Gh,
    ];

    /// As it is written in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SshAgent => "ssh-agent",
            Self::GpgAgent => "gpg-agent",
            Self::Docker => "docker",
            Self::Kube => "kube",
            Self::Gh => "gh",
        }
    }

    /// The caller's variables that come with it.
    pub const fn variables(self) -> &'static [&'static str] {
        match self {
            Self::SshAgent => &["SSH_AUTH_SOCK"],
            Self::GpgAgent => &["GNUPGHOME"],
            Self::Docker => &["DOCKER_HOST"],
            Self::Kube => &["KUBECONFIG"],
            Self::Gh => &["GH_CONFIG_DIR", "GH_HOST", "GH_TOKEN", "GITHUB_TOKEN"],
        }
    }

    /// What it gives away, for the user who chooses it.
    pub const fn gives_away(self) -> &'static str {
        match self {
            Self::SshAgent => {
                "tools can log in with every key in your SSH agent, wherever these keys are accepted, as long as the \
                 agent runs; they cannot read the keys"
            }
            Self::GpgAgent => {
                "tools can sign and decrypt with every key in your GPG agent whose passphrase it has or asks you for; \
                 they cannot read the keys"
            }
            Self::Docker => {
                "tools can start containers with any of your files, and as root unless Docker is rootless: the sandbox \
                 and `network` no longer restrict them"
            }
            Self::Kube => {
                "tools can read the credentials in your kubeconfig and do in your clusters what you can do there"
            }
            Self::Gh => {
                "tools can read your GitHub token and do with it what it allows, from any machine, until you revoke it"
            }
        }
    }
}

impl AgentSpec {
    /// The caller's variables that tools get by the user's choice.
    pub fn passed_env(&self) -> BTreeSet<String> {
        let of_services = self.pass.iter().flat_map(|pass| pass.variables());
        let of_services = of_services.map(|name| (*name).to_owned());
        // An imported spec has not been checked.
        let named = self.pass_env.iter().filter(|name| refuses(name).is_none());
        named.cloned().chain(of_services).collect()
    }
}

pub(super) fn check(spec: &AgentSpec) -> Result<(), Problem> {
    let path = || Path::key("pass_env");
    for (index, name) in spec.pass_env.iter().enumerate() {
        if let Some(reason) = refuses(name) {
            return Err(Problem::new(path().at(index), reason));
        }
    }
    if spec.pass_env.len() > MOST_NAMES {
        return Err(Problem::new(path(), "more than 64 names; remove some"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_of_a_spec_are_those_of_both_lists() {
        let spec = AgentSpec {
            pass_env: ["DATABASE_URL", "LD_PRELOAD"].map(str::to_owned).into(),
            pass: vec![Pass::SshAgent],
            ..AgentSpec::default()
        };
        let names = ["DATABASE_URL", "SSH_AUTH_SOCK"].map(str::to_owned);
        assert_eq!(spec.passed_env(), names.into());
    }

    #[test]
    fn each_service_has_one_name() {
        for pass in Pass::ALL {
            assert_eq!(serde_json::to_value(pass).unwrap(), pass.name());
            assert!(!pass.variables().is_empty() && !pass.gives_away().is_empty());
        }
    }

    #[test]
    fn a_bad_name_and_an_unknown_service_are_errors_with_their_lines() {
        for (text, line, why) in [
            ("pass_env: [A, LD_PRELOAD]", 2, "load code"),
            ("pass_env:\n  - A\n  - AGENTD_HOME", 4, "its own"),
            ("pass_env: [\"A=1\"]", 2, "not its value"),
            ("pass: [ssh-agent, ssh]", 2, "gpg-agent"),
            ("pass_env: A", 2, ""),
        ] {
            let error = crate::spec::parse(&format!("---\n{text}\n---\n")).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(&format!("line {line}")), "{error}");
            assert!(error.contains(why), "{error}");
        }
        let many: Vec<String> = (0..65).map(|n| format!("A{n}")).collect();
        let spec = AgentSpec {
            pass_env: many,
            ..AgentSpec::default()
        };
        assert!(spec.validate().unwrap_err().reason().contains("64"));
    }
}
