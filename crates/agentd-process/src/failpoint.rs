//! Places where a test can hold a process still, to kill it there. A switch at run time: a process that
//! nobody switched it on for pays for one look at a flag.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(2);

static SET: OnceLock<Failpoint> = OnceLock::new();

#[derive(Debug)]
struct Failpoint {
    name: String,
    folder: PathBuf,
}

/// From now on this process stops at the place of this name, once: it makes the file `at` in the
/// folder and goes on when there is a file `go`. The first call counts.
pub fn set(name: String, folder: PathBuf) {
    let _set_before = SET.set(Failpoint { name, folder });
}

/// This is the place `when-what`.
pub fn hit(when: &str, what: &str) {
    let Some(set) = SET.get() else { return };
    let is_this = set
        .name
        .strip_prefix(when)
        .and_then(|name| name.strip_prefix('-'));
    if is_this != Some(what) || set.folder.join("at").exists() {
        return;
    }
    // Where it cannot be said that we are here, nobody waits for it.
    if std::fs::write(set.folder.join("at"), b"").is_err() {
        return;
    }
    while !set.folder.join("go").exists() {
        // tidy: polls
        std::thread::sleep(POLL);
    }
}
