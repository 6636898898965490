//! Packages from npm that tests use: installed below the target directory, at the versions of a lock file in the repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::tree;

/// A directory with `package.json` and `package-lock.json`, and the name under which it is installed.
struct Package {
    name: &'static str,
    from: &'static str,
    what_for: &'static str,
}

const PACKAGES: &[Package] = &[
    Package {
        name: "acp-sdk",
        from: "crates/agentd/tests/acp/sdk",
        what_for: "the reference client of `agentd acp`",
    },
    Package {
        name: "goose",
        from: "crates/agentd/tests/acp/goose",
        what_for: "an agent that agentd runs",
    },
];

/// Those of `cargo xtask peers`.
const PEERS: &[Package] = &[Package {
    name: "peers",
    from: "crates/agentd/tests/acp/peers",
    what_for: "more agents that agentd runs, and Node",
}];

const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs what is missing or has another version. Without npm, or without its registry, the tests that need a package say
/// that they were skipped.
pub fn install_missing(root: &Path) -> Result<()> {
    install_all(root, PACKAGES)
}

/// The same, for the agents of `cargo xtask peers`.
pub fn install_peers(root: &Path) -> Result<()> {
    install_all(root, PACKAGES)?;
    install_all(root, PEERS)
}

fn install_all(root: &Path, packages: &[Package]) -> Result<()> {
    for package in packages {
        if let Err(reason) = install(root, package) {
            println!(
                "skipped: {} ({}): {reason:#}",
                package.name, package.what_for
            );
        }
    }
    Ok(())
}

fn install(root: &Path, package: &Package) -> Result<()> {
    // Tests look for it here, whatever the target directory of cargo is.
    let dir = root.join("target/npm").join(package.name);
    let from = root.join(package.from);
    if dir.join("node_modules").is_dir() && is_same(&from, &dir) {
        return Ok(());
    }
    for program in ["node", "npm"] {
        anyhow::ensure!(tree::has_program(program), "there is no {program}");
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    for file in FILES {
        fs::copy(from.join(file), dir.join(file)).with_context(|| format!("cannot copy {file}"))?;
    }
    let args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    println!("$ npm {} (in {})", args.join(" "), dir.display());
    let status = Command::new("npm")
        .args(args)
        .current_dir(&dir)
        .status()
        .context("cannot start npm")?;
    if !status.success() {
        // The next run tries again.
        let _none = fs::remove_dir_all(dir.join("node_modules"));
        anyhow::bail!("npm ended with {status}; the registry may be out of reach");
    }
    Ok(())
}

/// Whether the installed packages are those of the lock file.
fn is_same(from: &Path, dir: &Path) -> bool {
    FILES.iter().all(|file| {
        let read = |dir: &Path| fs::read(dir.join(file)).ok();
        read(from).is_some_and(|text| Some(text) == read(dir))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_has_exact_versions() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for package in PACKAGES.iter().chain(PEERS) {
            let read = |file: &str| fs::read_to_string(root.join(package.from).join(file));
            let (wanted, locked) = (read(FILES[0]).unwrap(), read(FILES[1]).unwrap());
            for range in ["\"^", "\"~", "\"*", "\">", "latest"] {
                assert!(!wanted.contains(range), "{wanted}");
            }
            assert!(locked.contains("\"integrity\""), "{locked}");
        }
    }
}
