//! Records how a command of the user ended, and what it wrote.

use super::refused;
use crate::confine;
use crate::daemon::{AgentGuard, AgentHandle, Daemon};
use crate::error::{Kind, Result};
use crate::spawn::blocking;
use agentd_core::event::{
    Body, CommandCut, CommandEnd, CommandEnded, CommandLine, CommandOutput, TaskExit,
};
use agentd_core::id::{AgentId, CommandId, ConversationId, Seq};
use agentd_core::private_home;
use agentd_core::state::RunningCommand;
use agentd_failpoint as failpoint;
use agentd_files::own;
use agentd_process::task::{Exit, Found};
use agentd_store::ReadQuery;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

/// Delay before an end that could not be written is written again.
const PAUSE: Duration = Duration::from_secs(1);
/// How many events, from the one that started a command, are searched for its text.
const NEAR: usize = 4;

type Ending = agentd_process::Result<Found>;

/// Records the end, unless that is recorded already, and removes the command's directory.
pub async fn record(handle: &AgentHandle, command: CommandId, found: Ending) {
    let found = found.unwrap_or(Found::Unknown);
    let dir = handle.daemon.layout.command_dir(command);
    loop {
        match try_record(handle, command, &found).await {
            Ok(()) => break,
            Err(error) if error.kind == Kind::NotFound => break,
            Err(error) => {
                tracing::warn!(agent = %handle.id, %command, %error, "end of command not recorded");
            }
        }
        // tidy: polls until the disk can be written again
        tokio::time::sleep(PAUSE).await;
    }
    handle.daemon.commands.forget(command);
    blocking(move || remove(&dir)).await;
}

pub fn remove(dir: &Path) {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(dir = %dir.display(), %error, "command directory not removed");
        }
        _ => {}
    }
}

async fn try_record(handle: &AgentHandle, command: CommandId, found: &Found) -> Result<()> {
    let (running, spec, secrets, is_gone) = {
        let guard = handle.lock().await;
        let Some(running) = guard.state.commands.get(command) else {
            return Ok(());
        };
        let spec = guard.state.spec.clone();
        let is_gone = is_purged(&guard, running.conversation);
        (running.clone(), spec, guard.secrets(), is_gone)
    };
    let line = line_of(handle, command, &running).await?;
    let (end, duration_ms, error) = of_found(found);
    let (daemon, agent) = (handle.daemon.clone(), handle.id);
    let limit = usize::try_from(spec.limits.tool_output_bytes).unwrap_or(usize::MAX);
    // What a command of a purged conversation wrote is not kept: it is removed with the command's directory.
    let output = blocking(move || match is_gone {
        true => String::new(),
        false => output(&daemon, agent, command, limit),
    })
    .await;
    // The shim has redacted the output; this finds a secret that was stored since.
    let mut output = secrets.redact(&output);
    let level = confine::level(&spec, handle.daemon.default_level().as_deref());
    let refused = level
        .ok()
        .and_then(|level| refused::note(&spec, level, end, &output));
    let written = written_home(found).map(|note| secrets.redact(&note));
    let notes = [error, dropped(found), refused, written];
    for note in notes.into_iter().flatten() {
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        output.push_str(&note);
    }
    let ended = CommandEnded {
        command,
        end,
        duration_ms,
    };
    let mut guard = handle.lock().await;
    if guard.state.commands.get(command).is_none() {
        return Ok(());
    }
    // It belongs to the conversation in which it was run: a reset has cleared it with the rest.
    let conversation = running.conversation;
    let mut lines: Vec<(_, Body)> = vec![(conversation, ended.into())];
    if is_purged(&guard, conversation) {
        // It may have been purged since the output was kept.
        let kept = handle.daemon.layout.command_output(agent, command);
        blocking(move || drop(fs::remove_file(kept))).await;
    } else {
        let text = CommandOutput {
            command,
            line,
            output,
            end,
        };
        lines.push((conversation, text.into()));
    }
    failpoint::hit("before", "command_ended");
    guard.append(lines).await?;
    failpoint::hit("after", "command_ended");
    Ok(())
}

/// Whether the texts of a conversation are gone.
fn is_purged(guard: &AgentGuard<'_>, conversation: ConversationId) -> bool {
    let known = guard.state.tree.get(conversation);
    known.is_none_or(|known| known.purged)
}

