//! Many sleeping agents compared with a few: the daemon's memory, and the time of its requests.

use std::time::Instant;

use agentd_client::Client;
use agentd_client::api::{Archive, List, Reset, Status};
use anyhow::{Result, ensure};

use super::bench_daemon::{BenchDaemon, answer};
use super::{Bed, line};
use crate::measure::Samples;
use crate::proc;
use crate::report::{Aim, Line, Unit};
use crate::turn::peer::micros_since;

const FEW: usize = 10;
/// One agent in this many has been prompted.
const PROMPTED: usize = 10;
/// Lines of a page: as many as the small state directory has agents, so that both pages are equally long.
const PAGE: usize = FEW;
/// The step from one agent to the next that is used: far away, and no agent is repeated soon.
const STRIDE: usize = 7919;
/// 64 MB.
const MEMORY: f64 = 64e6 / (1024.0 * 1024.0);
const PROMPT: &str = "do: say done";

#[derive(Clone, Copy)]
enum Ask {
    Create,
    Send,
    List,
    Show,
    Reset,
}

impl Ask {
    const ALL: [Self; 5] = [
        Self::Create,
        Self::Send,
        Self::List,
        Self::Show,
        Self::Reset,
    ];

    const fn what(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Send => "send, acknowledged",
            Self::List => "first page of the list",
            Self::Show => "show",
            Self::Reset => "reset",
        }
    }

    /// How often it is measured in a round; a send costs a whole turn.
    const fn calls(self) -> usize {
        match self {
            Self::Send => 3,
            _ => 5,
        }
    }
}

pub fn run(bed: &Bed) -> Result<Vec<Line>> {
    let size = bed.size(1000, 10_000);
    let mut many = Agents::make(bed, size)?;
    let mut few = Agents::make(bed, FEW)?;
    let new = |what: &str, unit, aim| {
        let what = format!("{what}, {size} agents");
        line(what, format!("{FEW} agents"), unit, Some(aim))
    };
    let memory = Aim::OursAtMost(MEMORY);
    let mut asleep = new("memory, all asleep", Unit::Mebibytes, memory);
    let mut lines = Ask::ALL.map(|ask| new(ask.what(), Unit::Microseconds, Aim::AtMost(2.0)));
    for round in 0..bed.size(9, 21) {
        asleep.ours.push(proc::memory(many.daemon.pid()?)?.now);
        asleep.floor.push(proc::memory(few.daemon.pid()?)?.now);
        for (ask, line) in Ask::ALL.into_iter().zip(&mut lines) {
            let (mut ours, mut floor) = (Samples::default(), Samples::default());
            for _ in 0..ask.calls() {
                ours.push(many.time(ask)?);
                floor.push(few.time(ask)?);
            }
            line.ours.push(ours.median());
            line.floor.push(floor.median());
        }
        eprintln!("  round {}", round + 1);
    }
    let mut peak = new("most memory so far", Unit::Mebibytes, memory);
    peak.ours.push(proc::memory(many.daemon.pid()?)?.peak);
    peak.floor.push(proc::memory(few.daemon.pid()?)?.peak);
    let aim = Aim::AtMost(2.0);
    let mut ready = new("ready after a kill", Unit::Microseconds, aim);
    let mut new_one = new("memory after a restart", Unit::Mebibytes, memory);
    for _ in 0..bed.size(7, 15) {
        ready.ours.push(many.start_again()?);
        ready.floor.push(few.start_again()?);
        new_one.ours.push(proc::memory(many.daemon.pid()?)?.now);
        new_one.floor.push(proc::memory(few.daemon.pid()?)?.now);
    }
    let mut all = vec![asleep, peak, new_one];
    all.extend(lines);
    all.push(ready);
    Ok(all)
}

/// A daemon with a number of agents.
struct Agents<'a> {
    daemon: BenchDaemon<'a>,
    client: Client,
    count: usize,
    /// How many agents have been used so far.
    asked: usize,
}

impl<'a> Agents<'a> {
    fn make(bed: &'a Bed, count: usize) -> Result<Self> {
        let mut daemon = BenchDaemon::new(bed)?;
        daemon.start()?;
        let start = Instant::now();
        daemon.create_all((0..count).map(name))?;
        let created = start.elapsed();
        let some = (0..count).step_by(PROMPTED).map(name);
        let failed = daemon.prompt_all(some, PROMPT, 8)?;
        ensure!(failed.is_empty(), "not all turns completed: {failed:?}");
        daemon.until_asleep()?;
        eprintln!(
            "  {count} agents created in {:.1} s, {} prompted in {:.1} s",
            created.as_secs_f64(),
            count.div_ceil(PROMPTED),
            (start.elapsed() - created).as_secs_f64()
        );
        Ok(Self {
            client: daemon.client(),
            daemon,
            count,
            asked: 0,
        })
    }

    /// The name of another agent each time.
    fn next(&mut self) -> String {
        self.asked += 1;
        name(self.asked * STRIDE % self.count)
    }

    fn time(&mut self, ask: Ask) -> Result<f64> {
        let name = self.next();
        match ask {
            Ask::Create => self.create(&format!("new-{}", self.asked)),
            Ask::Send => self.send(&name),
            Ask::List => self.list(),
            Ask::Show => self.timed(async |client| client.agent(&name).await.map(drop)),
            Ask::Reset => {
                let reset = Reset::default();
                self.timed(async |client| client.reset(&name, &reset).await.map(drop))
            }
        }
    }

    fn timed(
        &self,
        ask: impl AsyncFnOnce(&Client) -> Result<(), agentd_client::Error>,
    ) -> Result<f64> {
        let start = Instant::now();
        self.daemon.block(ask(&self.client))?;
        Ok(micros_since(start))
    }

    /// The agent is archived afterwards, so that the number of agents stays the same.
    fn create(&self, name: &str) -> Result<f64> {
        let create = self.daemon.create(name);
        let took = self.timed(async |client| client.create(&create).await.map(drop))?;
        let archive = Archive::default();
        self.daemon.block(self.client.archive(name, &archive))?;
        Ok(took)
    }

    fn send(&self, name: &str) -> Result<f64> {
        let prompt = self.daemon.prompt(PROMPT);
        let start = Instant::now();
        let sent = self.daemon.block(self.client.send(name, &prompt))?;
        let took = micros_since(start);
        let answer = self.daemon.block(answer(&self.client, name, &sent))?;
        ensure!(answer.status == Status::Completed, "{answer:?}");
        self.daemon.until_asleep()?;
        Ok(took)
    }

    fn list(&self) -> Result<f64> {
        let list = List {
            limit: Some(PAGE),
            ..List::default()
        };
        let start = Instant::now();
        let page = self.daemon.block(self.client.agents(&list))?;
        let took = micros_since(start);
        let (here, total) = (page.agents.len(), page.total);
        ensure!(
            here == PAGE && total == self.count as u64,
            "the list has {here} of {total}"
        );
        Ok(took)
    }

    fn start_again(&mut self) -> Result<f64> {
        self.daemon.kill()?;
        self.daemon.start()
    }
}

fn name(number: usize) -> String {
    format!("agent-{number}")
}
