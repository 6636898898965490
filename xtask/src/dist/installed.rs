//! The program as `cargo install` puts it in place. Its test runs the demo with it, in an empty home.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{ALL_HOLD, Outcome, dir, output_of, run_to_end};
use crate::tree;

pub fn make(root: &Path) -> Result<Outcome> {
    let to = dir(root).join("install");
    if to.exists() {
        fs::remove_dir_all(&to).context("cannot remove the program of the last run")?;
    }
    let mut command = tree::cargo(root);
    command.args(["install", "--locked", "--path", "crates/agentd", "--root"]);
    run_to_end(command.arg(&to))?;
    let program = to.join("bin/agentd");
    let home = EmptyHome::create()?;
    let demo = output_of(&mut home.command(&program, "demo"))?;
    ensure!(demo.contains(ALL_HOLD), "{demo}");
    println!("the demo: {}", demo.lines().last().unwrap_or_default());
    Ok(Outcome::Tested(program))
}

/// Removed when it is dropped.
struct EmptyHome(PathBuf);

impl EmptyHome {
    fn create() -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("agentd-install-{}", std::process::id()));
        fs::create_dir(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(Self(dir))
    }

    /// With no variables but these.
    fn command(&self, program: &Path, verb: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command.arg(verb).current_dir(&self.0);
        command.env_clear().env("PATH", path).env("HOME", &self.0);
        command
    }
}

impl Drop for EmptyHome {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            println!("{} is left: {error}", self.0.display());
        }
    }
}
