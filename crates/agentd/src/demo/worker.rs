//! The agent's process, seen from outside: started, listened to, killed.

use crate::error::{Error, Exit};
use agentd_core::id::Seq;
use agentd_process::{Child, Delivery, Signal, Start, signal};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use tokio::sync::mpsc;

/// This very program, even if its file was replaced since.
const OURSELVES: &str = "/proc/self/exe";

/// What it says, line by line.
pub struct Line(Value);

impl Line {
    pub fn kind(&self) -> &str {
        self.0["kind"].as_str().unwrap_or_default()
    }

    /// The place of an event that is durable.
    pub fn seq(&self) -> Option<Seq> {
        self.0["seq"].as_u64().map(Seq)
    }

    /// A piece of the reply that streams.
    pub fn delta(&self) -> Option<&str> {
        match (self.kind(), self.0["type"].as_str()) {
            ("delta", Some("text")) => self.0["text"].as_str(),
            _ => None,
        }
    }

    pub fn status(&self) -> &str {
        self.0["status"].as_str().unwrap_or_default()
    }

    pub fn text(&self) -> &str {
        self.0["text"].as_str().unwrap_or_default()
    }
}

pub struct Worker {
    child: Child,
    lines: mpsc::UnboundedReceiver<Line>,
    is_over: bool,
}

impl Worker {
    /// `agentd agent --json`, kept in `home`, at work in `tree`.
    pub fn start(home: &Path, tree: &Path, args: &[&str]) -> Result<Self, Error> {
        let mut start = Start::new(OURSELVES);
        let fixed: [OsString; 5] = [
            "agent".into(),
            "--json".into(),
            "--checkpoint-dir".into(),
            home.into(),
            "--cwd".into(),
        ];
        start.args = fixed.into();
        start.args.push(tree.into());
        start.args.extend(args.iter().map(OsString::from));
        start.env = std::env::vars_os().collect();
        start.env.push(("AGENTD_HOME".into(), home.into()));
        start.stdout = Stdio::piped();
        let mut child = start.spawn().map_err(|error| cannot("start", error))?;
        let (sender, lines) = mpsc::unbounded_channel();
        if let Some(stdout) = child.take_stdout() {
            // Ends with the pipe, and so with the process.
            std::thread::spawn(move || listen(stdout, &sender));
        }
        Ok(Self {
            child,
            lines,
            is_over: false,
        })
    }

    pub const fn pid(&self) -> u32 {
        self.child.identity().pid
    }

    /// What it says next; none when it has ended.
    pub async fn next(&mut self) -> Option<Line> {
        self.lines.recv().await
    }

    /// Ends it without a chance to tidy up, and returns how that went.
    pub fn kill(&mut self) -> Result<agentd_process::Exit, Error> {
        let sent = signal(self.child.identity(), Signal::KILL);
        match sent.map_err(|error| cannot("kill", error))? {
            Delivery::Sent => self.wait(),
            Delivery::Gone => Err(Error::new(
                Exit::Failed,
                "the agent's process was gone too early",
            )),
        }
    }

    pub fn wait(&mut self) -> Result<agentd_process::Exit, Error> {
        let exit = self.child.wait().map_err(|error| cannot("reap", error))?;
        self.is_over = true;
        Ok(exit)
    }

    pub fn is_alive(&self) -> Result<bool, Error> {
        let alive = self.child.identity().is_alive();
        alive.map_err(|error| cannot("look at", error))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.is_over {
            // On the way out there is nobody to tell.
            let _untold = self.kill();
        }
    }
}

fn listen(stdout: impl Read, sender: &mpsc::UnboundedSender<Line>) {
    let mut lines = BufReader::new(stdout);
    let mut line = String::new();
    while let Ok(1..) = lines.read_line(&mut line) {
        // A line that was cut off says nothing.
        if let Ok(value) = serde_json::from_str(&line)
            && sender.send(Line(value)).is_err()
        {
            return;
        }
        line.clear();
    }
}

fn cannot(what: &str, error: agentd_process::Error) -> Error {
    let what = format!("the demo cannot {what} the agent's process");
    Error::new(Exit::Unavailable, what).because(error)
}
