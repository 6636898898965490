//! Runs a command of the user in the sandbox of the agent's tools. The model sees the command and its output in its next
//! request.
//!
//! The start is on disk before the command runs, and the shim's claim ensures that it runs at most once. A request that
//! is repeated under its op waits for the same command. After a crash of the daemon, the next one reads the outcome from
//! the command's directory.

mod end;
mod order;
mod record;
mod refused;

pub use end::{adopt_all, end, end_all, watch_all};

use super::ops::Asked;
use crate::clock;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use crate::spawn::{blocking, spawn};
use agentd_client::api::{AgentRef, EndedCommand, RunCommand};
use agentd_core::event::{Body, CommandEnded, CommandLine, CommandStarted, OpReceipt};
use agentd_core::id::{CommandId, ConversationId, Seq};
use agentd_failpoint as failpoint;
use agentd_process::task::{self, ShimProgram};
use agentd_store::ReadQuery;
pub use order::CommandScene;

/// The time limit of a command, unless the request has another one.
const TIMEOUT_MS: u64 = 120_000;
const MAX_TIMEOUT_MS: u64 = 3_600_000;
/// The longest command line, in bytes. Linux does not accept a longer argument.
const LONGEST: usize = 128 * 1024 - 1;
/// How many commands of one agent may run at the same time.
const AT_ONCE: usize = 8;
/// Events that are read at once.
const PAGE: usize = 200;

pub async fn run_command(
    handle: &AgentHandle,
    run: RunCommand,
    asked: &Asked,
) -> Result<EndedCommand> {
    let time_limit_ms = check(&run)?;
    // The lock is released before the wait for the end.
    let before = known(&mut handle.lock().await, asked)?;
    if let Some(known) = before {
        return ended_before(handle, known, &run.command).await;
    }
    let mut scene = CommandScene::of(&mut handle.lock().await, &run)?;
    let command = CommandId::new(clock::new_id());
    let (daemon, owner, name) = (handle.daemon.clone(), handle.id, run.command.clone());
    let (order, dir) = blocking(move || {
        let dir = daemon.layout.command_dir(command);
        let order = scene.order(&daemon, &name, time_limit_ms)?;
        // The next daemon finds the command by its directory.
        let made = daemon.layout.make_owned_dir(&dir, Some(owner));
        made.map_err(|error| {
            let what = "the directory of the command cannot be created";
            Error::new(Kind::Unavailable, what).because(error)
        })?;
        Ok::<_, Error>((order, dir))
    })
    .await?;
    // Before the start is recorded: a repeated request must not take this command for one of an earlier daemon.
    handle.daemon.commands.watch(command);
    let started = start(handle, asked, (command, time_limit_ms), &run).await;
    let seq = match started {
        Ok(Started::Now(seq)) => seq,
        Ok(Started::Before(known)) => {
            end::not_started(handle, command).await;
            return ended_before(handle, known, &run.command).await;
        }
        Err(error) => {
            end::not_started(handle, command).await;
            return Err(error);
        }
    };
    let watched = handle.clone();
    spawn("user command", async move {
        // The start is durable before the command runs.
        failpoint::hit("before", "command");
        let found = match task::start(&ShimProgram::default(), &dir, &order).await {
            Ok(task) => task.ended().await,
            Err(error) => {
                tracing::warn!(%command, %error, "command of the user not started");
                end::find(&watched, command).await
            }
        };
        record::record(&watched, command, found).await;
    });
    ended(handle, (command, seq), IsRepeated::No).await
}

/// Checks the request and returns the time limit.
fn check(run: &RunCommand) -> Result<u64> {
    let invalid = |what: String| Err(Error::new(Kind::Invalid, what));
    if run.command.trim().is_empty() || run.command.contains('\0') {
        return invalid("the command is empty or contains a NUL byte".to_owned());
    }
    if run.command.len() > LONGEST {
        let what = format!("the command has more than {LONGEST} bytes");
        return Err(Error::new(Kind::TooLarge, what).next("put it into a script"));
    }
    match run.timeout_ms {
        Some(ms) if !(1..=MAX_TIMEOUT_MS).contains(&ms) => {
            invalid(format!("`timeout_ms` must be from 1 to {MAX_TIMEOUT_MS}"))
        }
        given => Ok(given.unwrap_or(TIMEOUT_MS)),
    }
}

