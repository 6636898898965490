//! A state directory with a daemon in it, and what its callers do.

use std::future::Future;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use agentd_client::Client;
use agentd_client::api::{Answer, Create, Env, Send, Sent, Status};
use agentd_core::spec::AgentSpec;
use agentd_testkit::harness::{DaemonProcess, Poll, Program, TestDir};
use agentd_testkit::model::Format;
use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;

use super::Bed;

/// Far longer than any request takes.
const DEADLINE: Duration = Duration::from_secs(120);
const POLL: Poll = Poll::new(Duration::from_millis(1), DEADLINE);
/// Concurrent requests while a home is filled.
const SIDE_BY_SIDE: usize = 16;
/// The idle time after which an agent's process is stopped.
const IDLE_MS: u64 = 10;

pub struct BenchDaemon<'a> {
    bed: &'a Bed,
    program: Program,
    daemon: Option<DaemonProcess>,
    /// Dropped last: the daemon writes to it until it has ended.
    _dir: TestDir,
}

impl<'a> BenchDaemon<'a> {
    /// A state directory whose daemon is not started yet.
    pub fn new(bed: &'a Bed) -> Result<Self> {
        let dir = TestDir::within(bed.bench_dir.fresh()?)?;
        Ok(Self {
            bed,
            program: dir.program(&bed.program),
            daemon: None,
            _dir: dir,
        })
    }

    pub fn home(&self) -> &Path {
        self.program.home()
    }

    pub fn client(&self) -> Client {
        self.program.client()
    }

    pub fn block<T>(&self, future: impl Future<Output = T>) -> T {
        self.bed.runtime.block_on(future)
    }

    /// The program, with a completely specified environment.
    pub fn command(&self) -> Command {
        self.program.command()
    }

    /// Starts the daemon; microseconds until it answers.
    pub fn start(&mut self) -> Result<f64> {
        let daemon = DaemonProcess::start(&self.program, &self.bed.runtime, POLL)?;
        let micros = daemon.ready_after().as_secs_f64() * 1e6;
        self.daemon = Some(daemon);
        Ok(micros)
    }

    /// Ends the daemon with SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill()?;
        }
        Ok(())
    }

    pub fn pid(&self) -> Result<u32> {
        let daemon = self.daemon.as_ref().context("there is no daemon")?;
        Ok(daemon.pid())
    }

    /// The variables of a caller's shell.
    fn env(&self) -> Env {
        let base_url = self.bed.model.base_url(Format::Anthropic);
        self.program.caller_env("bench", &base_url)
    }

    pub fn spec(&self) -> AgentSpec {
        AgentSpec {
            provider: Some("anthropic".to_owned()),
            model: Some("some-model".to_owned()),
            cwd: Some(self.program.work().display().to_string()),
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
        POLL.until("the end of the agents' processes", || {
            match self.block(client.daemon()) {
                Ok(daemon) => (daemon.awake == 0).then_some(Ok(())),
                Err(error) => Some(Err(error)),
            }
        })??;
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
        if let Some(daemon) = &mut self.daemon {
            let _ended = daemon.stop(&self.bed.runtime);
        }
    }
}
