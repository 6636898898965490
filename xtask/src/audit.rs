//! `cargo xtask audit`: bans, licences and sources of our dependencies, and unused dependencies.

use anyhow::{Context, Result, bail};

use crate::tree;
use std::path::Path;

#[derive(clap::Args)]
pub struct Args {
    /// Install missing programs: takes minutes
    #[arg(long)]
    install: bool,
    /// Skip programs that are not installed, and print which
    #[arg(long, conflicts_with = "install")]
    if_installed: bool,
    /// Also look for known vulnerabilities: downloads the advisory database
    #[arg(long)]
    advisories: bool,
}

struct Audit {
    /// The cargo command, from the package `cargo-NAME`.
    name: &'static str,
    args: &'static [&'static str],
}

const AUDITS: &[Audit] = &[
    Audit {
        name: "deny",
        args: &["check", "bans", "licenses", "sources"],
    },
    Audit {
        name: "machete",
        args: &[],
    },
];

/// Runs all of them. `false`: at least one has findings.
pub fn run(args: &Args) -> Result<bool> {
    let root = tree::root()?;
    let is_there = |audit: &&Audit| tree::has_cargo_command(&root, audit.name);
    let missing: Vec<String> = AUDITS
        .iter()
        .filter(|audit| !is_there(audit))
        .map(|audit| format!("cargo-{}", audit.name))
        .collect();
    if args.if_installed {
        for package in &missing {
            println!(
                "skipped: {package} is not installed; `cargo xtask audit --install` installs it"
            );
        }
    } else if !missing.is_empty() {
        if !args.install {
            bail!("{}", advice(&missing));
        }
        println!("$ cargo install --locked {}", missing.join(" "));
        let status = tree::cargo(&root)
            .args(["install", "--locked"])
            .args(&missing)
            .status()
            .context("cannot start cargo")?;
        if !status.success() {
            bail!("cargo install failed: {status}");
        }
    }

    let mut verdicts = Vec::new();
    for audit in AUDITS.iter().filter(is_there) {
        let mut wanted = audit.args.to_vec();
        if args.advisories && audit.name == "deny" {
            wanted.push("advisories");
        }
        println!("\n== cargo {} {}", audit.name, wanted.join(" "));
        let status = tree::cargo(&root)
            .arg(audit.name)
            .args(&wanted)
            .status()
            .context("cannot start cargo")?;
        verdicts.push((audit.name, status));
    }
    let is_clean = has_no_injected_bugs(&root)?;
    println!();
    for (name, status) in &verdicts {
        let verdict = if status.success() { "passed" } else { "FAILED" };
        println!("{name:<10} {verdict}");
    }
    println!(
        "{:<10} {}",
        "features",
        if is_clean { "passed" } else { "FAILED" }
    );
    Ok(is_clean && verdicts.iter().all(|(_, status)| status.success()))
}

/// Whether the program, built alone, is built without the injected bugs.
fn has_no_injected_bugs(root: &Path) -> Result<bool> {
    let args = ["tree", "-p", "agentd", "-e", "features,no-dev"];
    println!("\n== cargo {}", args.join(" "));
    let output = tree::cargo(root)
        .args(args)
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let features = String::from_utf8_lossy(&output.stdout);
    let bugs: Vec<&str> = lab_features(&features).collect();
    for line in &bugs {
        println!("injected bugs are compiled in: {line}");
    }
    Ok(bugs.is_empty())
}

fn lab_features(features: &str) -> impl Iterator<Item = &str> {
    let lines = features.lines();
    lines.filter(|line| line.contains("agentd-failpoint feature \"lab\""))
}

fn advice(missing: &[String]) -> String {
    let packages = missing.join(" ");
    format!(
        "{packages} not installed. Run:\n    cargo install --locked {packages}\n\
         or let this do it:\n    cargo xtask audit --install"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_with_injected_bugs_is_found() {
        let clean = "agentd v0.1.0\n├── agentd-failpoint feature \"default\"\n";
        assert_eq!(lab_features(clean).count(), 0);
        let lab = "agentd v0.1.0\n│   ├── agentd-failpoint feature \"lab\"\n";
        assert_eq!(lab_features(lab).count(), 1);
    }

    #[test]
    fn the_advice_is_a_command_to_run() {
        let advice = advice(&["cargo-deny".into(), "cargo-machete".into()]);
        assert!(advice.contains("cargo install --locked cargo-deny cargo-machete"));
        assert!(advice.contains("cargo xtask audit --install"));
    }
}
