//! How programs report that a service of the user is missing.

use agentd_core::spec::Pass;
use agentd_process::task::Confined;

const REPORTS: &[(Pass, &[&str])] = &[
    (
        Pass::Docker,
        &[
            "cannot connect to the docker daemon",
            "docker.sock",
            "docker daemon is not running",
        ],
    ),
    (
        Pass::SshAgent,
        &[
            "could not open a connection to your authentication agent",
            "error connecting to agent",
            "permission denied (publickey",
        ],
    ),
    (
        Pass::GpgAgent,
        &[
            "gpg failed to sign the data",
            "gpg: signing failed",
            "gpg: decryption failed",
            "can't connect to the gpg-agent",
            "can't connect to the agent",
        ],
    ),
    (
        Pass::Gh,
        &["gh auth login", "gh_token environment variable"],
    ),
    (
        Pass::Kube,
        &[
            "localhost:8080 was refused",
            "current-context is not set",
            "invalid configuration: no configuration",
        ],
    ),
];

/// The service that a line of output, in lower case, misses. One that the call can use fails for another reason.
pub(super) fn missed(lower: &str, confined: &Confined) -> Option<Pass> {
    let mut reports = REPORTS.iter();
    let (pass, _) = reports.find(|(_, phrases)| super::has(lower, phrases))?;
    let is_passed = confined.policy.passed.iter().any(|path| is_of(*pass, path));
    (!is_passed).then_some(*pass)
}

/// Whether a passed path belongs to the service, by its name.
fn is_of(pass: Pass, path: &std::path::Path) -> bool {
    let path = path.to_string_lossy();
    match pass {
        Pass::Docker => path.contains("docker"),
        Pass::GpgAgent => path.contains("gnupg") || path.contains("gpg"),
        Pass::Gh => path.ends_with("gh"),
        Pass::Kube => path.contains("kube"),
        // Its socket can be anywhere.
        Pass::SshAgent => {
            path.contains("ssh") || path.contains("known_hosts") || path.contains("agent")
        }
    }
}
