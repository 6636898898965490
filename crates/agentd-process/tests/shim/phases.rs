//! A shim is killed in each phase of its life; the state of its task is then determined from its directory.

use crate::fixture::{Fixture, wait_until};
use agentd_process::task::{self, Found, Task};
use agentd_process::{Delivery, Signal, signal};

/// Runs a task up to this failpoint of its shim, and kills the shim there.
fn killed_at(fixture: &Fixture, place: &str, text: &str) -> Task {
    let task = fixture.start(&fixture.held(place, fixture.script(text)));
    fixture.wait_for_hold();
    assert_eq!(signal(task.shim(), Signal::KILL).unwrap(), Delivery::Sent);
    task
}

#[test]
fn before_the_claim_it_was_never_started() {
    let fixture = Fixture::new();
    let task = killed_at(&fixture, "after-order", ": >ran");
    let found = fixture.found(&task);
    assert!(matches!(found, Found::NeverStarted), "{found:?}");
    let again = task::find(&fixture.dir(), None).unwrap();
    assert!(matches!(again, Found::NeverStarted), "{again:?}");
    assert!(!fixture.cwd().join("ran").exists());
}

#[test]
fn after_the_claim_nobody_knows() {
    let fixture = Fixture::new();
    let task = killed_at(&fixture, "after-claim.shim", ": >ran");
    for found in [
        fixture.found(&task),
        task::find(&fixture.dir(), None).unwrap(),
    ] {
        assert!(matches!(found, Found::Unknown), "{found:?}");
    }
    assert!(!fixture.cwd().join("ran").exists());
}

#[test]
fn after_the_start_what_is_left_is_ended() {
    let fixture = Fixture::new();
    let text = "trap '' TERM; sleep 1000 & setsid sleep 1000 & : >ready; sleep 1000";
    let task = fixture.start(&fixture.held("after-start", fixture.script(text)));
    fixture.wait_for("ready");
    fixture.wait_for_hold();
    assert_eq!(signal(task.shim(), Signal::KILL).unwrap(), Delivery::Sent);
    let found = fixture.found(&task);
    assert!(matches!(found, Found::Unknown), "{found:?}");
    fixture.assert_nobody_is_left();
    let again = task::find(&fixture.dir(), None).unwrap();
    assert!(matches!(again, Found::Unknown), "{again:?}");
}

#[test]
fn after_the_start_a_cgroup_finds_even_those_who_left_all_else() {
    let fixture = Fixture::new();
    let order = fixture.script("(setsid sh -c '(sleep 1000 &)' &); : >ready; sleep 1000");
    let task = fixture.start(&fixture.held("after-start", order));
    fixture.wait_for("ready");
    fixture.wait_for_hold();
    let has_cgroup = fixture.running()["cgroup"].is_string();
    assert_eq!(signal(task.shim(), Signal::KILL).unwrap(), Delivery::Sent);
    let found = fixture.found(&task);
    assert!(matches!(found, Found::Unknown), "{found:?}");
    if has_cgroup {
        fixture.assert_nobody_is_left();
    }
}

#[test]
fn before_the_exit_file_nobody_knows() {
    let fixture = Fixture::new();
    let task = killed_at(&fixture, "before-write-task.exit", ": >ran");
    let found = fixture.found(&task);
    assert!(matches!(found, Found::Unknown), "{found:?}");
    assert!(fixture.cwd().join("ran").exists());
}

#[test]
fn after_the_exit_file_all_is_known() {
    let fixture = Fixture::new();
    let task = killed_at(&fixture, "after-rename-task.exit", "exit 9");
    let exit = fixture.exit(&task);
    assert_eq!(exit.code, Some(9));
}

#[test]
fn a_shim_goes_on_when_it_is_told_to() {
    for place in [
        "after-order",
        "before-claim.shim",
        "after-claim.shim",
        "before-rename-task.running",
        "after-start",
        "before-write-task.exit",
        "before-rename-task.exit",
        "after-rename-task.exit",
    ] {
        let fixture = Fixture::new();
        let task = fixture.start(&fixture.held(place, fixture.script("exit 4")));
        fixture.wait_for_hold();
        fixture.release();
        assert_eq!(fixture.exit(&task).code, Some(4), "{place}");
    }
}

/// A shim has one thread, so it receives a signal before it does anything else. In this test the shim also has a thread of
/// the test harness, which may receive the signal instead.
fn wait_until_heard(task: &Task) {
    wait_until("the signal is heard", || {
        let path = format!("/proc/{}/status", task.shim().pid);
        let status = std::fs::read_to_string(path).unwrap();
        let field = |name| {
            let mut lines = status.lines();
            lines
                .find_map(|line| line.strip_prefix(name))
                .unwrap()
                .trim()
        };
        let pending = u64::from_str_radix(field("ShdPnd:"), 16).unwrap();
        pending == 0 && field("State:").starts_with('S')
    });
}

#[test]
fn a_stop_before_the_start_is_heeded() {
    for (place, claimed) in [("after-order", false), ("after-claim.shim", true)] {
        let fixture = Fixture::new();
        let task = fixture.start(&fixture.held(place, fixture.script(": >ran")));
        fixture.wait_for_hold();
        assert_eq!(task.stop().unwrap(), Delivery::Sent);
        wait_until_heard(&task);
        fixture.release();
        match fixture.found(&task) {
            Found::NeverStarted => assert!(!claimed),
            Found::Ended(exit) => assert!(claimed && exit.stopped && exit.code.is_none()),
            other => panic!("{other:?}"),
        }
        assert!(!fixture.cwd().join("ran").exists());
    }
}

#[test]
fn half_an_order_starts_nothing() {
    let fixture = Fixture::new();
    let order = serde_json::to_string(&fixture.script(": >ran")).unwrap();
    let program = crate::fixture::shim_program();
    for text in [&order[..order.len() - 1], ""] {
        let input = fixture.cwd().join("half");
        std::fs::write(&input, text).unwrap();
        let status = std::process::Command::new(&program.program)
            .args(&program.args)
            .arg(fixture.dir())
            .stdin(std::fs::File::open(&input).unwrap())
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(2));
    }
    let found = task::find(&fixture.dir(), None).unwrap();
    assert!(matches!(found, Found::NeverStarted), "{found:?}");
    assert!(!fixture.cwd().join("ran").exists());
}

/// The lab's switches are refused for a task outside the lab.
#[test]
fn outside_the_lab_a_shim_with_a_plan_starts_nothing() {
    let fixture = Fixture::new();
    let elsewhere = tempfile::tempdir().unwrap();
    agentd_failpoint::plan::Plan::default()
        .write(elsewhere.path())
        .unwrap();
    let mut order = fixture.script(": >ran");
    order.lab = Some(elsewhere.path().to_owned());
    let task = fixture.start(&order);
    let found = fixture.found(&task);
    assert!(matches!(found, Found::NeverStarted), "{found:?}");
    assert!(!fixture.cwd().join("ran").exists());
}
