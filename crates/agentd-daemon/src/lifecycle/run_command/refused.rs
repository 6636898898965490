//! The note after the output of a command that the sandbox has probably refused something. The user typed the command, and
//! may not know that it runs in the sandbox of the agent's tools.

use agentd_core::event::CommandEnd;
use agentd_core::spec::{AgentSpec, Network, Sandbox};

/// How programs report that they may not do something.
const REFUSED: [&str; 3] = [
    "read-only file system",
    "permission denied",
    "operation not permitted",
];
/// How programs report that there is no network.
const NO_NETWORK: [&str; 5] = [
    "network is unreachable",
    "could not resolve",
    "couldn't resolve",
    "name resolution",
    "failed to connect",
];

/// The note, if the command failed in a sandbox and its output reads like a refusal.
pub fn note(spec: &AgentSpec, level: Sandbox, end: CommandEnd, output: &str) -> Option<String> {
    end.trouble()?;
    if level == Sandbox::FullAccess {
        return None;
    }
    let output = output.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| output.contains(phrase));
    let network = match &spec.network {
        None | Some(Network::On) => None,
        Some(Network::Off) => Some("no network access".to_owned()),
        Some(Network::Hosts(hosts)) => Some(format!("access only to {hosts}")),
    };
    let is_refused = says(&REFUSED) || (network.is_some() && says(&NO_NETWORK));
    if !is_refused {
        return None;
    }
    let mut writes = Vec::new();
    if level == Sandbox::WorkspaceWrite {
        writes.extend(spec.cwd.clone());
    }
    writes.extend(spec.writable.iter().cloned());
    writes.push("/tmp".to_owned());
    let network = network.map_or_else(String::new, |what| format!(", and has {what}"));
    Some(format!(
        "[sandbox] The command ran in the sandbox of the agent's tools ({}): it can write only to {} and a private home \
         directory{network}. The settings `writable`, `network` and `sandbox` of the agent change that.",
        level.name(),
        writes.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::event::TaskExit;

    fn end(code: i32) -> CommandEnd {
        let exit = TaskExit::Code { code };
        CommandEnd { exit, cut: None }
    }

    #[test]
    fn only_a_failed_command_in_a_sandbox_gets_the_note() {
        let spec = AgentSpec {
            cwd: Some("/work".to_owned()),
            ..AgentSpec::default()
        };
        let refused = "touch: cannot touch '../x': Read-only file system\n";
        let inside = Sandbox::WorkspaceWrite;
        let text = note(&spec, inside, end(1), refused).unwrap();
        assert!(text.starts_with("[sandbox] "), "{text}");
        assert!(text.contains("only to /work, /tmp and"), "{text}");
        assert_eq!(note(&spec, inside, end(0), refused), None);
        assert_eq!(note(&spec, Sandbox::FullAccess, end(1), refused), None);
        assert_eq!(note(&spec, inside, end(1), "assertion failed"), None);
    }

    #[test]
    fn a_network_error_counts_if_the_network_is_restricted() {
        let mut spec = AgentSpec::default();
        let error = "curl: (6) Could not resolve host: example.org";
        let level = Sandbox::ReadOnly;
        assert_eq!(note(&spec, level, end(6), error), None);
        spec.network = Some(Network::Off);
        let text = note(&spec, level, end(6), error).unwrap();
        assert!(text.contains("no network access"), "{text}");
    }
}
