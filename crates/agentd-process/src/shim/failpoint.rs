//! Places where a test can make a shim wait, and then kill it or let it go on.

use crate::task::Folder;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(2);

/// Goes on at once, unless the order names this place. A shim whose folder is gone ends.
pub fn reach(place: &str, ordered: Option<&str>, folder: &Folder) {
    if ordered != Some(place) {
        return;
    }
    let at = folder.path().join(format!("at-{place}"));
    let go = folder.path().join("go");
    if std::fs::write(at, "").is_err() {
        std::process::exit(1);
    }
    while !go.exists() {
        if !folder.path().exists() {
            std::process::exit(1);
        }
        // tidy: polls for a file that a test makes
        std::thread::sleep(PAUSE);
    }
}
