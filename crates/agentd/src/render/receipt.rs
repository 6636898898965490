//! The receipt of a reset or a rewind, for people.

use crate::error::Error;
use crate::output::Output;
use crate::render::count;
use agentd_client::api::Receipt;

/// Prints what the operation ended and kept, and how to undo it.
pub fn print(receipt: &Receipt, out: &mut Output) -> Result<(), Error> {
    let killed = &receipt.killed;
    let parts = [
        ("stopped", killed.calls.len(), "call"),
        ("ended", killed.tasks.len(), "task"),
        ("stopped", killed.subagents.len(), "subagent"),
        ("set aside", receipt.set_aside.len(), "prompt"),
        ("hooks", receipt.hooks.len(), "hook"),
    ];
    for (what, n, unit) in parts {
        if n > 0 {
            out.line(format_args!("  {what}: {}", count(n as u64, unit)))?;
        }
    }
    for task in &receipt.kept {
        out.line(format_args!("  still running: task {task}"))?;
    }
    for subagent in &receipt.kept_subagents {
        out.line(format_args!("  still running: subagent {subagent}"))?;
    }
    if let Some(program) = receipt.program {
        out.line(format_args!("  its program: {}", program.words()))?;
    }
    out.line(format_args!("  to undo: {}", receipt.undo))
}
