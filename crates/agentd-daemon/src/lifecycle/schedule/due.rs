//! Fires schedules at their due times, without a client. A firing is one append: the event that handles the due time, and
//! the prompt or the reset. So a daemon that dies at any point leaves the due time handled with all that belongs to it, or
//! not handled at all, and the next daemon handles it.

use super::text;
use crate::clock;
use crate::daemon::{AgentGuard, Daemon};
use crate::error::{Error, Kind, Result};
use crate::lifecycle::GRACE;
use crate::lifecycle::due_times::{DueTimes, Waited};
use agentd_core::begin::Line;
use agentd_core::event::{
    Body, FiringOutcome, PausedBecause, Prompt, ResetBegan, ResetSource, ResetTo, SchedulePaused,
};
use agentd_core::id::{AgentId, OpId, PromptId, ScheduleId};
use agentd_core::schedule::{self, Attempt, Attempts, Due, Firing, Verdict, next_firing};
use agentd_core::state::Schedule;
use agentd_failpoint as failpoint;
use agentd_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// How many due schedules are read at a time.
const LOOK: usize = 64;
/// The longest wait between two checks.
const LONGEST: Duration = Duration::from_secs(15);

/// Waits for the due times of all schedules, for as long as the daemon runs.
pub async fn watch(daemon: Arc<Daemon>) {
    let mut times = DueTimes::new(&daemon);
    loop {
        let next = next(&daemon, times.attempts()).await;
        match times.wait(next, LONGEST, &daemon.schedules).await {
            Waited::Due(due) => {
                let attempt = fire_all(&daemon, due.0).await;
                times.ended(due, attempt);
            }
            Waited::Changed => {}
            Waited::DaemonEnds => return,
        }
    }
}

/// The agent whose schedule is due next, and when.
async fn next(daemon: &Daemon, attempts: &Attempts) -> Option<Due> {
    if daemon.is_read_only() || daemon.is_ending() {
        return None;
    }
    next_in(&*daemon.store, attempts).await
}

async fn next_in(store: &dyn Store, attempts: &Attempts) -> Option<Due> {
    // Those that failed a moment ago are the earliest ones: they must not hide the others.
    let due = store.due_schedules(LOOK + attempts.delayed()).await;
    let due = due.unwrap_or_else(|error| {
        tracing::warn!(%error, "due schedules cannot be listed");
        Vec::new()
    });
    attempts.first(due)
}

/// Handles everything that is due for an agent.
async fn fire_all(daemon: &Arc<Daemon>, agent: AgentId) -> Attempt {
    let mut attempt = Attempt::Nothing;
    let fired = async {
        let handle = daemon.handle(agent).await?;
        loop {
            let mut guard = handle.lock().await;
            match next_firing(&guard.state, clock::now()) {
                None => return Ok::<_, Error>(()),
                Some(Ok(firing)) => fire(&mut guard, &firing).await?,
                Some(Err((schedule, error))) => {
                    tracing::error!(%agent, %schedule, %error, "schedule paused: no due times");
                    give_up(&mut guard, schedule).await?;
                }
            }
            attempt = Attempt::Handled;
        }
    };
    match fired.await {
        Ok(()) => attempt,
        Err(error) => {
            tracing::warn!(%agent, %error, "due schedule not fired: retrying");
            Attempt::Failed
        }
    }
}

/// Handles one due time.
async fn fire(guard: &mut AgentGuard<'_>, firing: &Firing) -> Result<()> {
    let known = guard.state.schedules.get(firing.schedule).cloned();
    let Some(known) = known else { return Ok(()) };
    let made = match firing.verdict {
        Verdict::Skip(why) => Made::nothing(FiringOutcome::Skipped { why }),
        Verdict::Act => match make(guard, &known).await {
            Ok(made) => made,
            Err(error) if error.kind == Kind::NotFound => {
                let agent = guard.state.id;
                tracing::error!(%agent, schedule = known.name, %error, "schedule paused");
                return give_up(guard, firing.schedule).await;
            }
            Err(error) => return Err(error),
        },
    };
    let fired = firing.fired(made.outcome);
    let lines = schedule::events(&guard.state, fired, made.order, made.prompt)?;
    tracing::info!(
        agent = %guard.state.id, schedule = known.name, due = firing.due.as_millis(),
        verdict = ?firing.verdict, missed = firing.missed, "schedule due"
    );
    append(guard, lines).await
}

/// What a firing does.
pub struct Made {
    pub outcome: FiringOutcome,
    pub order: Option<ResetBegan>,
    pub prompt: Option<Prompt>,
}

impl Made {
    const fn nothing(outcome: FiringOutcome) -> Self {
        Self {
            outcome,
            order: None,
            prompt: None,
        }
    }
}

