//! A disk that takes no more: whoever asks is told, nothing that was acknowledged is lost, and all goes on
//! when there is room.

use crate::house::{House, until};
use agentd_client::api::{Send, Status};
use agentd_client::{Error, Kind};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

fn limit(house: &House, bytes: Option<u64>) {
    let pid = i32::try_from(house.daemon_pid().unwrap()).unwrap();
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(Pid::from_raw(pid), Resource::Fsize, limit).unwrap();
}

#[test]
fn a_full_disk_is_told_and_nothing_is_lost() {
    let house = House::empty();
    // A write beyond the limit is an error then, and not the end.
    house.daemon_ignores("XFSZ");
    house.start_daemon();
    house.create("coder");
    house.completed("coder", "do: say before");
    limit(&house, Some(64 * 1024));
    let text = format!("do: say {}", "much ".repeat(20_000));
    let mut sent = Vec::new();
    let refused = until("a full disk", || {
        let send = Send {
            text: text.clone(),
            env: house.caller(),
            ..Send::default()
        };
        match house.block(house.client().send("coder", &send)) {
            Ok(accepted) => {
                sent.push(accepted.prompt);
                None
            }
            Err(Error::Problem(problem)) => Some(problem),
            Err(error) => panic!("{error}"),
        }
    });
    assert_eq!(refused.kind, Kind::Unavailable, "{refused:#?}");
    // So is whoever sits at a terminal, by the exit code too.
    let mut command = house.command();
    let told = command.args(["send", "coder", &text]).envs(house.caller());
    let told = told.output().unwrap();
    assert_eq!(told.status.code(), Some(4), "{told:?}");
    assert!(!told.stderr.is_empty());
    // It can still be asked.
    house.show("coder");
    limit(&house, None);
    let answer = house.completed("coder", "do: say after");
    assert_eq!(answer.text, "after");
    for prompt in sent {
        assert_eq!(house.answer("coder", prompt).status, Status::Completed);
    }
    house.requests();
    house.verify();
}
