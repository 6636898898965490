//! Turns of a running agent, compared with a bare client that sends the same requests.
//!
//! Each round begins a new conversation, so that all rounds are alike. The server records the agent's requests, and the
//! bare client sends exactly these: the server's own time is the same in both.

use std::path::Path;

use agentd_testkit::model::{FakeModel, Format};
use anyhow::{Context, Result, ensure};

use super::Bed;
use super::agent::{Agent, Begin, Setup};
use super::bare::{Bare, Step, Turn};
use super::kind::Kind;
use super::peer::Peer;
use crate::measure::Samples;
use crate::proc::{self, Memory};
use crate::report::{Aim, Line, Unit};
use crate::store::floor::commits;
use crate::words::Words;

/// SQLite counts the commits of the journal; the session file adds one sync per turn.
const SYNCS_OF_THE_SESSION_FILE: usize = 1;

/// The most microseconds of CPU that a plain turn should take.
const PLAIN_CPU: f64 = 1000.0;

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let counts = Kind::ALL.map(|kind| match kind {
        Kind::Plain => bed.size(16, 40),
        Kind::ReadFile | Kind::Shell | Kind::NewFiles | Kind::Replace => bed.size(6, 20),
    });
    let mut sums = Sums::default();
    for round in 0..bed.size(7, 25) {
        Round::new(bed, round)?.run(&counts, &mut sums)?;
    }
    let turns: usize = counts.iter().sum();
    Ok(sums.lines(turns + 1))
}

/// One figure of the agent and of its floor.
#[derive(Default)]
struct Pair {
    ours: Samples,
    floor: Samples,
}

impl Pair {
    fn push(&mut self, ours: f64, floor: f64) {
        self.ours.push(ours);
        self.floor.push(floor);
    }

    fn line(self, what: String, floor_is: &str, unit: Unit) -> Line {
        Line {
            what,
            floor_is: floor_is.to_owned(),
            unit,
            ours: self.ours,
            floor: self.floor,
            aim: None,
        }
    }
}

fn aiming(line: Line, aim: Aim) -> Line {
    Line {
        aim: Some(aim),
        ..line
    }
}

/// The measurements of one kind of turn.
#[derive(Default)]
struct OfKind {
    time: Pair,
    /// Compared with the bare client that syncs as often.
    durable: Pair,
    syncs: Samples,
    cpu: Pair,
}

#[derive(Default)]
struct Sums {
    start: Pair,
    first: Pair,
    now: Pair,
    peak: Pair,
    kinds: [OfKind; Kind::ALL.len()],
}

impl Sums {
    fn lines(self, turns: usize) -> Vec<Line> {
        let bare = "bare client";
        let micros = Unit::Microseconds;
        let mut lines = vec![
            self.start.line(
                "start to the session line".into(),
                "bare client, ready",
                micros,
            ),
            aiming(
                self.first
                    .line("start to the first answer".into(), bare, micros),
                Aim::AtMost(2.0),
            ),
        ];
        let mut cpus = Vec::new();
        for (kind, of) in Kind::ALL.into_iter().zip(self.kinds) {
            let what = format!("{}, time", kind.what());
            let syncs = format!("bare client + {:.0} syncs", of.syncs.median());
            lines.push(of.time.line(what.clone(), bare, micros));
            let durable = of.durable.line(what, &syncs, micros);
            lines.push(aiming(durable, Aim::AtMost(kind.aim())));
            let cpu = of.cpu.line(format!("{}, CPU", kind.what()), bare, micros);
            cpus.push(match kind {
                Kind::Plain => aiming(cpu, Aim::OursAtMost(PLAIN_CPU)),
                _ => cpu,
            });
        }
        lines.extend(cpus);
        let memory = |what: &str| format!("{what} memory after {turns} turns");
        lines.push(self.now.line(memory("resident"), bare, Unit::Mebibytes));
        lines.push(self.peak.line(memory("peak"), bare, Unit::Mebibytes));
        lines
    }
}

struct Round<'a> {
    bed: &'a Bed,
    bench_dir: tempfile::TempDir,
    model: FakeModel,
    /// How many recorded requests have been read.
    seen: usize,
    words: Words,
}

impl<'a> Round<'a> {
    fn new(bed: &'a Bed, seed: u64) -> Result<Self> {
        Ok(Self {
            bed,
            bench_dir: bed.bench_dir.fresh()?,
            model: FakeModel::start().context("cannot start the model server")?,
            seen: 0,
            words: Words::new(seed),
        })
    }

