//! One file per verb.

pub mod adopt_copy;
pub mod agent;
pub mod apply;
pub mod approve;
pub mod checkpoint;
pub mod compact;
pub mod completions;
pub mod config;
pub mod r#continue;
pub mod conversations;
pub mod create;
pub mod daemon;
pub mod demo;
pub mod deny;
pub mod doctor;
pub mod edit;
pub mod export;
pub mod fork;
pub mod hooks;
pub mod import;
pub mod interrupt;
pub mod list;
pub mod logs;
pub mod purge;
pub mod rename;
pub mod replay;
pub mod reset;
pub mod restart;
pub mod restore;
pub mod rewind;
pub mod rm;
pub mod run;
pub mod runtime;
pub mod secret;
pub mod send;
pub mod set;
pub mod show;
pub mod start;
pub mod status;
pub mod stop;
pub mod tasks;
pub mod trust;
pub mod untrust;
pub mod verify;
pub mod wait;

use crate::cli::Verb;
use crate::error::Error;
use crate::output::Output;
use crate::render;
use agentd_client::api::Agent;

pub async fn run(verb: Verb, out: &mut Output) -> Result<(), Error> {
    match verb {
        Verb::AdoptCopy(args) => adopt_copy::run(&args, out).await,
        Verb::Agent(args) => agent::run(*args).await,
        Verb::Apply(args) => apply::run(&args, out).await,
        Verb::Approve(args) => approve::run(&args, out).await,
        Verb::Checkpoint(args) => checkpoint::run(&args, out).await,
        Verb::Compact(args) => compact::run(&args, out).await,
        Verb::Completions(args) => completions::run(&args, out),
        Verb::Config(args) => config::run(&args, out),
        Verb::Continue(args) => r#continue::run(&args, out).await,
        Verb::Conversations(args) => conversations::run(&args, out).await,
        Verb::Create(args) => create::run(&args, out).await,
        Verb::Daemon(args) => daemon::run(&args, out).await,
        Verb::Demo(args) => demo::run(&args, out).await,
        Verb::Deny(args) => deny::run(&args, out).await,
        Verb::Doctor(args) => doctor::run(&args, out),
        Verb::Edit(args) => edit::run(&args, out).await,
        Verb::Export(args) => export::run(&args, out).await,
        Verb::Fork(args) => fork::run(&args, out).await,
        Verb::Hooks(args) => hooks::run(&args, out).await,
        Verb::Trust(args) => trust::run(&args, out).await,
        Verb::Untrust(args) => untrust::run(&args, out).await,
        Verb::Import(args) => import::run(&args, out).await,
        Verb::Interrupt(args) => interrupt::run(&args, out).await,
        Verb::List(args) => list::run(&args, out).await,
        Verb::Logs(args) => logs::run(&args, out).await,
        Verb::Purge(args) => purge::run(&args, out).await,
        Verb::Rename(args) => rename::run(&args, out).await,
        Verb::Replay(args) => replay::run(&args, out).await,
        Verb::Reset(args) => reset::run(&args, out).await,
        Verb::Restart(args) => restart::run(&args, out).await,
        Verb::Restore(args) => restore::run(&args, out).await,
        Verb::Rewind(args) => rewind::run(&args, out).await,
        Verb::Rm(args) => rm::run(&args, out).await,
        Verb::Run(args) => run::run(&args, out).await,
        Verb::Runtime(args) => runtime::run(args).await,
        Verb::Secret(args) => secret::run(&args, out).await,
        Verb::Send(args) => send::run(&args, out).await,
        Verb::Set(args) => set::run(&args, out).await,
        Verb::Show(args) => show::run(&args, out).await,
        Verb::Start(args) => start::run(&args, out).await,
        Verb::Status(args) => status::run(&args, out).await,
        Verb::Stop(args) => stop::run(&args, out).await,
        Verb::Tasks(args) => tasks::run(&args, out).await,
        Verb::Verify(args) => verify::run(&args, out).await,
        Verb::Wait(args) => wait::run(&args, out).await,
    }
}

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
