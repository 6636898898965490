//! One file per verb.

pub mod acp;
pub mod adopt_copy;
pub mod agent;
pub mod answer;
pub mod apply;
pub mod approve;
pub mod backup;
pub mod bind;
pub mod bindings;
pub mod chat;
pub mod checkpoint;
pub mod compact;
pub mod completions;
pub mod config;
pub mod context;
pub mod r#continue;
pub mod conversations;
pub mod create;
pub mod daemon;
pub mod demo;
pub mod deny;
pub mod diff;
pub mod doctor;
pub mod edit;
pub mod exec;
pub mod export;
pub mod files;
pub mod fork;
pub mod hooks;
pub mod import;
pub mod init;
pub mod interrupt;
pub mod list;
pub mod logs;
pub mod man;
pub mod mcp;
pub mod models;
pub mod prune;
pub mod purge;
pub mod queue;
pub mod rename;
pub mod replay;
pub mod reset;
pub mod restart;
pub mod restore;
pub mod restore_backup;
pub mod rewind;
pub mod rm;
pub mod run;
pub mod runtime;
pub mod schedule;
pub mod search;
pub mod secret;
pub mod send;
pub mod set;
pub mod show;
pub mod start;
pub mod status;
pub mod stop;
pub mod tasks;
pub mod trust;
pub mod unbind;
pub mod untrust;
pub mod usage;
pub mod verify;
pub mod wait;

use crate::error::Error;
use crate::output::Output;
use crate::render;
use agentd_client::api::Agent;

/// Prints that an alias of another agent was removed, because this agent now has that name.
fn tell_displaced(agent: &Agent, out: &mut Output) -> Result<(), Error> {
    let Some(other) = &agent.displaced else {
        return Ok(());
    };
    let other = render::named(other);
    let name = &agent.name;
    out.line(format_args!(
        "  `{name}` was an alias of {other} and no longer finds that agent"
    ))
}

/// Prints the state of an agent after a change: the object, or a line.
fn tell(agent: &Agent, json: bool, out: &mut Output) -> Result<(), Error> {
    if json {
        return out.json(agent);
    }
    out.line(render::agent::line(agent))?;
    match render::agent::next(agent) {
        Some(next) => out.line(format_args!("  next: {next}")),
        None => Ok(()),
    }
}
