//! `cargo xtask audit`: bans, licences and sources of what we depend on, and what we depend on for nothing.

use anyhow::{Context, Result, bail};

use crate::tree;

#[derive(clap::Args)]
pub struct Args {
    /// Install the programs this needs when they are missing: takes minutes
    #[arg(long)]
    install: bool,
    /// Skip what is not installed, with a line that says so
    #[arg(long, conflicts_with = "install")]
    if_installed: bool,
    /// Also look for known vulnerabilities: fetches their list
    #[arg(long)]
    advisories: bool,
}

struct Audit {
    /// The cargo command, which the package `cargo-NAME` brings.
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

/// Runs all of them. `false`: at least one found something.
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
    println!();
    for (name, status) in &verdicts {
        let verdict = if status.success() { "passed" } else { "FAILED" };
        println!("{name:<10} {verdict}");
    }
    Ok(verdicts.iter().all(|(_, status)| status.success()))
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
    fn the_advice_is_a_command_to_run() {
        let advice = advice(&["cargo-deny".into(), "cargo-machete".into()]);
        assert!(advice.contains("cargo install --locked cargo-deny cargo-machete"));
        assert!(advice.contains("cargo xtask audit --install"));
    }
}
