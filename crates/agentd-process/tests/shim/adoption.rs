//! A task outlives the process that started it, and the next process finds it.

use crate::fixture::{Fixture, script, shim_program};
use agentd_process::task::{self, Found};
use agentd_process::{Child, Delivery, Signal, Start, kill_tree, signal};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub const ARGUMENT: &str = "--start-a-task";
const SCRIPT: &str = "echo $$; : >ready; while ! [ -e go ]; do sleep 0.01; done; exit 8";

/// Starts a task in the given directory, and waits to be killed.
pub fn start_if_asked(args: Vec<OsString>) {
    let [_, _, dir, cwd] = args.as_slice() else {
        return;
    };
    let (dir, cwd) = (PathBuf::from(dir), PathBuf::from(cwd));
    let fixture = Fixture::new();
    let order = script(SCRIPT, &cwd);
    let program = shim_program();
    let start = task::start(&program, &dir, &order);
    fixture.runtime.block_on(start).unwrap();
    loop {
        std::thread::park();
    }
}

fn starter(fixture: &Fixture) -> Child {
    let mut starter = Start::new(std::env::current_exe().unwrap());
    let args = ["--exact", "starter_child", "--nocapture", "--", ARGUMENT];
    starter.args = args.map(Into::into).into();
    starter.args.push(fixture.dir().into());
    starter.args.push(fixture.cwd().into());
    let starter = starter.spawn().unwrap();
    fixture.knows(starter.identity());
    fixture.wait_for("ready");
    starter
}

/// The task continues, and this process, which did not start it, learns of its end.
fn adopt(fixture: &Fixture) {
    let Found::Running(task) = task::find(&fixture.dir(), None).unwrap() else {
        panic!("it runs");
    };
    fixture.knows(task.shim());
    assert!(!fixture.alive().is_empty());
    std::fs::write(fixture.cwd().join("go"), "").unwrap();
    let exit = fixture.exit(&task);
    assert_eq!((exit.code, exit.stopped), (Some(8), false));
    fixture.assert_nobody_is_left();
}

#[test]
fn a_task_whose_starter_was_killed_is_adopted() {
    let fixture = Fixture::new();
    let mut starter = starter(&fixture);
    let delivery = signal(starter.identity(), Signal::KILL).unwrap();
    assert_eq!(delivery, Delivery::Sent);
    starter.wait().unwrap();
    adopt(&fixture);
}

#[test]
fn a_task_is_not_ended_with_the_tree_of_its_starter() {
    let fixture = Fixture::new();
    let mut starter = starter(&fixture);
    kill_tree(starter.identity(), Duration::ZERO).unwrap();
    starter.wait().unwrap();
    let Found::Running(task) = task::find(&fixture.dir(), None).unwrap() else {
        panic!("it runs");
    };
    let alive = fixture.alive();
    kill_tree(task.shim(), Duration::ZERO).unwrap();
    assert!(alive.iter().any(|one| one.is_alive().unwrap()));
    adopt(&fixture);
}
