//! The command line through a running daemon, from exec to exit: `agentd send` to an awake agent, and
//! `agentd run`.

use std::process::Stdio;
use std::time::{Duration, Instant};

use agentd_testkit::harness::{DaemonProcess, Poll, Program, TestDir, model_env};
use agentd_testkit::model::{FakeModel, Format};
use anyhow::{Context, Result, ensure};

use super::Bed;
use super::bare::Bare;
use super::kind::Kind;
use super::peer::micros_since;
use crate::measure::Samples;
use crate::report::{Aim, Line, Unit};
use crate::words::Words;

const NAME: &str = "bench";
const POLL: Poll = Poll::new(Duration::from_millis(1), Duration::from_secs(60));

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
        let mut bare = Bare::start(&url, home.dir.root(), bed.cwd.path())?;
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
    program: Program,
    daemon: DaemonProcess,
    dir: TestDir,
}

impl<'a> Home<'a> {
    fn new(bed: &'a Bed, model: &FakeModel) -> Result<Self> {
        let dir = TestDir::within(bed.bench_dir.fresh()?)?;
        let program = dir
            .program(bed.program.path())
            .with_work(bed.cwd.path())
            .envs(model_env("bench", &model.base_url(Format::Anthropic)));
        Ok(Self {
            bed,
            daemon: DaemonProcess::start(&program, &bed.runtime, POLL)?,
            program,
            dir,
        })
    }

    /// Microseconds that one command takes, from exec to exit.
    fn agentd(&self, args: &[&str]) -> Result<f64> {
        let mut command = self.program.command();
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

impl Drop for Home<'_> {
    fn drop(&mut self) {
        let _ended = self.daemon.stop(&self.bed.runtime);
    }
}
