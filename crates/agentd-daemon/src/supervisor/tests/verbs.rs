//! Verbs whose effect depends on the agent's process, with simulated processes.

use super::bed;
use crate::lifecycle::archive::archive;
use crate::lifecycle::ops::Asked;
use crate::lifecycle::restore::restore;
use agentd_client::api::{Archive, Restore};
use agentd_core::event::OpVerb;
use std::time::Duration;
use tokio::time::timeout;

/// For tests that would otherwise hang; shorter than the time that a verb waits.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_prompt_that_was_queued_before_archiving_runs_after_the_restore() {
    let bed = bed();
    let handle = bed.agent(Some("hello")).await;
    bed.started(&handle, 1).await;
    let asked = Asked::by_daemon(OpVerb::Archive);
    archive(&handle, Archive::default(), &asked).await.unwrap();
    assert!(handle.lock().await.process.is_none());
    let asked = Asked::by_daemon(OpVerb::Restore);
    restore(&handle, Restore::default(), &asked).await.unwrap();
    timeout(SOON, bed.started(&handle, 2)).await.unwrap();
}
