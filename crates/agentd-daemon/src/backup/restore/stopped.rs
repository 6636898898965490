//! Stops every agent of a restored home: none continues a turn, a reset or a restore of files before the user starts it. The
//! original may still be in use, with the same working directories and the same hooks.

use crate::backup::Result;
use crate::clock;
use crate::lifecycle::files::restore_over;
use agentd_core::begin::Line;
use agentd_core::event::{AgentStopped, Body, Kind, Mode, NewEvent, RestoreOutcome};
use agentd_core::id::AgentId;
use agentd_core::reset;
use agentd_core::state::{AgentState, Hold, Phase};
use agentd_store::{AgentQuery, AgentSort, Append, Store};

const PAGE: usize = 200;
/// The owner of an agent's journal while its home is restored.
pub const OWNER: &str = "restore-backup";

/// Returns how many were not stopped before.
pub async fn stop_all(store: &dyn Store) -> Result<u64> {
    let mut stopped = 0;
    for agent in all(store).await? {
        let lines = lines(&store.load(agent).await?.state);
        if lines.is_empty() {
            continue;
        }
        let mut kinds = lines.iter().map(|(_, body)| body.kind());
        stopped += u64::from(kinds.any(|kind| kind == Kind::AgentStopped));
        let at = clock::now();
        let events = lines.into_iter().map(|(conversation, body)| NewEvent {
            at,
            conversation,
            turn: None,
            body,
        });
        let fence = store.claim(agent, OWNER).await?.fence;
        store.append(Append::new(fence, events.collect())).await?;
    }
    Ok(stopped)
}

/// What is appended so that the agent does nothing. A held agent does nothing anyway.
fn lines(state: &AgentState) -> Vec<Line> {
    let (false, Some(current)) = (state.is_held(), state.tree.current()) else {
        return Vec::new();
    };
    let mut lines: Vec<Line> = reset::end_in_restored_home(state).into_iter().collect();
    if let Some(restore) = state.files.restoring {
        // How many of its files were written is not known here. It can be undone like any other one.
        let over = restore_over(restore.op, RestoreOutcome::Failed, Vec::new());
        lines.extend(over.map(|body| (current, body)));
    }
    if is_to_stop(state) {
        lines.push((current, Body::from(AgentStopped {})));
    }
    lines
}

/// A one-shot agent that has finished has nothing left to do.
fn is_to_stop(state: &AgentState) -> bool {
    let is_over =
        state.mode == Mode::Oneshot && matches!(state.phase(), Phase::Idle | Phase::Failed);
    let is_stopped = state.stopped && state.hold == Hold::No;
    !is_stopped && !state.archived && !is_over
}

/// All agents, archived ones too.
async fn all(store: &dyn Store) -> Result<Vec<AgentId>> {
    let mut agents = Vec::new();
    for archived in [false, true] {
        let mut after = None;
        loop {
            let query = AgentQuery {
                archived,
                sort: AgentSort::Name,
                limit: PAGE,
                after,
                ..AgentQuery::default()
            };
            let page = store.agents(query).await?;
            agents.extend(page.agents.into_iter().map(|agent| agent.id));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
    }
    Ok(agents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::begin;
    use agentd_core::event::{FilesRestoreBegan, ResetBegan, ResetSource, ResetTo};
    use agentd_core::id::{ConversationId, OpId};
    use agentd_core::spec::AgentSpec;
    use agentd_core::supervise::{Situation, next};
    use agentd_store::{Options, SqliteStore};

    const AGENT: AgentId = AgentId::from_bytes([1; 16]);
    const CONVERSATION: ConversationId = ConversationId::from_bytes([2; 16]);
    const OP: OpId = OpId::from_bytes([3; 16]);

    fn reset_began() -> ResetBegan {
        ResetBegan {
            op: OP,
            to: ResetTo::Fresh,
            force: false,
            kill_background: false,
            keep_queue: false,
            clear_log: false,
            skip_hooks: false,
            grace_ms: 1,
            was_awake: false,
            source: ResetSource::User,
        }
    }

    fn restore_began() -> FilesRestoreBegan {
        FilesRestoreBegan {
            op: OP,
            undo_of: None,
            to: None,
            to_in: None,
            files: 1,
            kept_bytes: 0,
        }
    }

    /// An agent with these events, after a restore of its home.
    async fn restored(bodies: Vec<Body>) -> (u64, AgentState) {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(Options::new(dir.path())).unwrap();
        let created = begin::create(
            "coder",
            Mode::Persistent,
            &AgentSpec::default(),
            CONVERSATION,
        );
        let lines = created
            .into_iter()
            .chain(bodies.into_iter().map(|body| (CONVERSATION, body)));
        let events = lines.map(|(conversation, body)| NewEvent {
            at: clock::now(),
            conversation,
            turn: None,
            body,
        });
        let fence = store.claim(AGENT, "a daemon").await.unwrap().fence;
        let append = Append::new(fence, events.collect());
        store.append(append).await.unwrap();
        let stopped = stop_all(&store).await.unwrap();
        assert_eq!(stop_all(&store).await.unwrap(), 0);
        (stopped, store.load(AGENT).await.unwrap().state)
    }

    /// Regression: the first daemon in the copy ran the hooks of the reset, and wrote the files of the restore.
    #[tokio::test]
    async fn a_reset_and_a_restore_of_files_do_not_continue() {
        let cases: [Vec<Body>; 5] = [
            Vec::new(),
            vec![reset_began().into()],
            vec![restore_began().into()],
            vec![reset_began().into(), AgentStopped {}.into()],
            vec![restore_began().into(), AgentStopped {}.into()],
        ];
        for bodies in cases {
            let kinds: Vec<Kind> = bodies.iter().map(Body::kind).collect();
            let was_stopped = kinds.contains(&Kind::AgentStopped);
            let (stopped, state) = restored(bodies).await;
            assert_eq!(stopped, u64::from(!was_stopped), "{kinds:?}");
            assert_eq!(state.phase(), Phase::Stopped, "{kinds:?}");
            assert_eq!(next(&state, &Situation::default()), None, "{kinds:?}");
            assert_eq!(state.files.restoring, None);
            assert_eq!(state.anomalies, 0, "{kinds:?}");
        }
    }
}
