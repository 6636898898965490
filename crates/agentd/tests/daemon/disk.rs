//! A full disk: the daemon tells clients that it cannot write, nothing that was acknowledged is lost, and work
//! continues when there is space.

use crate::test_daemon::{TestDaemon, until};
use agentd_client::api::{Send, Status};
use agentd_client::{Error, Kind};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

fn limit(daemon: &TestDaemon, bytes: Option<u64>) {
    let pid = i32::try_from(daemon.daemon_pid().unwrap()).unwrap();
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(Pid::from_raw(pid), Resource::Fsize, limit).unwrap();
}

#[test]
fn a_full_disk_is_told_and_nothing_is_lost() {
    let daemon = TestDaemon::empty();
    // A write beyond the limit is an error then, and not the end.
    daemon.daemon_ignores("XFSZ");
    daemon.start_daemon();
    daemon.create("coder");
    daemon.completed("coder", "do: say before");
    limit(&daemon, Some(64 * 1024));
    let text = format!("do: say {}", "much ".repeat(20_000));
    let mut sent = Vec::new();
    let refused = until("a full disk", || {
        let send = Send {
            text: text.clone(),
            env: daemon.caller(),
            ..Send::default()
        };
        match daemon.block(daemon.client().send("coder", &send)) {
            Ok(accepted) => {
                sent.push(accepted.prompt);
                None
            }
            Err(Error::Problem(problem)) => Some(problem),
            Err(error) => panic!("{error}"),
        }
    });
    assert_eq!(refused.kind, Kind::Unavailable, "{refused:#?}");
    // The command line reports it too, also by its exit code.
    let mut command = daemon.command();
    let told = command.args(["send", "coder", &text]).envs(daemon.caller());
    let told = told.output().unwrap();
    assert_eq!(told.status.code(), Some(4), "{told:?}");
    assert!(!told.stderr.is_empty());
    // It can still be asked.
    daemon.show("coder");
    limit(&daemon, None);
    let answer = daemon.completed("coder", "do: say after");
    assert_eq!(answer.text, "after");
    for prompt in sent {
        assert_eq!(daemon.answer("coder", prompt).status, Status::Completed);
    }
    daemon.requests();
    daemon.verify();
}
