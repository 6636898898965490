//! Reads what a command says.

use super::{Used, locked};
use crate::outer::acp::TOO_MUCH;
use crate::outer::redact::Redacted;
use crate::outer::start;
use crate::outer::talk::{Pushed, Talk};
use agentd_core::outer::{ChildEvent, Lines, Over};
use agentd_process::Redactor;
use agentd_process::task::Task;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

const CHUNK: usize = 64 * 1024;

pub struct Reader {
    pub stdout: Receiver,
    pub task: Task,
    /// The name of the program, for users.
    pub program: String,
    pub talk: Arc<Talk>,
    /// Removes secrets from the output as it is, and then from what its lines mean: JSON may hide them.
    pub redactor: Redactor,
    pub redacted: Redacted,
    /// What says that a turn has succeeded, for a program that is started for each turn.
    pub succeeded: Option<PathBuf>,
    /// Its lines have the ids of deliveries.
    pub is_contract: bool,
    pub used: Arc<Mutex<Used>>,
    pub pushed: Pushed,
}

impl Reader {
    /// What these bytes of the output say. The frames of an earlier delivery are only logged.
    fn push(&mut self, lines: &mut Lines, bytes: &[u8]) {
        if self.is_contract {
            lines.expect(&locked(&self.used).delivery);
        }
        let said = lines.push(bytes);
        for late in lines.take_late() {
            tracing::warn!(
                delivery = late,
                program = self.program,
                "late answer dropped"
            );
        }
        self.say(said);
    }

    fn say(&mut self, said: impl IntoIterator<Item = ChildEvent>) {
        let said = said.into_iter();
        let clean: Vec<ChildEvent> = said.flat_map(|said| self.redacted.pass(said)).collect();
        self.pass_on(clean);
    }

    fn pass_on(&mut self, said: impl IntoIterator<Item = ChildEvent>) {
        for said in said {
            let (turn, counts) = {
                let used = locked(&self.used);
                (used.turn, used.counts)
            };
            if counts
                && self.talk.push_in(turn, said) == Pushed::TooMuch
                && self.pushed == Pushed::Fits
            {
                self.pushed = Pushed::TooMuch;
                drop(self.task.kill());
            }
        }
    }

    /// Passes on what was held back: the output has ended.
    fn finish(&mut self) {
        let held = self.redacted.finish();
        self.pass_on(held);
    }
}

/// Reads what the program says until it ends, and says how it ended.
pub async fn read_all(mut reader: Reader) {
    let (mut lines, mut chunk) = (Lines::default(), vec![0; CHUNK]);
    let mut clean = Vec::new();
    loop {
        start::until_room(&reader.talk, &reader.task).await;
        match reader.stdout.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(length) => reader.redactor.push(&chunk[..length], &mut clean),
        }
        reader.push(&mut lines, &clean);
        clean.clear();
    }
    locked(&reader.used).is_over = true;
    reader.redactor.finish(&mut clean);
    reader.push(&mut lines, &clean);
    let said = lines.finish();
    reader.say(said);
    reader.finish();
    // Before the directory of the run is removed.
    let (code, how) = start::ended_without_output(&reader.task, &reader.program).await;
    let over = match (reader.pushed, &reader.succeeded, code) {
        (Pushed::TooMuch, _, _) => Over::Failed(TOO_MUCH.to_owned()),
        (Pushed::Fits, Some(succeeded), Some(0)) => {
            mark(succeeded);
            Over::Answered
        }
        _ => Over::Failed(how),
    };
    // A program that ends between two turns is started again with the next one.
    reader.say([ChildEvent::Over(over)]);
}

/// Without this file, the next turn begins as the first one did.
fn mark(succeeded: &Path) {
    if let Err(error) = fs::write(succeeded, "") {
        tracing::warn!(%error, path = %succeeded.display(), "a turn that succeeded cannot be noted");
    }
}
