//! An agent's process under a daemon: the same loop as `agentd agent`, on the daemon's journal.

use crate::agent::signals::{Signals, Told};
use crate::error::{Error, Exit};
use crate::log;
use crate::providers;
use crate::setup::{self, Surroundings, Whose};
use agentd_core::event::PauseReason;
use agentd_core::id::{AgentId, RuntimeId};
use agentd_core::link::{Refusal, Secret};
use agentd_daemon::clock;
use agentd_daemon::layout::{Layout, RuntimeLock};
use agentd_daemon::tool_env;
use agentd_runtime::driver::{Command, Driver, Folded, JournalError, Parts, Tools};
use agentd_runtime::link::{self, JoinError, Options};
use agentd_runtime::outer::end_leftovers;
use std::io::{self, IsTerminal as _, Read as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Capacity of the command queue of the driver.
const COMMANDS: usize = 16;
/// The size of the log above which panics are no longer logged.
const LOG_CAP: u64 = 1024 * 1024;

/// Maximum length of the secret.
const LONGEST_SECRET: u64 = 1024;

/// Reads the secret with which this process identifies itself to the daemon. The daemon passes it on standard input.
fn secret() -> Result<Secret, Error> {
    let mut text = String::new();
    let read = match io::stdin().is_terminal() {
        true => Ok(0),
        false => io::stdin().take(LONGEST_SECRET).read_to_string(&mut text),
    };
    match read {
        // The daemon was killed in between. No other daemon knows this process, and it would keep the agent's lock.
        Ok(0) => {
            let what = "no link secret on standard input: the daemon has ended";
            Err(Error::new(Exit::Unavailable, what))
        }
        Ok(_) => Ok(Secret::new(text)),
        Err(error) => {
            let what = "the link secret cannot be read from standard input";
            Err(Error::new(Exit::Unavailable, what).because(error))
        }
    }
}

pub async fn run(layout: &Layout, agent: AgentId, orphan: Duration) -> Result<(), Error> {
    let mut signals = Signals::new()?;
    setup::close_to_others()?;
    setup::limit_memory()?;
    log::end_at_panic(LOG_CAP);
    let runtime = RuntimeId::new(clock::new_id());
    let secret = secret()?;
    let _runtime_lock = RuntimeLock::take(layout, agent).map_err(|error| not_alone(&error))?;
    let options = Options {
        socket: layout.link_socket(),
        agent,
        runtime,
        secret,
        build: agentd_process::own_build(),
        orphan,
    };
    let (welcome, journal, hooks, asking) = tokio::select! {
        joined = link::join(options) => joined.map_err(|error| not_joined(&error))?,
        () = terminated(&mut signals) => return Ok(()),
    };
    let dir = layout.agent_dir(agent);
    let folded = Folded {
        incarnation: welcome.incarnation,
        state: welcome.state,
        window: welcome.window,
        draft: welcome
            .draft
            .map(|(request, text)| (request, text.into_bytes())),
    };
    let holds_turns = welcome.holds_turns;
    let current = folded.state.tree.current();
    let of_hooks = current.map(|current| tool_env::hook_variables(layout, agent, current));
    let surroundings = Surroundings::of(welcome.env, welcome.stored)
        .with_hook_variables(of_hooks.unwrap_or_default())
        .with_lent(welcome.lent);
    let catalog = providers::catalog()?;
    let mut spec = (*folded.state.spec).clone();
    setup::project_rules::add(&mut spec, layout, surroundings.get("HOME").as_deref());
    let whose = whose(layout, agent, &folded.state.name)?;
    let asking = Some(asking);
    let (provider, tools, policy) = if spec.is_outer() {
        let ended = end_leftovers(&layout.outer_dirs(agent)).await;
        ended.map_err(|left| {
            let what = "an earlier process of the agent's program is still there";
            Error::new(Exit::Unavailable, what).because(left)
        })?;
        let conversation = folded.state.tree.current().ok_or_else(no_conversation)?;
        let outer_dir = layout.outer_dir(agent, conversation);
        let of = setup::outer::Of {
            conversation,
            dir: &outer_dir,
        };
        let ready = setup::outer::ready(&catalog, &spec, &of, &surroundings, &whose, asking)?;
        (ready.provider, ready.tools, ready.policy)
    } else {
        let ready = setup::ready(&catalog, &spec, None, &dir, &surroundings, &whose, asking)?;
        let tools: Arc<dyn Tools> = ready.tools;
        (ready.provider, tools, ready.policy)
    };
    let has_key = policy.missing_key.is_none();
    let paused = folded.state.turn.as_ref().and_then(|turn| turn.paused);
    let after = folded.state.after();
    let parts = Parts {
        journal: Box::new(journal),
        provider,
        tools,
        hooks: Some(Arc::new(hooks)),
        // Clients watch through the daemon.
        observer: Box::new(|_| {}),
        clock: clock::now,
    };
    let driver = Driver::wake(folded, after, policy, parts).await;
    let driver = driver.map_err(|error| not_kept(&error))?;
    let (commands, queue) = mpsc::channel(COMMANDS);
    // The driver has not begun to read yet: there is room.
    if holds_turns {
        let _there_is_room = commands.try_send(Command::HoldTurns);
    }
    if paused == Some(PauseReason::MissingKey) && has_key {
        let _there_is_room = commands.try_send(Command::Continue);
    }
    let mut driver = std::pin::pin!(driver.run(queue));
    loop {
        let told = tokio::select! {
            ended = &mut driver => {
                return ended.map(drop).map_err(|error| not_kept(&error));
            }
            told = signals.next() => told,
        };
        let command = match told {
            Told::Interrupt => Command::Interrupt,
            Told::Terminate => Command::Stop,
        };
        let _it_has_ended = commands.try_send(command);
    }
}

fn no_conversation() -> Error {
    Error::new(Exit::Failed, "the agent has no conversation").next("check it with `agentd verify`")
}

fn whose(layout: &Layout, agent: AgentId, name: &str) -> Result<Whose, Error> {
    let cannot = |error: io::Error| {
        let what = "the identity of the state directory cannot be read";
        Error::new(Exit::Unavailable, what).because(error)
    };
    let (identity, _) = agentd_daemon::home::look(layout).map_err(cannot)?;
    Ok(Whose {
        home: Some(layout.home().to_owned()),
        name: name.to_owned(),
        boot: agentd_daemon::home::boot_of(&identity).map_err(cannot)?,
        socket: Some(layout.tool_socket(agent)),
    })
}

fn not_alone(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => Error::new(Exit::Quiet, "another process runs this agent"),
        _ => Error::new(Exit::Unavailable, "the agent's lock cannot be taken").because(error),
    }
}

async fn terminated(signals: &mut Signals) {
    while !matches!(signals.next().await, Told::Terminate) {}
}

fn not_joined(error: &JoinError) -> Error {
    match error {
        // The next process would be refused too: it counts as a death, so that the daemon waits before the next start.
        JoinError::Refused(Refusal::Version) | JoinError::Gone(_) => {
            Error::new(Exit::Unavailable, error.to_string())
        }
        // Another runtime has the agent, which is not an error.
        JoinError::Refused(_) => Error::new(Exit::Quiet, error.to_string()),
    }
}

fn not_kept(error: &JournalError) -> Error {
    match error {
        JournalError::Superseded(_) => Error::new(Exit::Quiet, error.to_string()),
        JournalError::Broken(_) | JournalError::DraftRefused(_) => {
            Error::new(Exit::Unavailable, error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_another_link_version_does_not_end_well() {
        let refused = |why| not_joined(&JoinError::Refused(why)).exit();
        assert_eq!(refused(Refusal::Version), Exit::Unavailable);
        assert_eq!(refused(Refusal::Taken), Exit::Quiet);
    }
}
