//! The agent's plan: shown to users, cleared by a reset, restored by an undo, and repeated to the model after a compaction.

use crate::sandbox::tool;
use crate::test_daemon::TestDaemon;
use agentd_client::api::{Compact, Fork, Reset};
use agentd_core::event::{Body, Direction, Kind, NoticeCause, StepState};
use agentd_core::spec::ApprovalMode;
use serde_json::{Value, json};

fn plan(states: &[&str]) -> Value {
    let step = |(n, state): (usize, &&str)| json!({"step": format!("part {n}"), "state": state});
    json!({"steps": states.iter().enumerate().map(step).collect::<Vec<_>>()})
}

fn set(daemon: &TestDaemon, states: &[&str]) -> String {
    tool(daemon, "update_plan", &plan(states))
}

fn states(daemon: &TestDaemon, name: &str) -> Option<Vec<StepState>> {
    let plan = daemon.show(name).plan?;
    Some(plan.steps.iter().map(|step| step.state).collect())
}

fn reset(daemon: &TestDaemon, step: Option<Direction>) {
    let reset = Reset {
        step,
        ..Reset::default()
    };
    daemon
        .block(daemon.client().reset("coder", &reset))
        .unwrap();
}

fn last_request(daemon: &TestDaemon) -> String {
    daemon.requests().last().unwrap().body.to_string()
}

#[test]
fn the_plan_is_shown_and_belongs_to_its_conversation() {
    use StepState::{Done, InProgress, Pending};
    let daemon = TestDaemon::new();
    let mut spec = daemon.spec();
    spec.approval = Some(ApprovalMode::Always);
    daemon.create_with("coder", spec);
    assert_eq!(states(&daemon, "coder"), None);
    let said = set(&daemon, &["in_progress", "pending"]);
    assert!(said.starts_with("The plan was updated: 0 of 2"), "{said}");
    assert_eq!(states(&daemon, "coder").unwrap(), [InProgress, Pending]);
    // It survives its process and the daemon.
    daemon.kill_runtime("coder");
    daemon.kill_daemon();
    daemon.start_daemon();
    assert_eq!(states(&daemon, "coder").unwrap(), [InProgress, Pending]);
    set(&daemon, &["done", "in_progress"]);
    assert_eq!(states(&daemon, "coder").unwrap(), [Done, InProgress]);
    let shown = daemon.cli(&["show", "coder"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("[x] part 0"), "{shown}");
    assert!(shown.contains("[>] part 1"), "{shown}");
    let json = daemon.cli(&["show", "coder", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["plan"]["steps"][0]["state"], "done");
    let log = String::from_utf8(daemon.cli(&["logs", "coder"]).stdout).unwrap();
    let plan = log.split("plan: 1 of 2 done\n").nth(1).unwrap();
    assert!(plan.trim_start().starts_with("[x] part 0\n"), "{log}");
    // A fork shares it, a reset clears it, an undo restores it.
    let fork = Fork {
        name: Some("twin".to_owned()),
        ..Fork::default()
    };
    daemon.block(daemon.client().fork("coder", &fork)).unwrap();
    reset(&daemon, None);
    assert_eq!(states(&daemon, "coder"), None);
    reset(&daemon, Some(Direction::Undo));
    assert_eq!(states(&daemon, "coder").unwrap(), [Done, InProgress]);
    daemon.completed("twin", "do: say ready");
    assert_eq!(states(&daemon, "twin").unwrap(), [Done, InProgress]);
    daemon.verify();
}

#[test]
fn a_wrong_plan_is_refused_and_the_old_one_stays() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    set(&daemon, &["in_progress"]);
    let said = set(&daemon, &["in_progress", "in_progress"]);
    assert!(
        said.contains("steps 1 and 2 are both in_progress"),
        "{said}"
    );
    let said = set(&daemon, &["pending"; 21]);
    assert!(said.contains("at most 20 steps"), "{said}");
    assert_eq!(states(&daemon, "coder").unwrap().len(), 1);
    assert_eq!(daemon.count("coder", Kind::PlanSet), 1);
    let said = tool(&daemon, "update_plan", &json!({"steps": []}));
    assert_eq!(said, "The plan was removed.");
    assert_eq!(states(&daemon, "coder"), None);
    daemon.verify();
}

#[test]
fn the_model_is_reminded_of_its_plan_after_a_compaction() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    set(&daemon, &["done", "in_progress"]);
    let reminders = || {
        let events = daemon.events("coder").into_iter();
        let plans = events.filter(
            |event| matches!(&event.body, Body::Notice(it) if it.cause == NoticeCause::Plan),
        );
        plans.count()
    };
    daemon.completed("coder", "do: say next");
    assert_eq!(reminders(), 0);
    let compact = || {
        daemon
            .block(daemon.client().compact("coder", &Compact::default()))
            .unwrap();
    };
    compact();
    daemon.completed("coder", "do: say next");
    let request = last_request(&daemon);
    assert!(request.contains("1. [done] part 0"), "{request}");
    // Once, also for another process.
    daemon.kill_runtime("coder");
    daemon.completed("coder", "do: say next");
    assert_eq!(reminders(), 1);
    compact();
    daemon.completed("coder", "do: say next");
    assert_eq!(reminders(), 2);
    // A finished plan is not repeated, and neither is one of another conversation.
    set(&daemon, &["done", "done"]);
    compact();
    daemon.completed("coder", "do: say next");
    assert_eq!(reminders(), 2);
    reset(&daemon, None);
    daemon.completed("coder", "do: say next");
    assert_eq!(reminders(), 2);
    daemon.verify();
}
