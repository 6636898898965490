//! Runs made up by hand: a good one has no violation, and each way to break a promise is caught.

mod backups;
mod commands;
mod files;
mod good;
mod hooks;
mod journal;
mod outer;
mod processes;
mod run_dir;
mod schedules;
mod seen;
mod source;
mod subagents;
mod webhooks;

use good::good;
use run_dir::RunDir;

/// That a good run, changed like this, breaks this promise and says so in these words.
#[track_caller]
fn breaks(promise: &str, words: &str, change: impl FnOnce(&mut RunDir)) {
    let mut run_dir = good();
    change(&mut run_dir);
    let found = run_dir.check();
    let hit = found
        .iter()
        .any(|found| found.promise == promise && found.what.contains(words));
    assert!(hit, "no {promise} with `{words}` in {found:#?}");
}

/// That a good run, changed like this, is still a good one.
#[track_caller]
fn is_fine(change: impl FnOnce(&mut RunDir)) {
    let mut run_dir = good();
    change(&mut run_dir);
    let found = run_dir.check();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_good_run_has_no_violation() {
    is_fine(|_| {});
}
