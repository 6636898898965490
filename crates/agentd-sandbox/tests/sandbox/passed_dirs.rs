//! A directory that one sandbox passes to another through a socket in the `/tmp` that they share.

use crate::testbed::{Testbed, testbeds};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const PYTHON: &str = "/usr/bin/python3";

/// Receives a directory, waits until its sender has ended, and uses it. An error is said.
const RECEIVER: &str = r#"
import os, socket, time
s = socket.socket(socket.AF_UNIX)
s.bind('/tmp/socket')
s.listen(1)
open('listens', 'w').close()
c, _ = s.accept()
_, fds, _, _ = socket.recv_fds(c, 1, 1)
until = time.time() + 30
while not os.path.exists('go') and time.time() < until:
    time.sleep(0.01)
def tried(path, flags):
    try:
        f = os.open(path, flags, dir_fd=fds[0])
        if flags & os.O_WRONLY:
            os.write(f, b'planted')
        return 'opened ' + path
    except OSError as e:
        return 'refused'
print(tried('.git/config', os.O_WRONLY | os.O_APPEND))
print(tried('.git/hooks/post-commit', os.O_WRONLY | os.O_CREAT))
print(tried('closed/secret', os.O_RDONLY))
print(tried('file', os.O_RDONLY))
"#;

const SENDER: &str = r#"
import os, socket
s = socket.socket(socket.AF_UNIX)
s.connect('/tmp/socket')
socket.send_fds(s, [b'x'], [os.open('.', os.O_RDONLY | os.O_DIRECTORY)])
"#;

fn until(what: &str, is_it: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_it() {
        assert!(Instant::now() < until, "no {what}");
        // tidy: polls for what another process does
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn python(testbed: &Testbed, script: &str) -> serde_json::Value {
    testbed.job(PYTHON, &["-c", script])
}

/// The mounts of a sandbox stay where they are when it has ended: what they cover stays covered for a process that holds a
/// directory of it.
#[test]
fn the_end_of_a_sandbox_uncovers_nothing() {
    if !Path::new(PYTHON).exists() {
        println!("skipped: there is no {PYTHON}");
        return;
    }
    for mut testbed in testbeds() {
        testbed
            .plain_shell("git init -q; mkdir closed; echo s > closed/secret; echo x > file; git add file; git commit -qm x")
            .succeeds();
        testbed.policy.closed.push(testbed.tree().join("closed"));
        let receiver = testbed.begin(python(&testbed, RECEIVER));
        until("listener", || testbed.tree().join("listens").exists());
        testbed.run(python(&testbed, SENDER)).succeeds();
        fs::write(testbed.tree().join("go"), "").unwrap();
        let ran = receiver.finish();
        let said: Vec<&str> = ran.output().lines().collect();
        assert_eq!(
            said,
            ["refused", "refused", "refused", "opened file"],
            "{ran:?}"
        );
    }
}
