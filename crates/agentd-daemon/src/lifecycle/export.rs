//! Writes an agent, with the history that it branched off, to one export file.

use crate::daemon::Daemon;
use crate::error::Result;
use agentd_core::id::AgentId;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// The buffer of an export. Shared, because the store takes ownership of the writer.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The content of the file. It is complete before its first byte is sent.
pub async fn export(daemon: &Daemon, agent: AgentId) -> Result<Vec<u8>> {
    let out = Shared::default();
    daemon.store.export(agent, Box::new(out.clone())).await?;
    let mut bytes = out.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *bytes))
}
