//! The floor: a minimal client that sends the same requests to the same server. It stores nothing, decides nothing, and
//! does the work of a tool in the simplest way. It receives its requests beforehand, and is measured like the agent:
//! from a frame to a line.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use reqwest::Client;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::peer::{Peer, micros_since};

/// One step of its work.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Step {
    /// Send a request, and read the streamed answer to its end.
    Ask(String),
    Read(PathBuf),
    Shell(String),
    /// Replace a file atomically, and sync it.
    Write {
        path: PathBuf,
        bytes: usize,
    },
    /// Append as much as a small event to a file, and sync it.
    Sync,
}

/// The steps of one prompt.
pub type Turn = Vec<Step>;

const READY: &str = "ready";
const LOADED: &str = "loaded";
const DONE: &str = "done";
const GO: &str = "go";

/// So that a synced write is about as large as a commit of the journal.
const SYNCED: [u8; 1024] = [b'x'; 1024];

pub struct Bare {
    pub peer: Peer,
    /// From its start to its first line, in microseconds.
    pub to_ready: f64,
}

impl Bare {
    pub fn start(url: &str, bench_dir: &Path, cwd: &Path) -> Result<Self> {
        let program = std::env::current_exe().context("cannot get the path of this program")?;
        let mut command = Command::new(program);
        command
            .arg("bare-client")
            .arg(format!("{url}/v1/messages"))
            .arg(bench_dir)
            .current_dir(cwd);
        let mut peer = Peer::start("the bare client", command)?;
        said(&mut peer, READY)?;
        let to_ready = peer.micros_since_start();
        Ok(Self { peer, to_ready })
    }

    /// Sends it the steps of its next turns.
    pub fn load(&mut self, turns: &[Turn]) -> Result<()> {
        self.peer.send(&serde_json::to_string(turns)?)?;
        said(&mut self.peer, LOADED)
    }

    /// Runs its next turn, and returns the time in microseconds.
    pub fn turn(&mut self) -> Result<f64> {
        let start = Instant::now();
        self.peer.send(GO)?;
        said(&mut self.peer, DONE)?;
        Ok(micros_since(start))
    }
}

fn said(peer: &mut Peer, word: &str) -> Result<()> {
    peer.line(|line| line.trim_end() == word).map(drop)
}

#[derive(clap::Args)]
pub struct ChildArgs {
    url: String,
    /// Where it may write
    bench_dir: PathBuf,
}

/// What the child does, until its input ends.
pub fn child(args: &ChildArgs) -> Result<()> {
    // As the agent has it: one thread that works, one that reads.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (frames, mut queue) = mpsc::channel(16);
    std::thread::spawn(move || {
        for frame in io::stdin().lock().split(0).map_while(Result::ok) {
            if frames.blocking_send(frame).is_err() {
                return;
            }
        }
    });
    runtime.block_on(async {
        let client = Bareness::new(args)?;
        let mut turns: VecDeque<Turn> = VecDeque::new();
        say(READY)?;
        while let Some(frame) = queue.recv().await {
            if frame == GO.as_bytes() {
                for step in turns.pop_front().context("there is nothing to do")? {
                    client.carry_out(step).await?;
                }
                say(DONE)?;
            } else {
                turns.extend(serde_json::from_slice::<Vec<Turn>>(&frame)?);
                say(LOADED)?;
            }
        }
        Ok(())
    })
}

fn say(word: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{word}")?;
    Ok(out.flush()?)
}

struct Bareness {
    client: Client,
    url: String,
    file: File,
}

impl Bareness {
    fn new(args: &ChildArgs) -> Result<Self> {
        // The client wants one even where nothing is encrypted.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        Ok(Self {
            client: Client::builder().no_proxy().build()?,
            url: args.url.clone(),
            file: File::create(args.bench_dir.join("synced"))?,
        })
    }

    async fn carry_out(&self, step: Step) -> Result<()> {
        match step {
            Step::Ask(body) => self.ask(body).await,
            Step::Read(path) => {
                let text = std::fs::read_to_string(&path)?;
                ensure!(!text.is_empty(), "{} is empty", path.display());
                Ok(())
            }
            Step::Shell(command) => {
                let output = Command::new("/bin/sh").arg("-c").arg(command).output()?;
                ensure!(
                    output.status.success(),
                    "a command failed: {}",
                    output.status
                );
                Ok(())
            }
            Step::Write { path, bytes } => {
                let new = path.with_extension("new");
                let mut file = std::fs::File::create(&new)?;
                file.write_all(&vec![b'x'; bytes])?;
                file.sync_all()?;
                Ok(std::fs::rename(new, path)?)
            }
            Step::Sync => {
                (&self.file).write_all(&SYNCED)?;
                Ok(self.file.sync_data()?)
            }
        }
    }

    async fn ask(&self, body: String) -> Result<()> {
        let mut response = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("anthropic-version", "2023-06-01")
            .header("x-api-key", "bench")
            .body(body)
            .send()
            .await?;
        let status = response.status();
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            answer.extend_from_slice(&chunk);
        }
        let answer = String::from_utf8_lossy(&answer);
        ensure!(
            status.is_success() && answer.contains("message_stop"),
            "the server answered {status}: {answer}"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_a_frame_without_a_nul() {
        let turn = vec![
            Step::Ask("{\"a\":\"\u{0}\"}".to_owned()),
            Step::Read("a".into()),
            Step::Shell("true".to_owned()),
            Step::Sync,
        ];
        let text = serde_json::to_string(&[turn]).unwrap();
        assert!(!text.contains('\0') && text != GO);
        let turns: Vec<Turn> = serde_json::from_str(&text).unwrap();
        assert!(
            matches!(&turns[0][..], [Step::Ask(body), _, _, Step::Sync] if body.contains('\0'))
        );
    }
}
