//! `cargo xtask audit`: the licences, advisories and sources of what we depend on, and what we
//! depend on for nothing.

use anyhow::{Context, Result, bail};

use crate::place;

#[derive(clap::Args)]
pub struct Args {
    /// Install the programs this needs when they are missing
    #[arg(long)]
    install: bool,
}

struct Audit {
    /// The cargo command, which the package `cargo-NAME` brings.
    name: &'static str,
    args: &'static [&'static str],
}

const AUDITS: &[Audit] = &[
    Audit {
        name: "deny",
        args: &["check"],
    },
    Audit {
        name: "machete",
        args: &[],
    },
];

/// Runs all of them. `false`: at least one found something.
pub fn run(args: &Args) -> Result<bool> {
    let root = place::root()?;
    let missing: Vec<String> = AUDITS
        .iter()
        .filter(|audit| !place::has_cargo_command(&root, audit.name))
        .map(|audit| format!("cargo-{}", audit.name))
        .collect();
    if !missing.is_empty() {
        if !args.install {
            bail!("{}", advice(&missing));
        }
        println!("$ cargo install --locked {}", missing.join(" "));
        let status = place::cargo(&root)
            .args(["install", "--locked"])
            .args(&missing)
            .status()
            .context("cannot start cargo")?;
        if !status.success() {
            bail!("cargo install failed: {status}");
        }
    }

    let mut verdicts = Vec::new();
    for audit in AUDITS {
        println!("\n== cargo {} {}", audit.name, audit.args.join(" "));
        let status = place::cargo(&root)
            .arg(audit.name)
            .args(audit.args)
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
