//! Attached tasks: connected to their owner, and ended with it.

use crate::fixture::{Fixture, PATIENCE, shim_program};
use agentd_process::task::{Found, start_attached};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

#[test]
fn the_owner_talks_to_the_program_and_its_end_of_input_ends_it() {
    let fixture = Fixture::new();
    let order = fixture.script("echo trouble >&2; while read line; do echo \"got $line\"; done");
    let dir = fixture.dir();
    let (answer, found) = fixture.runtime.block_on(async {
        let mut attached = start_attached(&shim_program(), &dir, order).await.unwrap();
        attached.stdin.write_all(b"one\n").await.unwrap();
        let mut lines = BufReader::new(attached.stdout).lines();
        // The test program that runs as the shim writes a header of its own.
        let answer = loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if line.starts_with("got") {
                break line;
            }
        };
        drop(attached.stdin);
        let ended = tokio::time::timeout(PATIENCE, attached.task.ended());
        (answer, ended.await.unwrap().unwrap())
    });
    assert_eq!(answer, "got one");
    assert!(matches!(found, Found::Ended(exit) if exit.code == Some(0)));
    let errors = std::fs::read_to_string(dir.join("errors")).unwrap();
    assert_eq!(errors, "trouble\n");
}
