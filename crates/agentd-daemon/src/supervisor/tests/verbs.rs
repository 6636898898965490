//! Verbs whose effect depends on the agent's process, with simulated processes.

use super::bed;
use crate::daemon::AgentHandle;
use crate::error::Kind;
use crate::lifecycle::archive::archive;
use crate::lifecycle::r#continue::continue_turn;
use crate::lifecycle::ops::Asked;
use crate::lifecycle::restart::restart;
use crate::lifecycle::restore::restore;
use agentd_client::api::{Archive, Restart, Restore, Start};
use agentd_core::event::{Body, LimitKind, OpVerb, TurnEnded, TurnStarted, TurnStatus};
use agentd_core::id::TurnId;
use agentd_process::Exit;
use std::time::Duration;
use tokio::time::timeout;

/// For tests that would otherwise hang; shorter than the time that a verb waits.
const SOON: Duration = Duration::from_secs(10);

/// Appends a turn that has begun and ended, in one step.
async fn append_turn(handle: &AgentHandle, n: u8, status: TurnStatus) {
    let started = TurnStarted {
        resumes: None,
        compacts: None,
    };
    let ended = TurnEnded {
        limit: (status == TurnStatus::Limited).then_some(LimitKind::Iterations),
        ..TurnEnded::with(status)
    };
    let bodies: [Body; 2] = [started.into(), ended.into()];
    let mut guard = handle.lock().await;
    let current = guard.state.tree.current().unwrap();
    let lines = bodies.map(|body| (current, body));
    let turn = Some(TurnId::from_bytes([n; 16]));
    guard.append_in(turn, lines.to_vec()).await.unwrap();
}

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

#[tokio::test]
async fn a_continued_turn_that_has_ended_before_it_is_seen_has_continued() {
    let bed = bed();
    let handle = bed.agent(None).await;
    append_turn(&handle, 1, TurnStatus::Limited).await;
    let asked = Asked::by_daemon(OpVerb::Continue);
    let continued = continue_turn(&handle, Start::default(), &asked);
    let process = async {
        bed.started(&handle, 1).await;
        append_turn(&handle, 2, TurnStatus::Completed).await;
    };
    let both = async { tokio::join!(continued, process) };
    let (continued, ()) = timeout(SOON, both).await.unwrap();
    continued.unwrap();
}

#[tokio::test]
async fn after_a_restart_that_panics_the_agent_still_gets_a_process() {
    let bed = bed();
    let handle = bed.agent(Some("hello")).await;
    bed.started(&handle, 1).await;
    bed.numbers.panics.store(true, super::Ordering::Relaxed);
    let asked = Asked::by_daemon(OpVerb::Restart);
    let error = restart(&handle, Restart::default(), &asked).await;
    assert_eq!(error.unwrap_err().kind, Kind::Internal);
    assert_eq!(handle.lock().await.awaiting_hooks, 0);
    bed.numbers.exit(0, Exit::Code(0));
    timeout(SOON, bed.started(&handle, 2)).await.unwrap();
}

#[tokio::test]
async fn an_archived_agent_is_refused_by_its_id_with_the_next_step() {
    let bed = bed();
    let handle = bed.agent(None).await;
    let id = handle.id.to_string();
    assert!(bed.daemon.active(&id).await.is_ok());
    let asked = Asked::by_daemon(OpVerb::Archive);
    archive(&handle, Archive::default(), &asked).await.unwrap();
    let error = bed.daemon.active(&id).await.err().unwrap();
    let next = format!("agentd restore {id}");
    assert_eq!((error.kind, error.next), (Kind::Refused, Some(next)));
    // It can still be read.
    assert!(bed.daemon.named(&id).await.is_ok());
}
