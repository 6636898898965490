//! The user's services that tools may use by choice: what each is called, and what it gives away.

use serde::{Deserialize, Serialize};

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
                "tools can sign, decrypt and log in over SSH with every key in your GPG agent whose passphrase it has or \
                 asks you for; they can copy a secret key that has no passphrase"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_one_name() {
        for pass in Pass::ALL {
            assert_eq!(serde_json::to_value(pass).unwrap(), pass.name());
            assert!(!pass.variables().is_empty() && !pass.gives_away().is_empty());
        }
    }
}
