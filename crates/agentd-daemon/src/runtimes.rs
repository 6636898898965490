//! The processes that run agents: how they are started, watched and ended, and their logs.

use crate::layout::Layout;
use crate::scopes::Scopes;
use crate::settings::Settings;
use agentd_core::id::AgentId;
use agentd_core::link::Secret;
use agentd_core::spec::Limits;
use agentd_process::{Child, Exit, Identity, Signal, Start, signal};
use futures_util::future::BoxFuture;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// A variable with the agent's id, in the environment of its process and of all descendants. By it the daemon finds the
/// descendants that are left when the process has ended.
const MARK: &str = "AGENTD_RUNTIME_OF";

/// Bytes of a failed process's log that are kept as the reason.
const LAST_WORDS: u64 = 2048;
/// Delay before the next attempt to watch a process.
const BREATH: Duration = Duration::from_millis(500);

/// Starts and watches the processes of agents. All but `ended` may block.
pub trait Runtimes: Send + Sync + 'static {
    /// Starts a process that runs the agent, or finds the one that is still alive.
    fn start(&self, agent: AgentId, name: &str, limits: &Limits) -> io::Result<Started>;

    /// Waits until a process has ended, and kills the descendants that it left behind. None if its exit is unknown.
    fn ended(
        &self,
        agent: AgentId,
        process: Identity,
        child: Option<Child>,
    ) -> BoxFuture<'static, Option<Exit>>;

    /// Asks a process to end.
    fn terminate(&self, process: Identity);

    /// The end of the log of the agent's process.
    fn last_words(&self, agent: AgentId) -> String;
}

/// A process that runs an agent.
pub struct Started {
    pub identity: Identity,
    /// False if an earlier daemon started it.
    pub is_new: bool,
    /// The process as a child of the daemon, for reading its exit. None if an earlier daemon started it.
    pub child: Option<Child>,
    /// The digest of the secret that a new process must present.
    pub proof: Option<String>,
}

/// This program, as `agentd runtime`.
pub struct Program {
    layout: Layout,
    program: PathBuf,
    env: Vec<(OsString, OsString)>,
    orphan: Duration,
    /// The scopes of agents, if the user's service manager keeps their processes together.
    scopes: Option<Scopes>,
}

impl Program {
    pub fn new(layout: &Layout, settings: &Settings, scopes: Option<Scopes>) -> Self {
        Self {
            layout: layout.clone(),
            scopes,
            program: settings.program.clone(),
            env: settings.runtime_env.clone(),
            orphan: settings.orphan,
        }
    }
}

impl Runtimes for Program {
    fn start(&self, agent: AgentId, name: &str, limits: &Limits) -> io::Result<Started> {
        if let Some(identity) = self.layout.holder(agent)? {
            return Ok(Started {
                identity,
                is_new: false,
                child: None,
                proof: None,
            });
        }
        let mut start = Start::new(&self.program);
        start.name = Some("agentd");
        start.args = vec![
            "runtime".into(),
            not_an_option(name).into(),
            "--agent".into(),
            agent.to_string().into(),
            "--orphan-ms".into(),
            self.orphan.as_millis().to_string().into(),
        ];
        start.env.clone_from(&self.env);
        let home = self.layout.home();
        start.env.push(("AGENTD_HOME".into(), home.into()));
        start.env.push((MARK.into(), agent.to_string().into()));
        start.cwd = Some(home.to_owned());
        start.stderr = log(&self.layout, agent);
        let secret = new_secret()?;
        let proof = secret.digest();
        if let Err(error) = self.layout.write_proof(agent, &proof) {
            // This daemon knows the digest. The next daemon would refuse the process and start another one.
            tracing::warn!(%agent, %error, "digest of the runtime's secret not written");
        }
        let (stdin, mut writer) = io::pipe()?;
        start.stdin = stdin.into();
        let child = start.spawn().map_err(io::Error::other)?;
        if let Some(scopes) = &self.scopes {
            scopes.enter(agent, name, limits, child.identity());
        }
        // The process waits for its secret, so everything that it starts is in its scope. If it has ended already, its
        // exit says why.
        if let Err(error) = writer.write_all(secret.as_str().as_bytes()) {
            tracing::warn!(%agent, %error, "secret not given to the runtime");
        }
        Ok(Started {
            identity: child.identity(),
            is_new: true,
            child: Some(child),
            proof: Some(proof),
        })
    }

    fn ended(
        &self,
        agent: AgentId,
        process: Identity,
        child: Option<Child>,
    ) -> BoxFuture<'static, Option<Exit>> {
        Box::pin(ended(agent, process, child))
    }

    fn terminate(&self, process: Identity) {
        // An error means that it has ended already.
        let _gone = signal(process, Signal::TERM);
    }

    fn last_words(&self, agent: AgentId) -> String {
        last_words(&self.layout.runtime_log(agent)).unwrap_or_default()
    }
}

async fn ended(agent: AgentId, process: Identity, child: Option<Child>) -> Option<Exit> {
    while let Err(error) = agentd_process::ended(process).await {
        tracing::error!(%agent, pid = process.pid, %error, "runtime cannot be watched: retrying");
        // tidy: polls until there are descriptors again
        tokio::time::sleep(BREATH).await;
    }
    let exit = child.and_then(|mut child| child.wait().ok());
    let mark = agent.to_string();
    let killed = tokio::task::spawn_blocking(move || agentd_process::kill_orphans(MARK, &mark));
    if let Ok(Err(error)) = killed.await {
        tracing::error!(%agent, %error, "leftover processes of the runtime not killed");
    }
    exit
}

/// The agent's name as an argument, so that `ps` shows it. The name of an imported agent may begin with `-`, and would
/// be read as an option.
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

/// A new log. The previous one is kept as `.1` if it is not empty. If the log cannot be created (for example on a full
/// disk), the agent runs without one.
fn log(layout: &Layout, agent: AgentId) -> Stdio {
    let open = || -> io::Result<File> {
        layout.make_agent_dir(agent)?;
        let path = layout.runtime_log(agent);
        if path.metadata().is_ok_and(|log| log.len() > 0) {
            std::fs::rename(&path, path.with_extension("log.1"))?;
        }
        create(&path)
    };
    match open() {
        Ok(file) => Stdio::from(file),
        Err(error) => {
            tracing::warn!(%agent, %error, "runtime log not opened: output discarded");
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

fn last_words(path: &Path) -> io::Result<String> {
    let mut log = File::open(path)?;
    let length = log.metadata()?.len();
    log.seek(io::SeekFrom::Start(length.saturating_sub(LAST_WORDS)))?;
    let mut bytes = Vec::new();
    log.take(LAST_WORDS).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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
