//! The story, one file per step.

mod closing;
mod killed_in_a_reply;
mod killed_in_a_tool;
mod reset;
mod work;

use super::claims::Claims;
use super::evidence::{self, Verdict, is_so};
use super::worker::{Line, Worker};
use crate::agent::Folder;
use crate::error::{Error, Exit};
use crate::output::{HEADING, Output};
use agentd_core::id::{AgentId, Seq};
use agentd_process::Exit as Ended;
use agentd_store::{Loaded, ReadQuery, Store as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where the story takes place.
pub struct Scene {
    /// The agent's folder.
    pub home: PathBuf,
    /// Where it works.
    pub tree: PathBuf,
    /// Every event that it was told of.
    pub acknowledged: Vec<Seq>,
}

pub async fn tell(out: &mut Output, folder: &Path) -> Result<(), Error> {
    let begin = Instant::now();
    out.line(format_args!(
        "{HEADING}agentd demo{HEADING:#}: an agent at work, killed twice, and nothing lost"
    ))?;
    out.line("Offline, with the model that is built in and real tools, in a temporary folder that is removed at the end.")?;
    let mut claims = Claims::new(out);
    let mut scene = Scene {
        home: folder.join("agent"),
        tree: folder.join("tree"),
        acknowledged: Vec::new(),
    };
    fs::create_dir(&scene.tree).map_err(|error| cannot(&scene.tree, &error))?;

    work::tell(&mut claims, &mut scene).await?;
    killed_in_a_tool::tell(&mut claims, &mut scene).await?;
    let kept_bytes = killed_in_a_reply::tell(&mut claims, &mut scene).await?;
    let request_bytes = reset::tell(&mut claims, &mut scene).await?;
    let figures = closing::Figures {
        kept_bytes,
        request_bytes,
        seconds: begin.elapsed().as_secs_f64(),
    };
    closing::tell(&mut claims, &scene, &figures).await
}

impl Scene {
    pub fn worker(&self, args: &[&str]) -> Result<Worker, Error> {
        Worker::start(&self.home, &self.tree, args)
    }

    pub fn hear(&mut self, line: &Line) {
        self.acknowledged.extend(line.seq());
    }

    /// Lets it go on until it ends, and returns the result of its last turn.
    pub async fn finish(&mut self, mut worker: Worker) -> Result<(Line, Ended), Error> {
        let mut result = None;
        while let Some(line) = worker.next().await {
            self.hear(&line);
            if line.kind() == "turn_result" {
                result = Some(line);
            }
        }
        let ended = worker.wait()?;
        let what = format!("the agent's process ended as {ended:?}, without a result");
        let result = result.ok_or_else(|| Error::new(Exit::Failed, what))?;
        Ok((result, ended))
    }

    /// The agent's journal, between two processes.
    pub async fn open(&self) -> Result<(Folder, AgentId), Error> {
        let folder = Folder::open(&self.home)?;
        let agent = folder.agent().await?;
        let nobody = || Error::new(Exit::Failed, "there is no agent in the demo's folder");
        Ok((folder, agent.ok_or_else(nobody)?))
    }

    pub async fn load(&self) -> Result<Loaded, Error> {
        let (folder, agent) = self.open().await?;
        folder.load(agent).await
    }

    /// What was acknowledged is there, without a gap, and every checksum holds.
    pub async fn journal_is_whole(&self, claims: &mut Claims<'_>) -> Result<(), Error> {
        let (folder, agent) = self.open().await?;
        let mut there = Vec::new();
        let mut after = Some(Seq::ZERO);
        while let Some(from) = after {
            let query = ReadQuery::all(agent, from, 1000);
            let page = folder.store.read(query).await.map_err(failed)?;
            there.extend(page.events.iter().map(|event| event.seq));
            after = page.next;
        }
        claims.check(
            "every event that was acknowledged is there",
            evidence::all_there(&self.acknowledged, &there),
        )?;
        claims.check(
            "they are numbered without a gap",
            evidence::without_gaps(&there),
        )?;
        let report = folder.store.verify(None).await.map_err(failed)?;
        let verdict = is_so(
            report.is_clean() && report.quarantined == 0,
            format!("{} events", report.events),
            format!("{report:?}"),
        );
        claims.check("every checksum holds: `verify` finds nothing", verdict)
    }

    /// What a file in the tree holds.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.tree.join(name)).unwrap_or_default()
    }
}

/// It was killed, and had no chance to tidy up.
fn is_dead(worker: &Worker, ended: Ended) -> Result<Verdict, Error> {
    let killed = Ended::Signal(agentd_process::Signal::KILL.as_raw());
    Ok(is_so(
        ended == killed && !worker.is_alive()?,
        format!("process {}, signal 9", worker.pid()),
        format!("it ended as {ended:?}"),
    ))
}

fn cannot(path: &Path, error: &std::io::Error) -> Error {
    let what = format!("{} cannot be used", path.display());
    Error::new(Exit::Unavailable, what).because(error)
}

fn failed(error: agentd_store::Error) -> Error {
    Error::of_store("the demo's journal cannot be used", &error)
}
