//! A state directory that is deleted under a running daemon: nobody is told that something was kept which is nowhere,
//! and nothing is left that would go on.

use crate::house::{House, until};
use agentd_client::api::Send;
use agentd_client::{Error, Kind};
use std::path::Path;
use std::process::Stdio;

fn delete(home: &Path) {
    // Somebody may write to it at this very moment.
    until("an empty place", || {
        let _in_part = std::fs::remove_dir_all(home);
        (!home.exists()).then_some(())
    });
}

fn is_gone(pid: u32) -> bool {
    crate::house::reap(pid);
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// The daemon made the directory anew, and acknowledged prompts that were nowhere.
#[test]
fn a_daemon_whose_home_was_deleted_refuses_and_ends_with_its_runtimes() {
    let house = House::new();
    house.create("coder");
    house.completed("coder", "do: say before");
    house.send("coder", &format!("do: slowly 100 {}", "word ".repeat(500)));
    let runtime = until("a process", || house.pid("coder"));
    // A connection that is there already: the socket's file is deleted, too.
    let send = Send {
        text: "do: say nothing".to_owned(),
        env: house.caller(),
        ..Send::default()
    };
    let client = house.client();
    let sender = house.spawn(async move {
        loop {
            match client.send("coder", &send).await {
                Ok(_) => {}
                Err(Error::Problem(problem)) => break Some(problem),
                Err(_) => break None,
            }
        }
    });
    delete(&house.home());
    if let Some(problem) = house.block(sender).unwrap() {
        assert_eq!(problem.kind, Kind::Internal, "{problem:#?}");
        assert!(problem.title.contains("was deleted"), "{problem:#?}");
    }
    assert_eq!(house.until_daemon_ends(), Some(4));
    until("the runtime's end", || is_gone(runtime).then_some(()));
    assert!(!house.home().exists(), "it was made anew");
    assert!(
        house.log().contains("the state directory is gone"),
        "{}",
        house.log()
    );
}

/// Whoever waits for an answer does not begin an empty home in the place of the one that had the question.
#[test]
fn a_client_that_waits_does_not_make_a_deleted_home_anew() {
    let house = House::new();
    house.create("coder");
    let mut command = house.command();
    let text = format!("do: slowly 100 {}", "word ".repeat(500));
    command.args(["send", "coder", &text]).envs(house.caller());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let waiting = command.spawn().unwrap();
    until("a turn", || house.show("coder").turn);
    delete(&house.home());
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    house.until_daemon_ends();
    assert!(!house.home().exists(), "it was made anew");
}

/// The same for one that another directory was put in the place of.
#[test]
fn a_daemon_whose_home_was_replaced_ends() {
    let house = House::new();
    house.create("coder");
    std::fs::rename(house.home(), house.root().join("elsewhere")).unwrap();
    std::fs::create_dir(house.home()).unwrap();
    assert_eq!(house.until_daemon_ends(), Some(4));
    let left = std::fs::read_dir(house.home()).unwrap().count();
    assert_eq!(left, 0, "something was put into another's directory");
}
