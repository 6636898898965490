//! The tools of this repository, run as `cargo xtask VERB`. One file per verb.

mod audit;
mod bench;
mod check;
mod child;
mod closing;
mod dist;
mod lab;
mod machine_time;
mod need;
mod npm;
// The commands of a page, as the tests of the pages run them.
#[path = "../../crates/agentd/tests/fixture/page.rs"]
mod page;
mod peers;
mod suite;
mod systemd;
mod test;
mod tree;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The tools of this repository")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Everything a change must pass: format, clippy, tests, doctests, docs
    Test(test::Args),
    /// The inner loop: format, clippy, unit tests; under a minute after a small change
    Check(check::Args),
    /// Licences, advisories and unused dependencies
    Audit(audit::Args),
    /// Run one benchmark in release mode
    Bench(bench::Args),
    /// Kill the real program at every failpoint, and check its promises
    Lab(lab::Args),
    /// Run the daemon as a service of a throw-away `systemd --user`, and check what the service promises
    Systemd(systemd::Args),
    /// Build the packages, and test each on a clean root
    Dist(dist::Args),
    /// Install agents of others, run them under agentd, and print a table
    Peers,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().verb {
        Verb::Test(args) => test::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Audit(args) => audit::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Lab(args) => lab::run(&args),
        Verb::Systemd(args) => systemd::run(&args),
        Verb::Dist(args) => dist::run(&args),
        Verb::Peers => peers::run(),
    };
    // A verb that has printed what failed returns `false`; an error means that it could not run.
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
