//! A window of many short messages: what a turn takes beside the bare client's time for the same request, warm and
//! right after the agent's process was killed.

use std::time::{Duration, Instant};

use agentd_client::api::Status;
use agentd_core::spec::AgentSpec;
use agentd_store::{Options, SqliteStore};
use agentd_testkit::model::Format;
use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::bench_daemon::{BenchDaemon, answer};
use super::{Bed, line};
use crate::history;
use crate::report::{Aim, Line, Unit};
use crate::turn::bare::{Bare, Step};
use crate::turn::peer::micros_since;

const NAME: &str = "wide";
const MESSAGES: usize = 20_000;
const PROMPT: &str = "do: say done";
const KILLS: usize = 3;
/// A process that dies sooner after its start is restarted only after a pause.
const LONG_LIFE: Duration = Duration::from_millis(10_500);
const IDLE_MS: u64 = 600_000;
/// Microseconds over the bare client.
const WARM: f64 = 30_000.0;
const KILLED: f64 = 100_000.0;

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let mut daemon = BenchDaemon::new(bed)?;
    let store = SqliteStore::open(Options::new(daemon.home()))?;
    let window = daemon.block(history::write_window(&store, NAME, MESSAGES))?;
    ensure!(window == MESSAGES, "the window has {window} messages");
    drop(store);
    daemon.start()?;
    let spec = AgentSpec {
        // Its window has room for all of them.
        model: Some("claude-opus-5-5".to_owned()),
        idle_ms: IDLE_MS,
        ..daemon.spec()
    };
    daemon.block(daemon.client().set_spec(NAME, &spec))?;
    turn(&daemon)?;
    let asks = [("warm turn", WARM), ("turn after a kill", KILLED)];
    let mut lines = asks.map(|(what, most)| {
        line(
            format!("{what}, window of {MESSAGES} messages"),
            "bare client, the same request".to_owned(),
            Unit::Microseconds,
            Some(Aim::ExcessAtMost(most)),
        )
    });
    let [warm, killed] = &mut lines;
    let mut started = Instant::now();
    for round in 0..bed.size(7, 21) {
        warm.ours.push(turn(&daemon)?);
        warm.floor.push(floor(bed, &daemon)?);
        if round < KILLS {
            // tidy: lets it grow old
            std::thread::sleep(LONG_LIFE.saturating_sub(started.elapsed()));
            kill_runtime(&daemon)?;
            started = Instant::now();
            killed.ours.push(turn(&daemon)?);
            killed.floor.push(floor(bed, &daemon)?);
        }
    }
    Ok(lines.into())
}

/// Microseconds from the prompt to the answer.
fn turn(daemon: &BenchDaemon<'_>) -> Result<f64> {
    let client = daemon.client();
    let prompt = daemon.prompt(PROMPT);
    let start = Instant::now();
    let sent = daemon.block(client.send(NAME, &prompt))?;
    let answer = daemon.block(answer(&client, NAME, &sent))?;
    let took = micros_since(start);
    ensure!(answer.status == Status::Completed, "{answer:?}");
    Ok(took)
}

fn kill_runtime(daemon: &BenchDaemon<'_>) -> Result<()> {
    let agent = daemon.block(daemon.client().agent(NAME))?;
    let pid = agent.process.pid.context("the agent has no process")?;
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    Ok(kill_process(pid.context("no pid")?, Signal::KILL)?)
}

/// Microseconds of a warm bare client for the last request.
fn floor(bed: &Bed, daemon: &BenchDaemon<'_>) -> Result<f64> {
    let requests = bed.model.requests();
    let last = requests.last().context("the agent has sent no request")?;
    let ask = vec![Step::Ask(last.body.to_string())];
    let url = bed.model.base_url(Format::Anthropic);
    let mut bare = Bare::start(&url, daemon.home(), daemon.home())?;
    bare.load(&vec![ask; 2])?;
    bare.turn()?;
    let took = bare.turn()?;
    bare.peer.finish()?;
    Ok(took)
}
