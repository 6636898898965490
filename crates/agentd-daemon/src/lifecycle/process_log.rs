//! The log of an agent's process: what it and its predecessor have written to standard error.

use crate::daemon::AgentHandle;
use crate::error::{Error, Kind, Result};
use crate::spawn::blocking;
use agentd_client::api::ProcessLog;
use agentd_files::foreign::{self, Links};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The end of each log that is shown.
const LAST: u64 = 128 * 1024;

/// Both logs, without secrets.
pub async fn read(handle: &AgentHandle) -> Result<ProcessLog> {
    let path = handle.daemon.layout.runtime_log(handle.id);
    let older = path.with_extension("log.1");
    let logs = blocking(move || Ok((last(&older)?, last(&path)?))).await;
    let (previous, current) = logs.map_err(|error: io::Error| {
        Error::new(Kind::Internal, "the log of the process cannot be read").because(error)
    })?;
    let secrets = handle.lock().await.secrets();
    Ok(ProcessLog {
        previous: secrets.redact(&previous),
        current: secrets.redact(&current),
    })
}

/// The end of a log; empty if there is none. A link is not followed: a tool without a sandbox could have made it.
fn last(path: &Path) -> io::Result<String> {
    let mut file = match foreign::open(path, Links::NotLast) {
        Ok(file) => file,
        Err(foreign::Error::NotFound) => return Ok(String::new()),
        Err(error) => return Err(error.into()),
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LAST)))?;
    let mut bytes = Vec::new();
    file.take(LAST).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // The first line may be a part of one, and begin in the middle of a secret.
    Ok(match text.split_once('\n') {
        Some((_, whole)) if length > LAST => whole.to_owned(),
        _ => text,
    })
}
