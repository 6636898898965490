//! One file per verb.

pub mod agent;
pub mod daemon;
pub mod demo;
pub mod runtime;
pub mod verify;

use crate::cli::Verb;
use crate::error::Error;
use crate::output::Output;

pub async fn run(verb: Verb, out: &mut Output) -> Result<(), Error> {
    match verb {
        Verb::Agent(args) => agent::run(*args).await,
        Verb::Daemon(args) => daemon::run(args).await,
        Verb::Demo(args) => demo::run(&args, out).await,
        Verb::Runtime(args) => runtime::run(args).await,
        Verb::Verify(args) => verify::run(&args, out).await,
    }
}
