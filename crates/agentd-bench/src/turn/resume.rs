//! Resuming a long conversation, in a process of its own: from its start to the end of a turn.

use agentd_store::{Append, Options, SqliteStore, Store as _};
use agentd_testkit::model::{FakeModel, Format};
use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::Bed;
use super::agent::{Agent, Begin, Place};
use super::kind::Kind;
use crate::journal::Story;
use crate::measure::Samples;
use crate::proc;
use crate::report::{Aim, Line, Unit};
use crate::words::Words;

const MANY: usize = 20_000;
const FEW: usize = 20;
const TEXT: usize = 400;
/// Turns from one compaction to the next, the one of them that compacts, and what it keeps: the last of
/// them leaves a summary, [`KEPT`] messages and an answer, and five turns follow. That is a window of
/// [`FEW`].
const STRETCH: usize = 25;
const COMPACTS: usize = 20;
const KEPT: usize = 8;
/// Events behind the newest snapshot of the long one: half of what there may be. The short one has none
/// yet, as it would.
const TAIL: usize = 256;
const BATCH: usize = 1000;

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
    let place = Place {
        program: &bed.program,
        home: bed.home.path(),
        cwd: bed.cwd.path(),
        url: model.base_url(Format::Anthropic),
    };
    // The first one finds no session file and sets the model.
    many.resume(&place)?;
    few.resume(&place)?;
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
        let (ours, floor) = (many.resume(&place)?, few.resume(&place)?);
        session.ours.push(ours.to_session);
        session.floor.push(floor.to_session);
        answer.ours.push(ours.to_answer);
        answer.floor.push(floor.to_answer);
    }
    let mut peak = line("peak memory of a resume", Unit::Mebibytes, None);
    for _ in 0..bed.size(3, 7) {
        peak.ours.push(many.peak(&place)?);
        peak.floor.push(few.peak(&place)?);
    }
    Ok(vec![session, answer, peak])
}

struct Resumed {
    to_session: f64,
    to_answer: f64,
}

struct History {
    folder: TempDir,
    /// Things in its window.
    window: usize,
}

impl History {
    fn write(bed: &Bed, messages: usize) -> Result<Self> {
        let folder = bed.folder.fresh()?;
        let store = SqliteStore::open(Options::new(folder.path()))?;
        let (mut story, mut pending) = Story::begin("long-lived", 1);
        let agent = story.agent;
        let fence = bed.runtime.block_on(store.claim(agent, "bench"))?.fence;
        let append = |events| -> Result<()> {
            bed.runtime
                .block_on(store.append(Append::new(fence, events)))?;
            Ok(())
        };
        story.context(&mut pending);
        for turn in 1..=messages / 2 {
            match turn % STRETCH == COMPACTS {
                true => story.compacting_turn(TEXT, KEPT, &mut pending),
                false => story.turn(TEXT, &mut pending),
            }
            // What comes last is held back, to be where we want it.
            if pending.len() >= 2 * BATCH + TAIL {
                append(pending.drain(..BATCH).collect())?;
            }
        }
        let tail = pending.split_off(pending.len().saturating_sub(TAIL));
        if !pending.is_empty() {
            // So many at once that a snapshot is taken right behind them.
            append(pending)?;
            bed.runtime.block_on(store.settle())?;
        }
        append(tail)?;
        bed.runtime.block_on(store.settle())?;
        let loaded = bed.runtime.block_on(store.load(agent))?;
        ensure!(loaded.damage.is_none(), "the journal is damaged");
        ensure!(loaded.state.anomalies == 0, "the history makes no sense");
        Ok(Self {
            folder,
            window: loaded.window.items().len(),
        })
    }

    fn resume(&self, place: &Place<'_>) -> Result<Resumed> {
        let mut command = place.command(&Begin::Resume(self.folder.path()));
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

    /// The most memory it took to resume and to answer once. With its input open it stays to be asked.
    fn peak(&self, place: &Place<'_>) -> Result<f64> {
        let mut agent = Agent::start(place.command(&Begin::Resume(self.folder.path())))?;
        agent.turn(&prompt())?;
        let peak = proc::memory(agent.peer.pid())?.peak;
        agent.peer.finish()?;
        Ok(peak)
    }
}

fn prompt() -> String {
    Kind::Plain.prompt(&mut Words::new(1))
}