/// Prepares a firing. Not found: the text of the prompt is gone.
pub async fn make(guard: &AgentGuard<'_>, known: &Schedule) -> Result<Made> {
    let prompt = match text::of(guard, known).await? {
        Some(blocks) => {
            let prompt = PromptId::new(clock::new_id());
            Some(Prompt { prompt, blocks })
        }
        None if known.action.has_prompt() => {
            let what = format!("the prompt of schedule `{}` cannot be read", known.name);
            let error = Error::new(Kind::NotFound, what);
            return Err(error.next("remove the schedule and add it again"));
        }
        None => None,
    };
    let order = known.action.resets().then(|| ResetBegan {
        op: OpId::new(clock::new_id()),
        to: ResetTo::Fresh,
        force: false,
        kill_background: false,
        // Prompts that were sent meanwhile are answered in the new conversation.
        keep_queue: true,
        clear_log: false,
        skip_hooks: false,
        grace_ms: GRACE.as_millis() as u64,
        was_awake: guard.process.is_some(),
        source: ResetSource::Schedule,
    });
    let outcome = FiringOutcome::Fired {
        prompt: prompt.as_ref().map(|prompt| prompt.prompt),
        op: order.as_ref().map(|order| order.op),
    };
    Ok(Made {
        outcome,
        order,
        prompt,
    })
}

/// Commits a firing, and starts what it needs.
pub async fn append(guard: &mut AgentGuard<'_>, mut lines: Vec<Line>) -> Result<()> {
    failpoint::hit("before", "schedule_fired");
    if failpoint::injected_bug("firing_in_two") && lines.len() > 1 {
        // An injected bug: the prompt is committed before the due time is handled.
        let handled = lines.remove(0);
        guard.append(lines).await?;
        failpoint::hit("before", "schedule_handled");
        lines = vec![handled];
    }
    let events = guard.append(lines).await?;
    failpoint::hit("after", "schedule_fired");
    for event in events {
        if let Body::PromptQueued(queued) = &event.body {
            guard.handle.daemon.remember(queued.prompt, event.seq);
        }
    }
    guard.reconcile();
    Ok(())
}

/// Pauses a schedule that cannot fire, so that the user sees it.
async fn give_up(guard: &mut AgentGuard<'_>, schedule: ScheduleId) -> Result<()> {
    let why = PausedBecause::CannotRun;
    let paused = SchedulePaused { schedule, why };
    guard.note([Body::from(paused)]).await?;
    guard.reconcile();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::begin;
    use agentd_core::event::{
        MissedPolicy, Mode, NewEvent, OverlapPolicy, ScheduleAction, ScheduleAdded, ScheduleRule,
    };
    use agentd_core::id::ConversationId;
    use agentd_core::spec::AgentSpec;
    use agentd_core::time::Timestamp;
    use agentd_store::{Append, Options, SqliteStore};

    /// An agent whose schedule is due at this time.
    async fn agent(store: &dyn Store, n: u8) -> (AgentId, Timestamp) {
        let (id, conversation) = (
            AgentId::from_bytes([n; 16]),
            ConversationId::from_bytes([n; 16]),
        );
        let due = Timestamp::from_millis(i64::from(n));
        let added = ScheduleAdded {
            schedule: ScheduleId::from_bytes([n; 16]),
            name: "s1".to_owned(),
            rule: ScheduleRule::At {
                at: due,
                zone: "UTC".to_owned(),
            },
            action: ScheduleAction::Reset,
            missed: MissedPolicy::Once,
            overlap: OverlapPolicy::Skip,
            next: Some(due),
        };
        let (name, spec) = (format!("agent-{n}"), AgentSpec::default());
        let mut lines = begin::create(&name, Mode::Persistent, &spec, conversation);
        lines.push((conversation, added.into()));
        let events = lines.into_iter().map(|(conversation, body)| NewEvent {
            at: Timestamp::from_millis(0),
            conversation,
            turn: None,
            body,
        });
        let fence = store.claim(id, "a test").await.unwrap().fence;
        let append = Append::new(fence, events.collect());
        store.append(append).await.unwrap();
        (id, due)
    }

    /// Regression: as many agents as are looked at, each with a schedule that cannot fire, hid all later schedules.
    #[tokio::test]
    async fn schedules_that_fail_hide_no_other_one() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(Options::new(dir.path())).unwrap();
        let mut attempts = Attempts::default();
        for n in 1..=LOOK {
            let failing = agent(&store, u8::try_from(n).unwrap()).await;
            attempts.ended(failing, Attempt::Failed, 0);
        }
        assert_eq!(next_in(&store, &attempts).await, None);
        let last = agent(&store, u8::MAX).await;
        assert_eq!(next_in(&store, &attempts).await, Some(last));
    }
}
