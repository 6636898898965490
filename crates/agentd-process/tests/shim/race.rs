//! Start against recovery and interrupt: exactly one of them wins.

use crate::fixture::Fixture;
use agentd_process::task::{self, Found};
use std::fs;
use std::time::Instant;

const ROUNDS: u32 = 300;

#[test]
fn either_it_runs_or_it_is_said_not_to() {
    let fixture = Fixture::new();
    // About how long a shim takes to have the claim.
    let begin = Instant::now();
    let task = fixture.start_in(&fixture.cwd().join("first"), &fixture.script(""));
    crate::fixture::wait_until("the claim", || task.dir().join("claim").exists());
    let usual = begin.elapsed();
    fixture.exit(&task);

    // Longer after each time that it was not started, shorter after each time that it was: so it
    // stays around the moment that matters.
    let (mut wait, step) = (usual, usual / 20);
    let (mut won, mut lost) = (0, 0);
    for round in 0..ROUNDS {
        let dir = fixture.cwd().join(round.to_string());
        let ran = fixture.cwd().join(format!("ran-{round}"));
        let order = fixture.script(&format!("echo once >>ran-{round}"));
        let begin = Instant::now();
        let task = fixture.start_in(&dir, &order);
        while begin.elapsed() < wait {
            std::hint::spin_loop();
        }
        let found = match round % 2 {
            0 => task::find(&dir, None),
            _ => task::withdraw(&dir),
        };
        match found.unwrap() {
            Found::NeverStarted => {
                lost += 1;
                wait += step;
                let ended = fixture.found(&task);
                assert!(matches!(ended, Found::NeverStarted), "{ended:?}");
                assert!(!ran.exists(), "round {round}: it ran");
            }
            Found::Running(_) | Found::Ended(_) => {
                won += 1;
                wait = wait.saturating_sub(step);
                assert_eq!(fixture.exit(&task).code, Some(0));
                assert_eq!(fs::read_to_string(&ran).unwrap(), "once\n");
            }
            Found::Unknown => panic!("round {round}: unknown"),
        }
    }
    assert!(won > 0 && lost > 0, "{won} to {lost}");
    assert_eq!(won + lost, ROUNDS);
}

#[test]
fn of_two_starts_in_one_directory_one_runs() {
    let fixture = Fixture::new();
    let order = fixture.script("echo once >>ran");
    let tasks = [fixture.start(&order), fixture.start(&order)];
    for task in &tasks {
        assert_eq!(fixture.exit(task).code, Some(0));
    }
    assert_eq!(
        fs::read_to_string(fixture.cwd().join("ran")).unwrap(),
        "once\n"
    );
}

#[test]
fn what_was_taken_back_is_never_started() {
    let fixture = Fixture::new();
    let found = task::withdraw(&fixture.dir()).unwrap();
    assert!(matches!(found, Found::NeverStarted), "{found:?}");
    let task = fixture.start(&fixture.script(": >ran"));
    let found = fixture.found(&task);
    assert!(matches!(found, Found::NeverStarted), "{found:?}");
    assert!(!fixture.cwd().join("ran").exists());
}

/// A directory is removed when the end of its task is recorded: a shim that was slow must not run it then.
#[test]
fn a_task_whose_directory_was_removed_never_runs() {
    let fixture = Fixture::new();
    let order = fixture.held("after-order", fixture.script("echo once >>ran"));
    let task = fixture.start(&order);
    fixture.wait_for_hold();
    assert!(task::remove(task.dir()).unwrap());
    assert!(!task.dir().exists());
    fixture.release();
    let ended = fixture.found(&task);
    assert!(matches!(ended, Found::NeverStarted), "{ended:?}");
    assert!(!fixture.cwd().join("ran").exists());
}

#[test]
fn the_directory_of_a_running_task_is_not_removed() {
    let fixture = Fixture::new();
    let task = fixture.start(&fixture.script(": >begun; while ! [ -e go ]; do sleep 0.01; done"));
    fixture.wait_for("begun");
    assert!(!task::remove(task.dir()).unwrap());
    fs::write(fixture.cwd().join("go"), "").unwrap();
    assert_eq!(fixture.exit(&task).code, Some(0));
    assert!(task::remove(task.dir()).unwrap());
    assert!(!task.dir().exists());
}
