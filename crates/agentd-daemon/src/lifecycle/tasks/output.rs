//! The output of a task: a file in which secrets are redacted, and which is kept after the task has ended.

use crate::daemon::AgentHandle;
use crate::error::{Error, Kind, Result};
use crate::id_prefix;
use crate::spawn::blocking;
use agentd_client::api::Output;
use agentd_core::id::TaskId;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// How many bytes are read at a time.
const PIECE: u64 = 64 * 1024;

/// A task of the agent, running or ended, by its id or by the beginning of its id.
pub async fn find(handle: &AgentHandle, given: &str) -> Result<TaskId> {
    let prefix = id_prefix::parse(given, "task")?;
    if let Some(whole) = prefix.whole() {
        return Ok(whole);
    }
    let (layout, agent) = (handle.daemon.layout.clone(), handle.id);
    let ids = blocking(move || layout.tasks_of(agent)).await;
    let only = id_prefix::only(&prefix, "task", ids)?;
    only.ok_or_else(|| unknown(&prefix))
}

fn unknown(task: impl Display) -> Error {
    let what = format!("no task {task} of this agent");
    let next = "`agentd tasks` shows the running tasks; of ended ones, the newest 200 are kept";
    Error::new(Kind::NotFound, what).next(next)
}

pub async fn output(handle: &AgentHandle, task: TaskId, offset: u64) -> Result<Output> {
    let dir = handle.daemon.layout.task_dir(handle.id, task);
    let task_dir = dir.clone();
    if !blocking(move || task_dir.is_dir()).await {
        return Err(unknown(task));
    }
    let read = blocking(move || read(&dir, offset)).await;
    read.map_err(|error| Error::new(Kind::Internal, "the output cannot be read").because(error))
}

fn read(dir: &Path, offset: u64) -> io::Result<Output> {
    // Checked before the output is read: after the end nothing more is written.
    let has_ended = dir.join("exit").exists();
    let mut bytes = Vec::new();
    match File::open(dir.join("output")) {
        Ok(mut file) => {
            file.seek(SeekFrom::Start(offset))?;
            file.take(PIECE).read_to_end(&mut bytes)?;
        }
        // There is no output yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let is_last = (bytes.len() as u64) < PIECE;
    if !(is_last && has_ended) {
        bytes.truncate(whole_characters(&bytes));
    }
    Ok(Output {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        next: offset + bytes.len() as u64,
        is_over: has_ended && is_last,
    })
}

/// The number of bytes without an incomplete character at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Complete, or not UTF-8.
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_not_cut() {
        assert_eq!(whole_characters("aé".as_bytes()), 3);
        assert_eq!(whole_characters(&"aé".as_bytes()[..2]), 1);
        assert_eq!(whole_characters(&[b'a', 0xff]), 2);
    }
}
