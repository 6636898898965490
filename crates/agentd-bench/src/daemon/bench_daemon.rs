//! A state directory with a daemon in it, and what its callers do.

use std::collections::BTreeMap;
use std::fs::File;
use std::future::Future;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agentd_client::Client;
use agentd_client::api::{Answer, Create, Env, Send, Sent, Status};
use agentd_core::spec::AgentSpec;
use agentd_testkit::model::Format;
use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::Bed;
use crate::turn::peer::micros_since;

/// Far longer than any request takes.
const DEADLINE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(1);
/// Concurrent requests while a home is filled.
const SIDE_BY_SIDE: usize = 16;
/// The idle time after which an agent's process is stopped.
const IDLE_MS: u64 = 10;

pub struct BenchDaemon<'a> {
    bed: &'a Bed,
    root: TempDir,
    daemon: Option<Child>,
}

impl<'a> BenchDaemon<'a> {
    /// A state directory whose daemon is not started yet.
    pub fn new(bed: &'a Bed) -> Result<Self> {
        let root = bed.bench_dir.fresh()?;
        for bench_dir in ["home", "work"] {
            std::fs::create_dir(root.path().join(bench_dir))?;
        }
        Ok(Self {
            bed,
            root,
            daemon: None,
        })
    }

    pub fn home(&self) -> std::path::PathBuf {
        self.root.path().join("home")
    }

    pub fn client(&self) -> Client {
        Client::new(self.home().join("run/api.sock"))
    }

    pub fn block<T>(&self, future: impl Future<Output = T>) -> T {
        self.bed.runtime.block_on(future)
    }

    /// The program, with a completely specified environment.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.bed.program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("AGENTD_HOME", self.home())
            .env("AGENTD_SANDBOX", "full-access")
            .current_dir(self.root.path().join("work"))
            .stdin(Stdio::null());
        command
    }

    /// Starts the daemon; microseconds until it answers.
    pub fn start(&mut self) -> Result<f64> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.root.path().join("daemon.log"))?;
        let mut command = self.command();
        command.args(["daemon", "run"]);
        command.stdout(log.try_clone()?).stderr(log);
        let start = Instant::now();
        self.daemon = Some(command.spawn().context("cannot start the daemon")?);
        let client = self.client();
        while self.block(client.daemon()).is_err() {
            ensure!(
                start.elapsed() < DEADLINE,
                "the daemon does not answer: {}",
                self.log()
            );
            // tidy: polls
            std::thread::sleep(POLL);
        }
        Ok(micros_since(start))
    }

    /// Ends the daemon with SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill()?;
            daemon.wait()?;
        }
        Ok(())
    }

    pub fn pid(&self) -> Result<u32> {
        let daemon = self.daemon.as_ref().context("there is no daemon")?;
        Ok(daemon.id())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.root.path().join("daemon.log")).unwrap_or_default()
    }

    /// The variables of a caller's shell.
    fn env(&self) -> Env {
        let pairs = [
            ("ANTHROPIC_API_KEY", "bench".to_owned()),
            (
                "ANTHROPIC_BASE_URL",
                self.bed.model.base_url(Format::Anthropic),
            ),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("HOME", self.home().display().to_string()),
        ];
        BTreeMap::from(pairs.map(|(name, value)| (name.to_owned(), value)))
    }

    pub fn spec(&self) -> AgentSpec {
        AgentSpec {
            provider: Some("anthropic".to_owned()),
            model: Some("some-model".to_owned()),
            cwd: Some(self.root.path().join("work").display().to_string()),
            system: "You are an agent.".to_owned(),
            idle_ms: IDLE_MS,
            ..AgentSpec::default()
        }
    }

    /// The request that creates an agent.
    pub fn create(&self, name: &str) -> Create {
        Create {
            name: Some(name.to_owned()),
            spec: self.spec(),
            env: self.env(),
            ..Create::default()
        }
    }

    /// The request that prompts one.
    pub fn prompt(&self, text: &str) -> Send {
        Send {
            text: text.to_owned(),
            env: self.env(),
            ..Send::default()
        }
    }

    /// Creates agents, some at a time.
    pub fn create_all(&self, names: impl Iterator<Item = String>) -> Result<()> {
        let creates = names.map(|name| {
            let (client, create) = (self.client(), self.create(&name));
            async move { anyhow::Ok(client.create(&create).await.map(drop)?) }
        });
        self.block(some_at_a_time(SIDE_BY_SIDE, creates)).map(drop)
    }

    /// Prompts them, this many at a time, and waits for the answers. Returns those that were not completed.
    pub fn prompt_all(
        &self,
        names: impl Iterator<Item = String>,
        text: &str,
        at_a_time: usize,
    ) -> Result<Vec<Answer>> {
        let turns = names.map(|name| {
            let (client, send) = (self.client(), self.prompt(text));
            async move {
                let sent = client.send(&name, &send).await?;
                answer(&client, &name, &sent).await
            }
        });
        let mut answers = self.block(some_at_a_time(at_a_time, turns))?;
        answers.retain(|answer| answer.status != Status::Completed);
        Ok(answers)
    }

    /// Waits until no agent has a process.
    pub fn until_asleep(&self) -> Result<()> {
        let client = self.client();
        let start = Instant::now();
        while self.block(client.daemon())?.awake > 0 {
            ensure!(
                start.elapsed() < DEADLINE,
                "the agents' processes do not stop"
            );
            // tidy: polls
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

/// Waits for the end of a prompt, without a time limit, since many may be before it.
pub async fn answer(client: &Client, name: &str, sent: &Sent) -> Result<Answer> {
    let start = Instant::now();
    loop {
        let answer = client.answer(name, sent.prompt, Duration::from_secs(20));
        let answer = answer.await?;
        if answer.status.is_over() || answer.status == Status::Waiting {
            return Ok(answer);
        }
        if start.elapsed() > DEADLINE {
            bail!("{name} does not answer: {answer:?}");
        }
    }
}

async fn some_at_a_time<T, F>(most: usize, futures: impl Iterator<Item = F>) -> Result<Vec<T>>
where
    T: 'static + std::marker::Send,
    F: Future<Output = Result<T>> + std::marker::Send + 'static,
{
    let mut under_way = JoinSet::new();
    let mut done = Vec::new();
    for future in futures {
        if under_way.len() >= most
            && let Some(one) = under_way.join_next().await
        {
            done.push(one??);
        }
        under_way.spawn(future);
    }
    while let Some(one) = under_way.join_next().await {
        done.push(one??);
    }
    Ok(done)
}

impl Drop for BenchDaemon<'_> {
    fn drop(&mut self) {
        // It ends the agents' processes before itself.
        let stopped = self.block(self.client().stop_daemon());
        let Some(mut daemon) = self.daemon.take() else {
            return;
        };
        if stopped.is_err() {
            let _gone = daemon.kill();
        }
        let _ended = daemon.wait();
    }
}
