//! `cargo xtask peers`: agents of others, as their registries have them, under agentd and against the strict fake model.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{npm, tree};

/// The peers, each with the test that runs it.
const PEERS: [(&str, &str); 6] = [
    ("goose", "peers::agents::goose_runs_under_agentd"),
    ("claude", "peers::agents::claude_runs_under_agentd"),
    ("codex", "peers::agents::codex_runs_under_agentd"),
    ("opencode", "peers::agents::opencode_runs_under_agentd"),
    ("gemini", "peers::agents::gemini_runs_under_agentd"),
    ("pi", "peers::agents::pi_runs_under_agentd"),
];

/// `false`: one of them failed.
pub fn run() -> Result<bool> {
    let root = tree::root()?;
    npm::install_peers(&root)?;
    let mut build = tree::cargo(&root);
    // The tests start the program itself, and its fake servers.
    build.args(["test", "--workspace", "--no-run", "--quiet"]);
    if !build.status().context("cannot start cargo")?.success() {
        return Ok(false);
    }
    let mut rows = Vec::new();
    for (peer, test) in PEERS {
        println!("\n== {peer}");
        let mut command: Command = tree::cargo(&root);
        command
            .args(["test", "--workspace", "--test", "acp", "--", test])
            .args(["--exact", "--nocapture"])
            .env("AGENTD_TEST_PEERS", "1");
        let output = command.output().context("cannot start cargo")?;
        let said = String::from_utf8_lossy(&output.stdout);
        print!("{said}");
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        rows.push((peer, verdict(peer, output.status.code(), &said)));
    }
    println!("\n{}", table(&rows));
    Ok(rows.iter().all(|(_, verdict)| verdict != FAILED))
}

const FAILED: &str = "FAILED";

/// A test that was skipped ends well, and says so. So does a run without the test, which says nothing.
fn verdict(peer: &str, exit_code: Option<i32>, said: &str) -> String {
    let skipped = said.lines().find(|line| line.starts_with("skipped: "));
    let has_passed = said.contains(&format!("{peer}: passed"));
    match (exit_code, skipped) {
        (Some(0), Some(skipped)) => skipped.to_owned(),
        (Some(0), None) if has_passed => "passed".to_owned(),
        _ => FAILED.to_owned(),
    }
}

fn table(rows: &[(&str, String)]) -> String {
    let lines = rows
        .iter()
        .map(|(peer, verdict)| format!("{peer:<10} {verdict}"));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_peer_is_not_shown_as_passed() {
        let said = "running 1 test\nskipped: pi is not installed\ntest x ... ok\n";
        assert_eq!(verdict("pi", Some(0), said), "skipped: pi is not installed");
        assert_eq!(verdict("goose", Some(0), "goose: passed\n"), "passed");
        assert_eq!(verdict("pi", Some(101), said), FAILED);
        assert_eq!(verdict("pi", Some(0), "running 0 tests\n"), FAILED);
        let rows = [("goose", "passed".to_owned()), ("pi", FAILED.to_owned())];
        assert_eq!(table(&rows), "goose      passed\npi         FAILED");
    }
}
