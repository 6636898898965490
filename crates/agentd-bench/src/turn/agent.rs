//! The measured program: `agentd agent`, started as a program that drives it would.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use agentd_testkit::harness::Program;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::peer::{Peer, micros_since};

/// The built program: at `path`, or else beside this program.
pub fn program(path: Option<&Path>) -> Result<PathBuf> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => Program::beside_this_one().context("cannot get the path of this program")?,
    };
    if !path.is_file() {
        bail!(
            "there is no {}: build it with `cargo build --release -p agentd`, or say --agentd PATH \
             (`cargo xtask bench turn` does both)",
            path.display()
        );
    }
    Ok(path.canonicalize()?)
}

/// What an agent is started with.
pub struct Setup<'a> {
    pub program: &'a Program,
    /// The address of its model server.
    pub url: String,
}

pub enum Begin<'a> {
    New(&'a Path),
    Resume(&'a Path),
}

impl Setup<'_> {
    pub fn command(&self, begin: &Begin<'_>) -> Command {
        let mut command = self.program.command();
        command
            .args(["agent", "--json", "--provider", "anthropic", "--base-url"])
            .arg(&self.url)
            .arg("--cwd")
            .arg(self.program.work());
        match begin {
            Begin::New(bench_dir) => command.arg("--checkpoint-dir").arg(bench_dir),
            Begin::Resume(bench_dir) => command.arg("--resume").arg(bench_dir),
        };
        command
    }
}

/// A running agent.
pub struct Agent {
    pub peer: Peer,
    /// From its start to its first line, in microseconds.
    pub to_session: f64,
}

impl Agent {
    pub fn start(command: Command) -> Result<Self> {
        let mut peer = Peer::start("agentd agent", command)?;
        peer.line(|line| is(line, "session"))?;
        let to_session = peer.micros_since_start();
        Ok(Self { peer, to_session })
    }

    /// Microseconds from the prompt to the end of its turn.
    pub fn turn(&mut self, prompt: &str) -> Result<f64> {
        let start = Instant::now();
        self.peer.send(prompt)?;
        let line = self.peer.line(|line| is(line, "turn_result"))?;
        let took = micros_since(start);
        completed(&line)?;
        Ok(took)
    }

    /// Microseconds from its start to the end of the turn that it was started with.
    pub fn first_turn(&mut self) -> Result<f64> {
        let line = self.peer.line(|line| is(line, "turn_result"))?;
        let took = self.peer.micros_since_start();
        completed(&line)?;
        Ok(took)
    }
}

/// Compares text instead of parsing the line as JSON. This is safe, because quotes inside a JSON text are escaped.
fn is(line: &str, kind: &str) -> bool {
    let mut places = line.match_indices("\"kind\":\"");
    places.any(|(at, mark)| {
        let behind = line.get(at + mark.len()..).unwrap_or_default();
        let behind = behind.strip_prefix(kind);
        behind.is_some_and(|behind| behind.starts_with('"'))
    })
}

fn completed(line: &str) -> Result<()> {
    let result: Value = serde_json::from_str(line).context("a line is not JSON")?;
    ensure!(
        result["status"] == "completed",
        "a turn was not completed: {}",
        line.trim()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_by_its_kind() {
        let line = r#"{"agent":"a","kind":"turn_result","status":"completed"}"#;
        assert!(is(line, "turn_result"));
        assert!(!is(line, "turn") && !is(line, "session"));
        let quoted = r#"{"kind":"message","text":"{\"kind\":\"turn_result\"}"}"#;
        assert!(is(quoted, "message") && !is(quoted, "turn_result"));
    }

    #[test]
    fn only_a_completed_turn_counts() {
        assert!(completed(r#"{"status":"completed"}"#).is_ok());
        let error = completed(r#"{"status":"failed","error":"no"}"#).unwrap_err();
        assert!(error.to_string().contains("\"no\""), "{error}");
        assert!(completed("what?").is_err());
    }

    #[test]
    fn a_missing_program_is_told_with_what_to_do() {
        let error = program(Some(Path::new("/nowhere/agentd"))).unwrap_err();
        assert!(error.to_string().contains("cargo build --release"));
    }
}
