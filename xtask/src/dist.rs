//! `cargo xtask dist`: builds the packages, and tests each of them on a root that contains nothing else of this machine.

mod deb;
mod image;
mod installed;
mod namespaces;
mod staged;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;

use crate::tree;

const PACKAGES: [&str; 3] = ["install", "deb", "image"];
/// What the demo prints at its end.
const ALL_HOLD: &str = "claims checked, all hold";

#[derive(clap::Args)]
pub struct Args {
    /// Build and test this package only
    #[arg(long, value_name = "PACKAGE", value_parser = PossibleValuesParser::new(PACKAGES))]
    only: Option<String>,
    /// Where the packages of the clean root come from
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://deb.debian.org/debian"
    )]
    mirror: String,
}

/// How far a package came. An error means that it could not be built, or failed its test.
enum Outcome {
    Tested(PathBuf),
    /// Built, but not tested here.
    Untested(PathBuf, String),
    /// Cannot be built here.
    Skipped(String),
}

/// `false`: a package could not be built, or failed its test.
pub fn run(args: &Args) -> Result<bool> {
    let root = tree::root()?;
    let mut rows = Vec::new();
    for name in PACKAGES {
        if args.only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        println!("\n== {name}");
        let outcome = match name {
            "install" => installed::make(&root),
            "deb" => deb::make(&root, &args.mirror),
            _ => image::make(&root),
        };
        rows.push((name, outcome));
    }
    println!();
    for (name, outcome) in &rows {
        println!("{}", line(name, outcome));
    }
    Ok(rows.iter().all(|(_, outcome)| outcome.is_ok()))
}

fn line(name: &str, outcome: &Result<Outcome>) -> String {
    match outcome {
        Ok(Outcome::Tested(path)) => format!("{name:<8} passed: {}", path.display()),
        Ok(Outcome::Untested(path, why)) => {
            format!(
                "{name:<8} built: {}\n         skipped: its test: {why}",
                path.display()
            )
        }
        Ok(Outcome::Skipped(why)) => format!("{name:<8} skipped: {why}"),
        Err(error) => format!("{name:<8} FAILED: {error:#}"),
    }
}

/// Where packages are put, whatever the target directory of cargo is: manifests name it.
fn dir(root: &Path) -> PathBuf {
    root.join("target/dist")
}

/// The program as users build it, for this machine or for another target.
fn build(root: &Path, target: Option<&str>) -> Result<PathBuf> {
    let mut command = tree::cargo(root);
    command.args(["build", "--release", "--locked", "-p", "agentd"]);
    let mut dir = tree::target(root);
    if let Some(target) = target {
        let variable = format!("CC_{}", target.replace('-', "_"));
        command.args(["--target", target]).env(variable, "musl-gcc");
        dir.push(target);
    }
    run_to_end(&mut command)?;
    Ok(dir.join("release/agentd"))
}

fn run_to_end(command: &mut Command) -> Result<()> {
    println!("$ {}", shown(command));
    let status = command.status();
    let status = status.with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", shown(command));
    }
    Ok(())
}

/// What it prints; it must succeed.
fn output_of(command: &mut Command) -> Result<String> {
    let output = command.output();
    let output = output.with_context(|| format!("cannot start `{}`", shown(command)))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("`{}`: {}\n{text}{errors}", shown(command), output.status);
    }
    Ok(text)
}

/// The command without the scripts in its arguments.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| word.to_string_lossy());
    let short = words.map(|word| {
        if word.contains('\n') {
            "…".into()
        } else {
            word
        }
    });
    short.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_was_not_tested_is_not_shown_as_passed() {
        let path = || PathBuf::from("a.deb");
        let why = || "only root may".to_owned();
        let shown = |outcome| line("deb", &outcome);
        assert_eq!(shown(Ok(Outcome::Tested(path()))), "deb      passed: a.deb");
        let untested = shown(Ok(Outcome::Untested(path(), why())));
        assert!(
            untested.contains("skipped: its test: only root may"),
            "{untested}"
        );
        assert!(!untested.contains("passed"), "{untested}");
        assert_eq!(
            shown(Ok(Outcome::Skipped(why()))),
            "deb      skipped: only root may"
        );
        let failed = shown(Err(anyhow::anyhow!("no").context("building")));
        assert_eq!(failed, "deb      FAILED: building: no");
    }
}
