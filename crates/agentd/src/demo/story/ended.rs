//! The last step: what is on disk, and which processes are left.

use crate::connect;
use crate::demo::claims::Claims;
use crate::demo::daemon::{DemoDaemon, cannot, until};
use crate::demo::evidence::{self, is_so};
use crate::error::{Error, Exit};
use agentd_core::id::Seq;
use agentd_process::Exit as Ended;
use agentd_store::{Options, ReadQuery, SqliteStore, Store as _};
use std::time::{Duration, Instant};

/// How long the last processes may take to end.
const LAST: Duration = Duration::from_secs(5);

/// What is on disk.
pub struct Record {
    pub events: u64,
    pub conversations: usize,
    pub turns: u32,
}

pub async fn tell(claims: &mut Claims<'_>, demo: &mut DemoDaemon) -> Result<Record, Error> {
    claims.step("Stop the daemon and verify the journal")?;
    let agent = demo.agent().await?.id;
    let journal = demo.journal(claims).await?;
    claims.check(
        "every event that was shown is in the journal, exactly once",
        evidence::each_once(&demo.seen, &journal.seqs()),
    )?;
    stop(claims, demo).await?;

    let store = SqliteStore::open(Options::new(&demo.home)).map_err(failed)?;
    let mut seqs = Vec::new();
    let mut after = Some(Seq::ZERO);
    while let Some(from) = after {
        let page = store.read(ReadQuery::all(agent, from, 1000)).await;
        let page = page.map_err(failed)?;
        seqs.extend(page.events.iter().map(|event| event.seq));
        after = page.next;
    }
    claims.check(
        "the journal on disk contains all of them, without a gap",
        evidence::without_gaps(&seqs).and_then(|seen| {
            let holds = seqs.starts_with(&demo.seen);
            is_so(holds, seen, format!("it ends with {:?}", seqs.last()))
        }),
    )?;
    let report = store.verify(None).await.map_err(failed)?;
    claims.check(
        "all checksums are correct: `verify` finds no problem",
        is_so(
            report.is_clean() && report.quarantined == 0,
            format!("{} events", report.events),
            format!("{report:?}"),
        ),
    )?;
    let tree = store.load(agent).await.map_err(failed)?.state.tree;
    Ok(Record {
        events: report.events,
        conversations: tree.len(),
        turns: tree.iter().map(|it| it.turns).sum(),
    })
}

async fn stop(claims: &mut Claims<'_>, demo: &mut DemoDaemon) -> Result<(), Error> {
    claims.say("agentd daemon stop")?;
    demo.client().stop_daemon().await?;
    let none = || Error::new(Exit::Failed, "the demo did not start this daemon");
    let mut daemon = demo.connection.take_daemon().ok_or_else(none)?;
    let ended = until(async || {
        let ended = daemon.try_wait();
        ended.map_err(|error| cannot("wait for the daemon", error))
    })
    .await?;
    let listens = connect::listens(demo.client().socket())?;
    claims.check(
        "the daemon has exited cleanly",
        is_so(
            ended == Ended::Code(0) && !listens,
            "",
            format!("it ended with {ended:?}"),
        ),
    )?;
    let begin = Instant::now();
    let left = until(async || {
        let left = agentd_process::descendants();
        let left = left.map_err(|error| cannot("list its processes", error))?;
        let is_over = left.is_empty() || begin.elapsed() > LAST;
        Ok(is_over.then_some(left))
    })
    .await?;
    claims.check(
        "no process is left behind",
        is_so(left.is_empty(), "", format!("{left:?} are still running")),
    )
}

fn failed(error: agentd_store::Error) -> Error {
    Error::of_store("cannot use the demo's journal", &error)
}
