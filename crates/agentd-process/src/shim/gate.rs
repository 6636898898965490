//! The process that serves the one way out of a sandbox whose network is a list of hosts.
//!
//! It is this program once more, so that nothing a hostile client says is read by the shim, which knows secrets. The listener
//! is its standard input; its standard output is a pipe that closes when the shim ends, in whatever way, and with it the gate.

use agentd_sandbox::{Network, Policy};
use std::collections::BTreeMap;
use std::io::{self, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// What makes a program a gate, as its first argument; the others are the hosts.
pub const ARGUMENT: &str = "--agentd-gate";

/// A gate that is open. It closes when this is dropped.
pub struct Gate {
    _until: PipeWriter,
}

impl Gate {
    /// The shim's child: it is reaped with the rest.
    pub fn open(listener: OwnedFd, hosts: &[String]) -> io::Result<Self> {
        let (until, closed) = io::pipe()?;
        let program = std::env::current_exe()?;
        let started = Command::new(program)
            .arg(ARGUMENT)
            .args(hosts)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(listener))
            .stdout(Stdio::from(until))
            .stderr(Stdio::null())
            // What is left of a task is killed by groups.
            .process_group(0)
            .spawn()?;
        drop(started);
        Ok(Self { _until: closed })
    }
}

/// The variables by which programs find the gate. What is on the sandbox's own loopback is reached without it, unless the
/// list names that of the host.
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
