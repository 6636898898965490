//! The daemon is killed while a reply is streaming.

use crate::connect;
use crate::demo::claims::Claims;
use crate::demo::daemon::{DemoDaemon, cannot, is_alive, kill};
use crate::demo::evidence::{self, is_so};
use crate::error::{Error, Exit};
use agentd_client::api::{ProcessState, Status};
use agentd_core::event::Kind;
use agentd_process::Exit as Ended;

const TO: u64 = 40;
/// Lines to read before the kill.
const LINES: usize = 10;

pub async fn tell(claims: &mut Claims<'_>, demo: &mut DemoDaemon) -> Result<(), Error> {
    claims.step("kill -9 the daemon in the middle of a reply")?;
    let sent = demo.send(claims, &format!("count to {TO}")).await?;
    demo.stream(claims, LINES).await?;
    let (before, process) = (demo.agent().await?, demo.process().await?);
    claims.say(&format!(
        "| … {} lines received",
        demo.streamed.lines().count()
    ))?;
    let old = kill_daemon(claims, demo).await?;
    claims.check(
        "the agent's process is still running",
        is_so(
            is_alive(process)?,
            format!("process {}", process.pid),
            "it has ended too",
        ),
    )?;

    claims.step("Start a new daemon")?;
    demo.connection.ensure().await?;
    let new = demo.client().daemon().await?.pid;
    claims.check(
        "a new daemon is running",
        is_so(
            new != old,
            format!("process {new}"),
            "it is the same process",
        ),
    )?;
    let answer = demo.finish(claims, &sent).await?;
    let after = demo.agent().await?.process;
    claims.check(
        "the agent's process was not restarted: the new daemon adopted it",
        is_so(
            after.state == ProcessState::Adopted
                && after.pid == Some(process.pid)
                && is_alive(process)?,
            format!("process {}", process.pid),
            format!("it was {:?}, and is {after:?}", before.process),
        ),
    )?;
    claims.check(
        "the reply continued after the text that was already shown: no number is missing or repeated",
        evidence::counts_to(TO, &[&answer.text]).and_then(|seen| {
            is_so(
                answer.status == Status::Completed && answer.text.starts_with(&demo.streamed),
                seen,
                format!(
                    "{:?} was shown, the reply is {:?}",
                    demo.streamed, answer.text
                ),
            )
        }),
    )?;
    let journal = demo.journal(claims).await?;
    let requests = journal.count(answer.turn, Kind::RequestSent);
    let messages = journal.count(answer.turn, Kind::MessageAdded);
    claims.check(
        "the model got one request, and its reply is one message",
        is_so(
            (requests, messages) == (1, 1),
            "",
            format!("{requests} requests, {messages} messages"),
        ),
    )?;
    claims.check(
        "every event was shown once: none is missing, none is duplicated",
        evidence::each_once(&demo.seen, &journal.seqs()),
    )?;
    claims.check(
        "the events are numbered without a gap",
        evidence::without_gaps(&journal.seqs()),
    )
}

/// Returns the pid of the killed daemon.
async fn kill_daemon(claims: &mut Claims<'_>, demo: &mut DemoDaemon) -> Result<u32, Error> {
    let none = || Error::new(Exit::Failed, "the demo did not start this daemon");
    let mut daemon = demo.connection.take_daemon().ok_or_else(none)?;
    let identity = daemon.identity();
    kill(identity).await?;
    let ended = daemon.wait();
    let ended = ended.map_err(|error| cannot("reap the daemon", error))?;
    let killed = Ended::Signal(agentd_process::Signal::KILL.as_raw());
    let listens = connect::listens(demo.client().socket())?;
    claims.check(
        "the daemon is dead",
        is_so(
            ended == killed && !is_alive(identity)? && !listens,
            format!("process {}, signal 9", identity.pid),
            format!("it ended with {ended:?}"),
        ),
    )?;
    Ok(identity.pid)
}
