//! Checks a backup, and the earlier ones that it needs, without restoring it.

use super::chain::Chain;
use super::unpack::{Files, unpack};
use super::{Error, Result, Watch};
use crate::spawn::blocking;
use agentd_client::api;
use agentd_core::time::Timestamp;
use agentd_store::{Options, Report};
use serde::Serialize;
use std::path::PathBuf;

/// A backup in which everything is as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifiedBackup {
    pub file: String,
    pub digest: String,
    /// Of all files of the chain.
    pub bytes: u64,
    #[serde(with = "api::time")]
    pub made_at: Timestamp,
    pub home_id: String,
    pub incremental: bool,
    /// The files that a restore needs, the first backup first.
    pub chain: Vec<String>,
    pub agents: u64,
    pub events: u64,
    pub files: u64,
}

/// Checks the digests of all files, unpacks the journal into a temporary directory below `scratch`, and checks it like
/// `agentd verify`.
pub async fn verify(file: PathBuf, scratch: PathBuf, watch: Watch) -> Result<VerifiedBackup> {
    blocking(move || {
        let chain = Chain::open(&file)?;
        let dir = tempfile::Builder::new()
            .prefix("agentd-verify-")
            .tempdir_in(&scratch)
            .map_err(Error::io(scratch))?;
        let options = Options::new(dir.path());
        let report = unpack(&chain, &options, &Files::Checked, &watch)?;
        describe(&chain, &report)
    })
    .await
}

/// The counts are of what was read, not of what the manifest claims.
fn describe(chain: &Chain, report: &Report) -> Result<VerifiedBackup> {
    let last = chain.last()?;
    Ok(VerifiedBackup {
        file: last.path.display().to_string(),
        digest: last.digest.clone(),
        bytes: chain.bytes(),
        made_at: Timestamp::from_millis(last.manifest.made_at),
        home_id: last.manifest.home.to_string(),
        incremental: last.manifest.parent.is_some(),
        chain: chain.names(),
        agents: report.agents,
        events: report.events,
        files: last.manifest.files.len() as u64,
    })
}
