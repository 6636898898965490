//! `cargo xtask check`: the inner loop. Format, clippy, the unit tests and the rules of the code base.

use crate::{suite, test, tree};
use anyhow::Result;

#[derive(clap::Args)]
pub struct Args {}

/// `false`: a suite failed.
pub fn run(_args: &Args) -> Result<bool> {
    let root = tree::root()?;
    let nextest = tree::has_cargo_command(&root, "nextest");
    test::run_all(suite::quick(nextest), &root, test::usual_slack())
}
