//! The program that runs an agent: how it is started, and its log.

use crate::agent_handle::AgentHandle;
use crate::daemon::Daemon;
use agentd_core::link::Secret;
use agentd_process::{Child, Identity, Start};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;

/// A variable with the agent's id, in the environment of its process and of all descendants: it identifies leftovers.
pub const MARK: &str = "AGENTD_RUNTIME_OF";

/// Bytes of a failed process's log that are kept as the reason.
const LAST_WORDS: u64 = 2048;

/// Starts a process, or returns the one that is still alive. `proof` is set to the digest of the secret that a new
/// process must show.
pub fn spawn(
    daemon: &Daemon,
    handle: &AgentHandle,
    name: &str,
    proof: &mut Option<String>,
) -> io::Result<(Identity, Option<Child>)> {
    if let Some(identity) = daemon.layout.holder(handle.id)? {
        return Ok((identity, None));
    }
    let orphan = daemon.orphan.as_millis().to_string();
    let mut start = Start::new(&daemon.program);
    start.name = Some("agentd");
    start.args = vec![
        "runtime".into(),
        not_an_option(name).into(),
        "--agent".into(),
        handle.id.to_string().into(),
        "--orphan-ms".into(),
        orphan.into(),
    ];
    start.env.clone_from(&daemon.runtime_env);
    start
        .env
        .push(("AGENTD_HOME".into(), daemon.layout.home().into()));
    let mark = handle.id.to_string();
    start.env.push((MARK.into(), mark.into()));
    start.cwd = Some(daemon.layout.home().to_owned());
    start.stderr = log(daemon, handle);
    let secret = new_secret()?;
    let digest = secret.digest();
    if let Err(error) = daemon.layout.write_proof(handle.id, &digest) {
        // This daemon knows the digest. The next daemon would refuse the process and start another one.
        tracing::warn!(agent = %handle.id, %error, "proof of the runtime not written");
    }
    *proof = Some(digest);
    start.stdin = given(&secret)?;
    let child = start.spawn().map_err(io::Error::other)?;
    Ok((child.identity(), Some(child)))
}

/// The name as an argument for `ps`. The name of an imported agent may begin with `-`, and would be read as an option.
fn not_an_option(name: &str) -> &str {
    name.trim_start_matches('-')
}

fn new_secret() -> io::Result<Secret> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(Secret::new(
        bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    ))
}

/// A pipe with the secret in it, which only the process can read.
fn given(secret: &Secret) -> io::Result<Stdio> {
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(secret.as_str().as_bytes())?;
    Ok(reader.into())
}

/// A new log. The previous one is kept as `.1` if it is not empty. If the log cannot be created (for example on a full
/// disk), the agent runs without one.
fn log(daemon: &Daemon, handle: &AgentHandle) -> Stdio {
    let open = || -> io::Result<File> {
        daemon.layout.make_agent_dir(handle.id)?;
        let path = daemon.layout.runtime_log(handle.id);
        if path.metadata().is_ok_and(|log| log.len() > 0) {
            std::fs::rename(&path, path.with_extension("log.1"))?;
        }
        create(&path)
    };
    match open() {
        Ok(file) => Stdio::from(file),
        Err(error) => {
            tracing::warn!(agent = %handle.id, %error, "runtime log not opened: output discarded");
            Stdio::null()
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// The end of the process's log.
pub fn last_words(daemon: &Daemon, handle: &AgentHandle) -> String {
    let read = || -> io::Result<String> {
        let mut log = File::open(daemon.layout.runtime_log(handle.id))?;
        let length = log.metadata()?.len();
        log.seek(io::SeekFrom::Start(length.saturating_sub(LAST_WORDS)))?;
        let mut bytes = Vec::new();
        log.take(LAST_WORDS).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_agent_is_no_option_of_its_runtime() {
        assert_eq!(not_an_option("coder-2"), "coder-2");
        assert_eq!(not_an_option("--help"), "help");
    }
}
