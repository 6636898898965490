//! A child that receives NUL-terminated frames and answers in lines: the agent, or its floor.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

/// A running child. Dropping it ends it.
pub struct Peer {
    name: &'static str,
    child: Child,
    started: Instant,
    /// None once its stdin is closed.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    /// It inherits our stderr.
    pub fn start(name: &'static str, mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let started = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.context("a child has no pipes")?;
        Ok(Self {
            name,
            child,
            started,
            stdin: Some(stdin),
            stdout: BufReader::new(stdout),
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn micros_since_start(&self) -> f64 {
        micros_since(self.started)
    }

    pub fn send(&mut self, frame: &str) -> Result<()> {
        let mut bytes = Vec::with_capacity(frame.len() + 1);
        bytes.extend_from_slice(frame.as_bytes());
        bytes.push(0);
        let stdin = self.stdin.as_mut().context("its stdin is closed")?;
        stdin
            .write_all(&bytes)
            .with_context(|| format!("cannot write to {}", self.name))
    }

    /// The next line that is `wanted`; earlier lines are skipped.
    pub fn line(&mut self, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let mut line = String::new();
        loop {
            line.clear();
            let count = self
                .stdout
                .read_line(&mut line)
                .with_context(|| format!("cannot read from {}", self.name))?;
            if count == 0 {
                let status = self.child.wait()?;
                bail!("{} ended before it answered: {status}", self.name);
            }
            if wanted(&line) {
                return Ok(line);
            }
        }
    }

    /// Lets it end by itself.
    pub fn finish(mut self) -> Result<()> {
        drop(self.stdin.take());
        io::copy(&mut self.stdout, &mut io::sink())?;
        let status = self.child.wait()?;
        ensure!(status.success(), "{} failed: {status}", self.name);
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // One that has been waited for is not signalled again.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

pub fn micros_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Peer {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Peer::start("sh", command).unwrap()
    }

    #[test]
    fn frames_go_in_and_lines_come_out() {
        let mut cat = shell("echo ready; exec tr '\\0' '\\n'");
        cat.line(|line| line == "ready\n").unwrap();
        cat.send("one").unwrap();
        cat.send("two").unwrap();
        drop(cat.stdin.take());
        assert_eq!(cat.line(|line| line.starts_with("tw")).unwrap(), "two\n");
        cat.finish().unwrap();
    }

    #[test]
    fn one_that_ends_too_soon_is_told() {
        let mut early = shell("echo ready; exit 3");
        let error = early.line(|line| line == "never\n").unwrap_err();
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }

    #[test]
    fn one_that_is_dropped_ends() {
        let peer = shell("sleep 600");
        let stat = format!("/proc/{}/stat", peer.pid());
        drop(peer);
        assert!(!std::path::Path::new(&stat).exists());
    }
}
