//! The process that serves the gate: the proxy that is the only way out of a sandbox whose network is a list of hosts.
//!
//! It is a separate process of this program, so that the shim, which knows secrets, never parses input of a hostile
//! client. The listener is its stdin. Its stdout is the read end of a pipe, which closes when the shim ends for any
//! reason; then the gate ends too.

use agentd_sandbox::{Network, Policy};
use std::collections::BTreeMap;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// The first argument that makes this program a gate; the other arguments are the hosts.
pub const ARGUMENT: &str = "--agentd-gate";

/// A running gate. It closes when this is dropped.
pub struct Gate {
    _until: PipeWriter,
}

impl Gate {
    /// Starts the gate as a child of the shim, which reaps it with its other children.
    pub fn open(listener: OwnedFd, hosts: &[String]) -> io::Result<Self> {
        let (until, closed) = io::pipe()?;
        // Not by its path: an upgrade may have replaced the file.
        let started = Command::new("/proc/self/exe")
            .arg0("agentd gate")
            .arg(ARGUMENT)
            .args(hosts)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(listener))
            .stdout(Stdio::from(until))
            .stderr(Stdio::null())
            // Its own group, because a shim kills its children by group, and never its own group.
            .process_group(0)
            .spawn()?;
        drop(started);
        Ok(Self { _until: closed })
    }
}

/// Adds the environment variables by which programs find the gate. Connections to the sandbox's own loopback do not use
/// the gate, unless the list names the loopback of the host.
pub fn variables(policy: &Policy, hosts: &[String], env: &mut BTreeMap<String, String>) {
    let Network::Gate { port } = policy.network else {
        return;
    };
    let gate = format!("http://127.0.0.1:{port}");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        env.insert(name.to_owned(), gate.clone());
        env.insert(name.to_lowercase(), gate.clone());
    }
    let is_listed = |own: &str| {
        let mut listed = hosts.iter();
        listed.any(|host| host.starts_with(own) || host.starts_with(&format!("[{own}]")))
    };
    let own = ["localhost", "127.0.0.1", "::1"];
    let own: Vec<&str> = own.into_iter().filter(|own| !is_listed(own)).collect();
    for name in ["NO_PROXY", "no_proxy"] {
        env.insert(name.to_owned(), own.join(","));
    }
}
