//! Imports an agent from an export file, under its own name or another one. It is held until the user starts it.

use super::ops::Asked;
use super::schedule;
use super::start::start;
use crate::agent_name;
use crate::clock;
use crate::daemon::Daemon;
use crate::error::{Error, Kind, Result};
use crate::spawn::blocking;
use agentd_client::api;
use agentd_core::event::{HeldPart, OpVerb};
use agentd_core::id::{AgentId, OpId};
use agentd_failpoint as failpoint;
use agentd_store::{Import, ImportAs, Imported};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::sync::Arc;

/// The op is in the commit of the import. A repeated request finds it under the agent's own id, or under the id of the
/// copy, which is derived from the op.
pub async fn import(
    daemon: &Arc<Daemon>,
    ask: api::Import,
    op: Option<OpId>,
    mut file: File,
) -> Result<Imported> {
    // The file may be large, and every agent waits for the thread that this runs on.
    let digested = blocking(move || digest(&mut file).map(|digest| (file, digest))).await;
    let (file, digest) = digested.map_err(|error| {
        let what = "the file cannot be read back";
        Error::new(Kind::Unavailable, what).because(error)
    })?;
    let asked = Asked::new(op, OpVerb::Import, &(&ask.name, digest))?;
    let under = match &ask.name {
        Some(name) => Some(ImportAs {
            name: agent_name::checked(name)?,
            id: op.map_or_else(|| AgentId::new(clock::new_id()), AgentId::of_op),
        }),
        None => None,
    };
    let order = Import {
        at: clock::now(),
        operation: asked.operation(),
        under,
    };
    let imported = daemon.store.import(Box::new(file), order).await;
    failpoint::hit("after", "import");
    let imported = imported?;
    // The agent may be in use already, because another agent's history refers to it: then its handle must reload.
    let handle = daemon.handle(imported.agent).await?;
    handle.lock().await.written_elsewhere();
    if failpoint::injected_bug("imports_released") {
        let keep = HeldPart::ALL.to_vec();
        let release = Some(api::Release { keep, head: None });
        let released = api::Start {
            release,
            ..api::Start::default()
        };
        start(&handle, released, &Asked::by_daemon(OpVerb::Start)).await?;
        let schedules: Vec<String> = {
            let guard = handle.lock().await;
            let schedules = guard.state.schedules.iter();
            schedules.map(|schedule| schedule.name.clone()).collect()
        };
        let resumed = Asked::by_daemon(OpVerb::ResumeSchedule);
        for name in schedules {
            schedule::resume(&handle, &name, &resumed).await?;
        }
    }
    Ok(imported)
}

/// The digest of the file, by which a repeated request is recognised.
fn digest(file: &mut File) -> io::Result<String> {
    let mut hash = Sha256::new();
    hash.update(file.metadata()?.len().to_le_bytes());
    file.rewind()?;
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut chunk)?;
        match chunk.get(..read) {
            Some([]) | None => break,
            Some(bytes) => hash.update(bytes),
        }
    }
    file.rewind()?;
    let hash = hash.finalize();
    Ok(hash.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// Operations in journals have this digest: a request is repeated after an upgrade too.
    #[test]
    fn the_digest_of_a_file_stays_the_same_and_the_file_is_read_from_its_beginning() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"journal").unwrap();
        assert_eq!(
            digest(&mut file).unwrap(),
            "0c53c28d4b5ea3ac900b7d57adea4266a3020f0474f0b02323c219073d660013"
        );
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "journal");
    }
}
