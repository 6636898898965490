//! The writer, seen from outside: started, listened to, killed.

use super::telling::Telling;
use crate::error::{Error, Exit};
use agentd_core::id::AgentId;
use agentd_process::{Child, Delivery, Signal, Start, signal_group};
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::Stdio;
use tokio::sync::mpsc;

/// This very program, even if its file was replaced since.
const OURSELVES: &str = "/proc/self/exe";

pub struct Victim {
    child: Child,
    tellings: mpsc::UnboundedReceiver<Telling>,
    is_dead: bool,
}

impl Victim {
    pub fn start(home: &Path, agent: AgentId) -> Result<Self, Error> {
        let mut start = Start::new(OURSELVES);
        start.args = vec![
            "demo-writer".into(),
            "--home".into(),
            home.into(),
            "--agent".into(),
            agent.to_string().into(),
        ];
        start.env = std::env::vars_os().collect();
        start.stdout = Stdio::piped();
        start.stderr = Stdio::inherit();
        let mut child = start.spawn().map_err(|error| cannot("start", error))?;
        let (sender, tellings) = mpsc::unbounded_channel();
        if let Some(stdout) = child.take_stdout() {
            // Ends with the pipe, and so with the process.
            std::thread::spawn(move || listen(stdout, &sender));
        }
        Ok(Self {
            child,
            tellings,
            is_dead: false,
        })
    }

    pub const fn pid(&self) -> u32 {
        self.child.identity().pid
    }

    /// What it says next; none when it has ended.
    pub async fn next(&mut self) -> Option<Telling> {
        self.tellings.recv().await
    }

    /// Ends it without a chance to tidy up, and returns how that went.
    pub fn kill(&mut self) -> Result<agentd_process::Exit, Error> {
        let identity = self.child.identity();
        let delivery =
            signal_group(identity, Signal::KILL).map_err(|error| cannot("kill", error))?;
        let exit = self.child.wait().map_err(|error| cannot("reap", error))?;
        self.is_dead = true;
        match delivery {
            Delivery::Sent => Ok(exit),
            Delivery::Gone => Err(Error::new(Exit::Failed, "the writer was gone too early")),
        }
    }

    pub fn is_alive(&self) -> Result<bool, Error> {
        let alive = self.child.identity().is_alive();
        alive.map_err(|error| cannot("look at", error))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        if !self.is_dead {
            // On the way out there is nobody to tell.
            let _untold = self.kill();
        }
    }
}

fn listen(stdout: impl Read, sender: &mpsc::UnboundedSender<Telling>) {
    let mut lines = BufReader::new(stdout);
    let mut line = String::new();
    while let Ok(1..) = lines.read_line(&mut line) {
        // A line that was cut off acknowledges nothing.
        if let Some(telling) = line.strip_suffix('\n').and_then(Telling::parse)
            && sender.send(telling).is_err()
        {
            return;
        }
        line.clear();
    }
}

fn cannot(what: &str, error: agentd_process::Error) -> Error {
    let what = format!("the demo cannot {what} its second process");
    Error::new(Exit::Unavailable, what).because(error)
}