/// The command that was run under this op, and the event that recorded the op.
fn known(guard: &mut AgentGuard<'_>, asked: &Asked) -> Result<Option<(CommandId, Seq)>> {
    let made = asked.made(&guard.state)?;
    Ok(made.and_then(|made| match made.operation.receipt {
        OpReceipt::Command { command } => Some((command, made.seq)),
        _ => None,
    }))
}

enum Started {
    Now(Seq),
    /// Another request with the same op has started it meanwhile.
    Before((CommandId, Seq)),
}

/// Records the start. Everything is checked again, because the lock was released since.
async fn start(
    handle: &AgentHandle,
    asked: &Asked,
    (command, time_limit_ms): (CommandId, u64),
    run: &RunCommand,
) -> Result<Started> {
    let mut guard = handle.lock().await;
    if let Some(known) = known(&mut guard, asked)? {
        return Ok(Started::Before(known));
    }
    check_free(&guard)?;
    let started = CommandStarted {
        command,
        boot: handle.daemon.boot,
        time_limit_ms,
    };
    let line = CommandLine {
        command,
        line: guard.secrets().redact(&run.command),
    };
    let op = asked.with(OpReceipt::Command { command });
    let bodies: [Body; 2] = [started.into(), line.into()];
    let events = guard.note(op.into_iter().chain(bodies)).await?;
    // An append without an answer is not the first one: then the journal has the events from the head on.
    let first = events.first().map_or(guard.state.head, |event| event.seq);
    Ok(Started::Now(first))
}

/// Whether the agent may run one more command.
fn check_free(guard: &AgentGuard<'_>) -> Result<()> {
    guard.check_released()?;
    guard.check_active()?;
    if guard.state.commands.running().len() < AT_ONCE {
        return Ok(());
    }
    let what = format!("{AT_ONCE} commands of yours are running, which is the limit");
    let next = format!("agentd interrupt {} ends them", guard.state.name);
    Err(Error::new(Kind::Conflict, what).next(next))
}

/// The command of an earlier request with the same op, when it has ended.
async fn ended_before(
    handle: &AgentHandle,
    (command, seq): (CommandId, Seq),
    line: &str,
) -> Result<EndedCommand> {
    end::watch(handle, command).await;
    let ended = ended(handle, (command, seq), IsRepeated::Yes).await?;
    let given = handle.lock().await.secrets().redact(line);
    // A purged text is not compared.
    if ended.command.is_empty() || ended.command == given {
        return Ok(ended);
    }
    let what = "this op was used with another command";
    Err(Error::new(Kind::Conflict, what).next("use another op for each command"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IsRepeated {
    Yes,
    No,
}

/// Waits for the end of a command, and reads it from the journal. A client that disconnects does not end the command.
async fn ended(
    handle: &AgentHandle,
    (command, seq): (CommandId, Seq),
    repeated: IsRepeated,
) -> Result<EndedCommand> {
    let is_over = |guard: &mut AgentGuard<'_>| {
        let is_over = guard.state.commands.get(command).is_none();
        is_over.then(|| guard.state.name.clone())
    };
    let name = handle.until(is_over).await;
    let mut at = Seq(seq.0.saturating_sub(1));
    let (mut line, mut output) = (String::new(), String::new());
    let mut over: Option<(CommandEnded, ConversationId)> = None;
    loop {
        let query = ReadQuery::all(handle.id, at, PAGE);
        let page = handle.daemon.store.read(query).await?;
        // The output is right after the end, in the same append: it may be on the next page.
        let is_last = over.is_some();
        for event in page.events {
            match event.body {
                Body::CommandLine(body) if body.command == command => line = body.line,
                Body::CommandOutput(body) if body.command == command => output = body.output,
                Body::CommandEnded(body) if body.command == command => {
                    over = Some((body, event.conversation));
                }
                _ => {}
            }
        }
        match page.next {
            Some(next) if !is_last => at = next,
            _ => break,
        }
    }
    let Some((over, conversation)) = over else {
        // An imported agent has no commands that run: its journal may name one that never ends.
        let what = "the end of the command is not in the journal";
        return Err(Error::new(Kind::Internal, what));
    };
    Ok(EndedCommand {
        agent: AgentRef {
            id: handle.id,
            name: Some(name),
        },
        conversation,
        id: command,
        command: line,
        output,
        end: over.end,
        duration_ms: over.duration_ms,
        repeated: repeated == IsRepeated::Yes,
    })
}
