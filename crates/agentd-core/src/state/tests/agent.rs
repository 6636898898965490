//! The agent as a whole: names, phases, tasks, totality.

use crate::event::*;
use crate::fixture::{Journal, approval, request, turn};
use crate::id::{CallId, Incarnation};
use crate::message::CallOutcome;
use crate::state::{AgentState, Phase};
use crate::time::Timestamp;
use crate::usage::{MicroUsd, Usage};

fn rename(journal: &mut Journal, name: &str) {
    let name = name.to_owned();
    journal.push(AgentRenamed { name });
}

#[test]
fn old_names_stay_as_aliases_and_a_name_is_never_its_own_alias() {
    let mut journal = Journal::new();
    rename(&mut journal, "second");
    rename(&mut journal, "second");
    rename(&mut journal, "third");
    let state = journal.state();
    assert_eq!(state.name, "third");
    assert_eq!(state.aliases, ["agent", "second"]);
    rename(&mut journal, "agent");
    let state = journal.state();
    assert_eq!(state.name, "agent");
    assert_eq!(state.aliases, ["second", "third"]);
}

#[test]
fn archived_and_restored() {
    let mut journal = Journal::new();
    journal.push(AgentArchived {});
    assert!(journal.state().archived);
    journal.push(AgentRestored {});
    assert!(!journal.state().archived);
}

#[test]
fn the_phase_is_what_the_journal_says() {
    let mut journal = Journal::new();
    assert_eq!(journal.state().phase(), Phase::Idle);
    journal.start_turn(1);
    assert_eq!(journal.state().phase(), Phase::Running);
    let (asked, call) = (approval(1), CallId::new("a"));
    journal.push(ApprovalRequested::new(asked, call));
    assert_eq!(journal.state().phase(), Phase::AwaitingApproval);
    let reason = PauseReason::Crash;
    journal.push(TurnPaused { reason });
    assert_eq!(journal.state().phase(), Phase::Waiting);
    journal.push(TurnContinued {});
    journal.push(ApprovalWithdrawn { approval: asked });
    assert_eq!(journal.state().phase(), Phase::Running);
    for (status, phase) in [
        (TurnStatus::Completed, Phase::Idle),
        (TurnStatus::Interrupted, Phase::Idle),
        (TurnStatus::Limited, Phase::Idle),
        (TurnStatus::Failed, Phase::Failed),
        (TurnStatus::Lost, Phase::Failed),
    ] {
        let mut journal = journal.clone();
        journal.end_turn(status);
        assert_eq!(journal.state().phase(), phase, "{status:?}");
    }
}

#[test]
fn a_background_task_outlives_its_turn_until_it_ends_once() {
    let mut journal = Journal::new();
    let task = journal.leave_task(1);
    assert_eq!(journal.state().tasks.running().len(), 1);
    let exit = TaskExit::Code { code: 0 };
    journal.push(TaskEnded::by_itself(task, exit));
    let state = journal.state();
    assert_eq!((state.tasks.running().len(), state.tasks.ended()), (0, 1));
    assert_eq!(state.anomalies, 0);
    journal.push(TaskEnded::by_itself(task, exit));
    let state = journal.state();
    assert_eq!((state.tasks.ended(), state.anomalies), (1, 1));
}

#[test]
fn an_event_about_nothing_changes_nothing_but_the_count_of_anomalies() {
    let mut journal = Journal::new();
    let before = journal.state();
    let strays: Vec<Body> = vec![
        TurnEnded::with(TurnStatus::Completed).into(),
        TurnContinued {}.into(),
        ToolEnded::new(CallId::new("a"), CallOutcome::Ok).into(),
        ApprovalAnswered::new(approval(1), Decision::Allow).into(),
        PromptsTaken {
            prompts: vec![crate::fixture::prompt_id(1)],
        }
        .into(),
        PointerMoved {
            to: crate::fixture::conversation(7),
            direction: Direction::Undo,
            op: None,
        }
        .into(),
    ];
    let count = strays.len() as u64;
    for body in strays {
        journal.push(body);
    }
    let mut after = journal.state();
    assert_eq!(after.anomalies, count);
    after.anomalies = 0;
    after.head = before.head;
    after.updated_at = before.updated_at;
    after.used_at = before.used_at;
    // Every event of such a kind counts there: the webhook of a binding is told of it as well.
    after.changes = before.changes.clone();
    assert_eq!(
        after.tree.current_conversation().unwrap().head,
        journal.head()
    );
    after.tree = before.tree.clone();
    assert_eq!(after, before);
}

/// A list sorted by use, and the last agent of a directory, do not depend on when processes start and end.
#[test]
fn a_start_or_an_end_of_its_process_is_no_use() {
    let mut journal = Journal::new();
    let used = journal.state().used_at;
    journal.at = Timestamp::from_millis(used.as_millis() + 60_000);
    let incarnation = Incarnation(1);
    journal.push(IncarnationEnded { incarnation });
    assert_eq!(journal.state().used_at, used);
    assert!(journal.state().updated_at > used);
}

#[test]
fn what_was_spent_is_summed_for_ever_for_today_and_for_the_conversation() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    for (n, cost) in [(1, Some(MicroUsd(50))), (2, None)] {
        let usage = Usage {
            input_tokens: 10,
            output_tokens: 1,
            ..Usage::default()
        };
        journal.send(request(1, n), Purpose::Answer);
        journal.push(RequestEnded {
            request: request(1, n),
            outcome: RequestOutcome::Completed,
            usage,
            estimated: false,
            cost,
            provider_request: Some(format!("req_{n}")),
        });
    }
    let state = journal.state();
    let conversation = state.tree.current_conversation().unwrap();
    let today = state.spending.on_day_of(journal.at);
    for spent in [state.spending.lifetime, today, conversation.spent] {
        assert_eq!(spent.usage.total(), 22);
        assert_eq!((spent.requests, spent.unpriced), (2, 1));
        assert_eq!(spent.cost, MicroUsd(50), "an unknown cost is not zero");
    }
    assert_eq!(conversation.last_request.as_deref(), Some("req_2"));
}

#[test]
fn a_state_survives_being_stored() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    journal.prompt(1, "some secret words");
    journal.send(request(1, 1), Purpose::Answer);
    let state = journal.state();
    let json = serde_json::to_string(&state).unwrap();
    let read: AgentState = serde_json::from_str(&json).unwrap();
    assert_eq!(read, state);
    assert!(!json.contains("secret"), "it holds no words");
}

/// Fold of snapshot and tail equals fold of everything, for every cut.
#[test]
fn every_event_is_folded_alone() {
    let mut journal = Journal::new();
    journal.start_turn(1);
    journal.prompt(1, "hi");
    journal.send(request(1, 1), Purpose::Answer);
    journal.push(IncarnationBegan::new(Incarnation(2), After::Crash));
    journal.end_turn(TurnStatus::Lost);
    for cut in 0..=journal.events.len() {
        let mut state = AgentState::new(journal.agent);
        journal.events[..cut].iter().for_each(|e| {
            state.apply(e);
        });
        let json = serde_json::to_string(&state).unwrap();
        let mut state: AgentState = serde_json::from_str(&json).unwrap();
        journal.events[cut..].iter().for_each(|e| {
            state.apply(e);
        });
        assert_eq!(state, journal.state());
    }
    assert_eq!(journal.state().last_turn.unwrap().id, turn(1));
}
