//! The command line through a running daemon, from exec to exit: `agentd send` to an awake agent, and
//! `agentd run`.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agentd_client::Client;
use agentd_testkit::model::{FakeModel, Format};
use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::Bed;
use super::bare::Bare;
use super::kind::Kind;
use super::peer::micros_since;
use crate::measure::Samples;
use crate::report::{Aim, Line, Unit};
use crate::words::Words;

const NAME: &str = "bench";
const DEADLINE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(1);

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let line = |what: &str, floor_is: &str, aim| Line {
        what: what.to_owned(),
        floor_is: floor_is.to_owned(),
        unit: Unit::Microseconds,
        ours: Samples::default(),
        floor: Samples::default(),
        aim: Some(Aim::AtMost(aim)),
    };
    let mut send = line("agentd send, awake agent", "bare client, warm turn", 8.0);
    let mut run = line(
        "agentd run, daemon up",
        "bare client, start to the first answer",
        1.8,
    );
    let model = FakeModel::start().context("cannot start the model server")?;
    let home = Home::new(bed, &model)?;
    home.agentd(&["create", NAME, "--provider", "anthropic", "--model", "m"])?;
    let mut words = Words::new(1);
    let prompt = Kind::Plain.prompt(&mut words);
    // The agent is awake and the bare client connected before either is timed.
    home.agentd(&["send", NAME, &prompt])?;
    let body = last_body(&model)?;
    let url = model.base_url(Format::Anthropic);
    for _ in 0..bed.size(15, 41) {
        send.ours.push(home.agentd(&["send", NAME, &prompt])?);
        run.ours.push(home.agentd(&["run", &prompt])?);
        let mut bare = Bare::start(&url, home.root.path(), bed.cwd.path())?;
        bare.load(&vec![
            Kind::Plain
                .bare(std::slice::from_ref(&body), bed.cwd.path());
            3
        ])?;
        bare.turn()?;
        run.floor.push(bare.peer.micros_since_start());
        bare.turn()?;
        send.floor.push(bare.turn()?);
        bare.peer.finish()?;
    }
    Ok(vec![send, run])
}

/// The first request of a conversation, for the bare client to send again.
fn last_body(model: &FakeModel) -> Result<String> {
    let requests = model.requests();
    let last = requests.last().context("the agent has sent no request")?;
    Ok(last.body.to_string())
}

/// A state directory with a daemon.
struct Home<'a> {
    bed: &'a Bed,
    root: TempDir,
    url: String,
    daemon: Child,
}

impl<'a> Home<'a> {
    fn new(bed: &'a Bed, model: &FakeModel) -> Result<Self> {
        let root = bed.bench_dir.fresh()?;
        let url = model.base_url(Format::Anthropic);
        let log = File::create(root.path().join("log"))?;
        let mut command = program(bed, &home_of(&root), &url);
        command.args(["daemon", "run"]);
        command.stdout(log.try_clone()?).stderr(log);
        let daemon = command.spawn().context("cannot start the daemon")?;
        let home = Self {
            bed,
            root,
            url,
            daemon,
        };
        let start = Instant::now();
        while bed.runtime.block_on(home.client().daemon()).is_err() {
            ensure!(start.elapsed() < DEADLINE, "the daemon does not answer");
            // tidy: polls
            std::thread::sleep(POLL);
        }
        Ok(home)
    }

    fn client(&self) -> Client {
        Client::new(home_of(&self.root).join("run/api.sock"))
    }

    /// Microseconds that one command takes, from exec to exit.
    fn agentd(&self, args: &[&str]) -> Result<f64> {
        let mut command = program(self.bed, &home_of(&self.root), &self.url);
        command.args(args).stdout(Stdio::piped());
        let start = Instant::now();
        let output = command.output().context("cannot start agentd")?;
        let took = micros_since(start);
        ensure!(
            output.status.success(),
            "agentd {} failed: {}",
            args.first().unwrap_or(&""),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(took)
    }
}

fn home_of(root: &TempDir) -> PathBuf {
    root.path().join("home")
}

/// The program, with a completely specified environment.
fn program(bed: &Bed, home: &std::path::Path, url: &str) -> Command {
    let mut command = Command::new(&bed.program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("AGENTD_HOME", home)
        .env("AGENTD_SANDBOX", "full-access")
        .env("ANTHROPIC_API_KEY", "bench")
        .env("ANTHROPIC_BASE_URL", url)
        .current_dir(bed.cwd.path())
        .stdin(Stdio::null());
    command
}

impl Drop for Home<'_> {
    fn drop(&mut self) {
        // The daemon ends the agents' processes before itself.
        let stopped = self.bed.runtime.block_on(self.client().stop_daemon());
        if stopped.is_err() {
            let _gone = self.daemon.kill();
        }
        let _reaped = self.daemon.wait();
    }
}
