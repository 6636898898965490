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

/// In the environment of a process, and so of whatever it leaves behind: whose it is.
pub const MARK: &str = "AGENTD_RUNTIME_OF";

/// What is kept of what a process had to say, when it could not go on.
const LAST_WORDS: u64 = 2048;

/// A new process; or the one that still lives. `proof` is set to what a new one will have to show.
pub fn spawn(
    daemon: &Daemon,
    handle: &AgentHandle,
    proof: &mut Option<String>,
) -> io::Result<(Identity, Option<Child>)> {
    if let Some(identity) = daemon.layout.holder(handle.id)? {
        return Ok((identity, None));
    }
    let orphan = daemon.orphan.as_millis().to_string();
    let mut start = Start::new(&daemon.program);
    start.args = vec![
        "runtime".into(),
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
        // This daemon knows it; the next one would refuse the process, and start another one.
        tracing::warn!(agent = %handle.id, %error, "the proof of a process is not written");
    }
    *proof = Some(digest);
    start.stdin = given(&secret)?;
    let child = start.spawn().map_err(io::Error::other)?;
    Ok((child.identity(), Some(child)))
}

fn new_secret() -> io::Result<Secret> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(Secret::new(
        bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    ))
}

/// A pipe with the secret in it, which nobody but the process can read.
fn given(secret: &Secret) -> io::Result<Stdio> {
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(secret.as_str().as_bytes())?;
    Ok(reader.into())
}

/// A new log. The one before is kept as `.1`, where it says anything. An agent runs without a log, too: a disk that
/// is full is no reason for it not to.
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
            tracing::warn!(agent = %handle.id, %error, "a process has no log");
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

/// The end of what the process had to say.
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
