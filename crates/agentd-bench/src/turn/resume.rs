//! Resuming a long conversation, in a process of its own: from its start to the end of a turn.

use agentd_store::{Options, SqliteStore};
use agentd_testkit::model::{FakeModel, Format};
use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::Bed;
use super::agent::{Agent, Begin, Setup};
use super::kind::Kind;
use crate::history;
use crate::measure::Samples;
use crate::proc;
use crate::report::{Aim, Line, Unit};
use crate::words::Words;

const MANY: usize = 20_000;
const FEW: usize = 20;

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let many = History::write(bed, MANY)?;
    let few = History::write(bed, FEW)?;
    ensure!(
        many.window == few.window,
        "the windows differ: {} and {}",
        many.window,
        few.window
    );
    let model = FakeModel::start().context("cannot start the model server")?;
    let setup = Setup {
        program: &bed.program,
        url: model.base_url(Format::Anthropic),
    };
    // The first one finds no session file and sets the model.
    many.resume(&setup)?;
    few.resume(&setup)?;
    let line = |what: &str, unit, aim| Line {
        what: format!("{what}, {MANY} messages"),
        floor_is: format!("{FEW} messages, same window ({})", many.window),
        unit,
        ours: Samples::default(),
        floor: Samples::default(),
        aim,
    };
    let most = Some(Aim::AtMost(1.5));
    let mut session = line("resume to the session line", Unit::Microseconds, most);
    let mut answer = line("resume to the answer", Unit::Microseconds, most);
    for _ in 0..bed.size(15, 41) {
        let (ours, floor) = (many.resume(&setup)?, few.resume(&setup)?);
        session.ours.push(ours.to_session);
        session.floor.push(floor.to_session);
        answer.ours.push(ours.to_answer);
        answer.floor.push(floor.to_answer);
    }
    let mut peak = line("peak memory of a resume", Unit::Mebibytes, None);
    for _ in 0..bed.size(3, 7) {
        peak.ours.push(many.peak(&setup)?);
        peak.floor.push(few.peak(&setup)?);
    }
    Ok(vec![session, answer, peak])
}

struct Resumed {
    to_session: f64,
    to_answer: f64,
}

struct History {
    bench_dir: TempDir,
    /// Items in its window.
    window: usize,
}

impl History {
    fn write(bed: &Bed, messages: usize) -> Result<Self> {
        let bench_dir = bed.bench_dir.fresh()?;
        let store = SqliteStore::open(Options::new(bench_dir.path()))?;
        let written = history::write(&store, "long-lived", messages);
        let window = bed.runtime.block_on(written)?;
        Ok(Self { bench_dir, window })
    }

    fn resume(&self, setup: &Setup<'_>) -> Result<Resumed> {
        let mut command = setup.command(&Begin::Resume(self.bench_dir.path()));
        command.arg(prompt());
        let mut agent = Agent::start(command)?;
        let to_answer = agent.first_turn()?;
        let to_session = agent.to_session;
        agent.peer.finish()?;
        Ok(Resumed {
            to_session,
            to_answer,
        })
    }

    /// The peak memory of resuming and answering once. Its input stays open, so the process is still there to be measured.
    fn peak(&self, setup: &Setup<'_>) -> Result<f64> {
        let mut agent = Agent::start(setup.command(&Begin::Resume(self.bench_dir.path())))?;
        agent.turn(&prompt())?;
        let peak = proc::memory(agent.peer.pid())?.peak;
        agent.peer.finish()?;
        Ok(peak)
    }
}

fn prompt() -> String {
    Kind::Plain.prompt(&mut Words::new(1))
}