    fn run(mut self, counts: &[usize], sums: &mut Sums) -> Result<()> {
        let url = self.model.base_url(Format::Anthropic);
        let setup = Setup {
            program: &self.bed.program,
            url: url.clone(),
        };
        let kept = self.bench_dir.path().join("kept");
        let mut agent = Agent::start(setup.command(&Begin::New(&kept)))?;
        agent.turn(&Kind::Plain.prompt(&mut self.words))?;
        let ours_first = agent.peer.micros_since_start();

        let mut bare = Bare::start(&url, self.bench_dir.path(), self.bed.cwd.path())?;
        sums.start.push(agent.to_session, bare.to_ready);
        bare.load(&self.asked(Kind::Plain, 1)?)?;
        bare.turn()?;
        sums.first.push(ours_first, bare.peer.micros_since_start());

        for ((kind, &count), of) in Kind::ALL.into_iter().zip(counts).zip(&mut sums.kinds) {
            self.turns(kind, count, (&mut agent, &mut bare), &kept, of)?;
        }
        let memory = |peer: &Peer| -> Result<Memory> { proc::memory(peer.pid()) };
        let (ours, floor) = (memory(&agent.peer)?, memory(&bare.peer)?);
        sums.now.push(ours.now, floor.now);
        sums.peak.push(ours.peak, floor.peak);
        agent.peer.finish()?;
        bare.peer.finish()
    }

    fn turns(
        &mut self,
        kind: Kind,
        count: usize,
        (agent, bare): (&mut Agent, &mut Bare),
        kept: &Path,
        of: &mut OfKind,
    ) -> Result<()> {
        let prompts: Vec<String> = (0..count).map(|_| kind.prompt(&mut self.words)).collect();
        self.seen = self.model.requests().len();
        let journal = kept.join("journal.db");
        let before = commits(&journal)?;
        let mut prompts = prompts.iter();
        let ours = Batch::of(agent.peer.pid(), count, || {
            agent.turn(prompts.next().context("there is a prompt for each turn")?)
        })?;
        let commits = commits(&journal)?.wrapping_sub(before) as usize;
        let syncs = commits.div_ceil(count) + SYNCS_OF_THE_SESSION_FILE;

        let turns = self.asked(kind, count)?;
        bare.load(&turns)?;
        let floor = Batch::of(bare.peer.pid(), count, || bare.turn())?;
        bare.load(&with_syncs(turns, syncs))?;
        let durable = Batch::of(bare.peer.pid(), count, || bare.turn())?;

        of.time.push(ours.time, floor.time);
        of.cpu.push(ours.cpu, floor.cpu);
        of.durable.push(ours.time, durable.time);
        of.syncs.push(syncs as f64);
        Ok(())
    }

    /// The agent's requests since the last call, as turns of the bare client.
    fn asked(&self, kind: Kind, count: usize) -> Result<Vec<Turn>> {
        let requests = self.model.requests();
        let new = requests.get(self.seen..).unwrap_or_default();
        ensure!(
            new.len() == count * kind.requests() && new.iter().all(|new| new.status == 200),
            "{count} turns took {} requests, and not all of them were good",
            new.len()
        );
        let bodies: Vec<String> = new.iter().map(|new| new.body.to_string()).collect();
        let turns = bodies.chunks(kind.requests());
        Ok(turns
            .map(|bodies| kind.bare(bodies, self.bed.cwd.path()))
            .collect())
    }
}

/// Consecutive turns: their median time, and their mean CPU time.
struct Batch {
    time: f64,
    cpu: f64,
}

impl Batch {
    fn of(pid: u32, count: usize, mut turn: impl FnMut() -> Result<f64>) -> Result<Self> {
        let mut times = Samples::default();
        let before = proc::cpu_micros(pid)?;
        for _ in 0..count {
            times.push(turn()?);
        }
        let cpu = proc::cpu_micros(pid)? - before;
        Ok(Self {
            time: times.median(),
            cpu: cpu / count as f64,
        })
    }
}

/// The same turns with this many syncs in each, spread over its steps.
fn with_syncs(turns: Vec<Turn>, syncs: usize) -> Vec<Turn> {
    let with = |turn: Turn| {
        let steps = turn.len();
        let mut synced = Turn::with_capacity(steps + syncs);
        for (at, step) in turn.into_iter().enumerate() {
            let share = (at + 1) * syncs / (steps + 1) - at * syncs / (steps + 1);
            synced.extend(std::iter::repeat_n(Step::Sync, share));
            synced.push(step);
        }
        let left = syncs - steps * syncs / (steps + 1);
        synced.extend(std::iter::repeat_n(Step::Sync, left));
        synced
    };
    turns.into_iter().map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_spread_over_a_turn() {
        let turn = || vec![Step::Ask(String::new()), Step::Ask(String::new())];
        for syncs in 0..12 {
            let turns = with_syncs(vec![turn(), turn()], syncs);
            for turn in turns {
                let is_sync = |step: &&Step| matches!(step, Step::Sync);
                assert_eq!(turn.iter().filter(is_sync).count(), syncs);
                assert_eq!(turn.len(), syncs + 2);
                let last = turn.last();
                assert!(syncs == 0 || matches!(last, Some(Step::Sync)));
            }
        }
    }

    #[test]
    fn a_batch_has_the_median_of_its_turns() {
        let mut times = [5.0, 1.0, 3.0].into_iter();
        let batch = Batch::of(std::process::id(), 3, || Ok(times.next().unwrap())).unwrap();
        assert!((batch.time - 3.0).abs() < 1e-9 && batch.cpu >= 0.0);
    }
}
