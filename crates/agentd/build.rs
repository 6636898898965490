//! Tells the program which commit it is built from, and when.
//!
//! Release builds only. Whenever this script has run, Cargo compiles the program and all of its tests again: a developer
//! would wait for that after each commit.

#[path = "build/commit.rs"]
mod commit;

use std::env;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970 that reproducible builds use instead of the clock.
const EPOCH: &str = "SOURCE_DATE_EPOCH";

fn main() {
    // Without such a line, any change of any file of the package would run it again.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/commit.rs");
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let from = if is_release {
        released()
    } else {
        "debug build".to_owned()
    };
    println!("cargo::rustc-env=BUILT_FROM={from}");
    let is_gnu = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    if !is_release && is_gnu {
        // A debug build has 300,000 relocations. To apply them takes half the time of a start, and tests start it
        // tens of thousands of times. At a fixed address there are none.
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}

fn released() -> String {
    println!("cargo::rerun-if-env-changed={EPOCH}");
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let root = Path::new(&package).join("../..");
    let found = commit::find(&root);
    for path in found.iter().flat_map(|found| &found.watched) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let commit = found.map(|found| found.id);
    commit::described(commit.as_deref(), seconds())
}

fn seconds() -> u64 {
    let given = env::var(EPOCH).ok();
    let parsed = given.as_deref().and_then(|text| text.trim().parse().ok());
    if given.is_some() && parsed.is_none() {
        println!("cargo::warning={EPOCH} is not a number of seconds: using the clock");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    parsed.unwrap_or_else(|| now.map(|now| now.as_secs()).unwrap_or_default())
}
