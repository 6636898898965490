//! A state directory that is deleted under a running daemon: the daemon acknowledges nothing that is not on disk, and
//! no process continues.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::Send;
use agentd_client::{Error, Kind};
use std::path::Path;
use std::process::Stdio;

fn delete(home: &Path) {
    // The daemon may be writing to it at this moment.
    until("an empty place", || {
        let _in_part = std::fs::remove_dir_all(home);
        (!home.exists()).then_some(())
    });
}

fn is_gone(pid: u32) -> bool {
    crate::test_daemon::reap(pid);
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// Regression: the daemon created the directory again, and acknowledged prompts that were not on disk.
#[test]
fn a_daemon_whose_home_was_deleted_refuses_and_ends_with_its_runtimes() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    daemon.completed("coder", "do: say before");
    daemon.send("coder", &format!("do: slowly 100 {}", "word ".repeat(500)));
    let runtime = until("a process", || daemon.pid("coder"));
    // A connection that is there already: the socket's file is deleted, too.
    let send = Send {
        text: "do: say nothing".to_owned(),
        env: daemon.caller(),
        ..Send::default()
    };
    let client = daemon.client();
    let sender = daemon.spawn(async move {
        loop {
            match client.send("coder", &send).await {
                Ok(_) => {}
                Err(Error::Problem(problem)) => break Some(problem),
                Err(_) => break None,
            }
        }
    });
    delete(&daemon.home());
    if let Some(problem) = daemon.block(sender).unwrap() {
        assert_eq!(problem.kind, Kind::Internal, "{problem:#?}");
        assert!(problem.title.contains("was deleted"), "{problem:#?}");
    }
    assert_eq!(daemon.until_daemon_ends(), Some(4));
    until("the runtime's end", || is_gone(runtime).then_some(()));
    assert!(!daemon.home().exists(), "it was made anew");
    assert!(
        daemon.log().contains("state directory is lost"),
        "{}",
        daemon.log()
    );
}

/// A client that waits for an answer does not create an empty home in place of the one that had the prompt.
#[test]
fn a_client_that_waits_does_not_make_a_deleted_home_anew() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    let mut command = daemon.command();
    let text = format!("do: slowly 100 {}", "word ".repeat(500));
    command.args(["send", "coder", &text]).envs(daemon.caller());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let waiting = command.spawn().unwrap();
    until("a turn", || daemon.show("coder").turn);
    delete(&daemon.home());
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    daemon.until_daemon_ends();
    assert!(!daemon.home().exists(), "it was made anew");
}

/// Regression: the next daemon told the user that the daemon before it had ended unexpectedly.
#[test]
fn a_daemon_that_ended_by_itself_is_no_trouble() {
    let settings = "[notify.webhooks.team]\nurl = \"http://127.0.0.1:9/\"\nsecret = \"HOOK\"\n";
    let mark = "outbox/running.mark.json";
    let daemon = TestDaemon::empty();
    std::fs::write(daemon.home().join("config.toml"), settings).unwrap();
    daemon.start_daemon();
    assert!(daemon.home().join(mark).exists(), "while it runs");
    daemon.signal_daemon(rustix::process::Signal::TERM);
    assert!(!daemon.home().join(mark).exists());
    // It cannot listen.
    let socket = daemon.home().join("run/api.sock");
    std::fs::create_dir(&socket).unwrap();
    let failed = daemon.cli(&["daemon", "run"]);
    assert_eq!(failed.status.code(), Some(4), "{failed:?}");
    assert!(!daemon.home().join(mark).exists());
    std::fs::remove_dir(&socket).unwrap();
    daemon.start_daemon();
    assert!(daemon.home().join(mark).exists());
    let elsewhere = daemon.root().join("elsewhere");
    std::fs::rename(daemon.home(), &elsewhere).unwrap();
    assert_eq!(daemon.until_daemon_ends(), Some(4));
    assert!(elsewhere.join("outbox").exists());
    assert!(!elsewhere.join(mark).exists());
}

/// The same for a home that was replaced by another directory.
#[test]
fn a_daemon_whose_home_was_replaced_ends() {
    let daemon = TestDaemon::new();
    daemon.create("coder");
    std::fs::rename(daemon.home(), daemon.root().join("elsewhere")).unwrap();
    std::fs::create_dir(daemon.home()).unwrap();
    assert_eq!(daemon.until_daemon_ends(), Some(4));
    let left = std::fs::read_dir(daemon.home()).unwrap().count();
    assert_eq!(left, 0, "something was put into another's directory");
}
