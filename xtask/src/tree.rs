//! Finds the repository and installed programs.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root of the workspace that contains the current directory.
pub fn root() -> Result<PathBuf> {
    let here = env::current_dir().context("cannot determine the current directory")?;
    for dir in here.ancestors() {
        if is_workspace(&dir.join("Cargo.toml")) {
            return Ok(dir.to_path_buf());
        }
    }
    bail!(
        "no workspace at or above {}: run this inside the repository",
        here.display()
    )
}

fn is_workspace(manifest: &Path) -> bool {
    fs::read_to_string(manifest)
        .is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
}

/// A command for the cargo that started this process, or the one in `PATH`.
///
/// The variables that `cargo run` set about this package are removed: `cargo machete` would conclude that it is
/// run that way itself, and misread its arguments.
pub fn cargo(root: &Path) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_about_a_package) {
            command.env_remove(name);
        }
    }
    command
}

/// The target directory of cargo.
pub fn target(root: &Path) -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root.join(dir),
        None => root.join("target"),
    }
}

fn is_about_a_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"]
        .iter()
        .any(|start| variable.starts_with(start))
}

/// Whether `cargo NAME` is an installed command.
pub fn has_cargo_command(root: &Path, name: &str) -> bool {
    cargo(root)
        .args([name, "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Whether `PATH` has a file of this name.
pub fn has_program(name: &str) -> bool {
    env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(name).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_above_this_crate() {
        let root = root().unwrap();
        assert!(root.join("xtask/Cargo.toml").is_file());
    }

    #[test]
    fn a_called_cargo_does_not_hear_of_this_package() {
        let command = cargo(Path::new("."));
        let removed = |name: &str| {
            command
                .get_envs()
                .any(|(variable, value)| variable == name && value.is_none())
        };
        // Set by the process that runs this test.
        assert!(removed("CARGO_PKG_NAME"));
        assert!(removed("CARGO_MANIFEST_DIR"));
        assert!(!removed("PATH"));
    }

    #[test]
    fn a_program_is_found_in_the_path_only() {
        assert!(has_program("sh"));
        assert!(!has_program("no-such-program-anywhere"));
    }
}
