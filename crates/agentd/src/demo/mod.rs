//! `agentd demo`: a true story, told while it happens.
//!
//! It runs the very program that a user runs, `agentd agent`, with the model that is built in and real
//! tools, and kills it. Everything it prints with a ✓ was looked up first, and the first thing that is
//! not so ends it.
//!
//! - [`story`]: the steps, in order. [`claims`]: what is said, and whether it held.
//! - [`evidence`]: the checks themselves, pure.
//! - [`worker`]: the agent's process, seen from outside.

mod claims;
mod evidence;
mod story;
mod worker;

use crate::error::{Error, Exit};
use crate::output::Output;

pub async fn run(out: &mut Output) -> Result<(), Error> {
    let folder = tempfile::Builder::new()
        .prefix("agentd-demo-")
        .tempdir()
        .map_err(|error| {
            Error::new(Exit::Unavailable, "the demo has no folder to work in")
                .because(error)
                .next("set TMPDIR to a folder that can be written to")
        })?;
    match story::tell(out, folder.path()).await {
        // Evidence: whoever looks into it needs the files.
        Err(error) if error.is_failure() => {
            let kept = folder.keep();
            let next = format!(
                "please report it; the demo's files are in {}",
                kept.display()
            );
            Err(error.next(next))
        }
        ended => ended,
    }
}