/// The text of the command, from the append that started it; empty if it was purged.
async fn line_of(
    handle: &AgentHandle,
    command: CommandId,
    running: &RunningCommand,
) -> Result<String> {
    let after = Seq(running.seq.0.saturating_sub(1));
    let query = ReadQuery::all(handle.id, after, NEAR);
    let page = handle.daemon.store.read(query).await?;
    let mut events = page.events.into_iter();
    let line = events.find_map(|event| match event.body {
        Body::CommandLine(CommandLine { command: of, line }) if of == command => Some(line),
        _ => None,
    });
    Ok(line.unwrap_or_default())
}

/// How a command ended, how long it took, and why it could not be started.
fn of_found(found: &Found) -> (CommandEnd, u64, Option<String>) {
    let Found::Ended(exit) = found else {
        let exit = match found {
            Found::NeverStarted => TaskExit::NotStarted,
            _ => TaskExit::Unknown,
        };
        return (CommandEnd { exit, cut: None }, 0, None);
    };
    let cut = match (exit.timed_out, exit.stopped) {
        (true, _) => Some(CommandCut::TimedOut),
        (false, true) => Some(CommandCut::Interrupted),
        (false, false) => None,
    };
    let error = exit.error.as_ref();
    let error = error.map(|error| format!("could not be started: {error}"));
    let end = CommandEnd {
        exit: TaskExit::seen(exit.code, exit.signal),
        cut,
    };
    (end, exit.duration_ms, error)
}

/// A note about output that was not kept.
fn dropped(found: &Found) -> Option<String> {
    match found {
        Found::Ended(Exit {
            dropped_bytes: 1.., ..
        }) => Some("… the rest of the output was not kept: write long output to a file".to_owned()),
        _ => None,
    }
}

/// A note about files that the user will not find.
fn written_home(found: &Found) -> Option<String> {
    match found {
        Found::Ended(exit) => private_home::note(&exit.in_own_home),
        _ => None,
    }
}

/// What the command wrote. Long output is kept in a file that tools can read, and cut in the middle here.
fn output(daemon: &Daemon, agent: AgentId, command: CommandId, limit: usize) -> String {
    let layout = &daemon.layout;
    let from = layout.command_dir(command).join("output");
    let kept = layout.command_output(agent, command);
    let (text, bytes) = match read_cut(&from, limit) {
        Ok(read) => read,
        // No file means no output; or the end was not written the first time, and the output has been moved.
        Err(_) => match read_cut(&kept, limit) {
            Ok(read) => read,
            Err(_) => return String::new(),
        },
    };
    let Some((head, tail)) = text else {
        return own::read(&from).map_or_else(
            |_| String::new(),
            |whole| String::from_utf8_lossy(&whole).into_owned(),
        );
    };
    let omitted = bytes.saturating_sub((head.len() + tail.len()) as u64);
    let moved = kept.parent().map_or(Ok(()), |dir| layout.make_below(dir));
    let moved = moved.and_then(|()| match kept.exists() {
        true => Ok(()),
        false => fs::rename(&from, &kept),
    });
    let rest = match moved {
        Ok(()) => format!("the full output is in {}", kept.display()),
        Err(error) => format!("the full output could not be kept: {error}"),
    };
    format!("{head}\n… {omitted} bytes omitted; {rest} …\n{tail}")
}

/// The first and the last lines of a file that is longer than the limit, and its size; no lines if it is not.
fn read_cut(path: &Path, limit: usize) -> io::Result<(Option<(String, String)>, u64)> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    if bytes <= limit as u64 {
        return Ok((None, bytes));
    }
    let half = (limit / 2) as u64;
    let mut head = Vec::new();
    (&mut file).take(half).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(bytes - half))?;
    let mut tail = Vec::new();
    file.take(half).read_to_end(&mut tail)?;
    // Whole lines, unless they are very long.
    let end = head.iter().rposition(|byte| *byte == b'\n');
    head.truncate(
        end.filter(|end| *end > head.len() / 2)
            .unwrap_or(head.len()),
    );
    let begin = tail.iter().position(|byte| *byte == b'\n');
    let begin = begin.filter(|begin| *begin < tail.len() / 2);
    tail.drain(..begin.map_or(0, |begin| begin + 1));
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.trim_matches('\u{fffd}').to_owned()
    };
    Ok((Some((text(&head), text(&tail))), bytes))
}
