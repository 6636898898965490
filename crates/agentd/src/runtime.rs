//! An agent's process under a daemon: the same loop as `agentd agent`, on the daemon's journal.

use crate::agent::signals::{Signals, Told};
use crate::error::{Error, Exit};
use crate::providers;
use crate::setup::{self, Surroundings};
use agentd_core::environment::variables;
use agentd_core::event::PauseReason;
use agentd_core::id::{AgentId, RuntimeId};
use agentd_daemon::clock;
use agentd_daemon::layout::{Layout, Seat};
use agentd_runtime::driver::{Command, Driver, Folded, JournalError, Parts};
use agentd_runtime::link::{self, JoinError, Options};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Commands that wait for the driver.
const COMMANDS: usize = 16;

pub async fn run(layout: &Layout, agent: AgentId, orphan: Duration) -> Result<(), Error> {
    let mut signals = Signals::new()?;
    setup::close_to_others()?;
    let runtime = RuntimeId::new(clock::new_id());
    let _seat = Seat::take(layout, agent).map_err(|error| {
        Error::new(Exit::Quiet, "another process runs this agent").because(error)
    })?;
    let options = Options {
        socket: layout.link_socket(),
        agent,
        runtime,
        orphan,
    };
    let (welcome, journal, hooks, asking) = tokio::select! {
        joined = link::join(options) => joined.map_err(|error| not_joined(&error))?,
        () = terminated(&mut signals) => return Ok(()),
    };
    let folder = layout.agent_folder(agent);
    let folded = Folded {
        incarnation: welcome.incarnation,
        state: welcome.state,
        window: welcome.window,
        draft: welcome
            .draft
            .map(|(request, text)| (request, text.into_bytes())),
    };
    let surroundings = Surroundings::of(welcome.env);
    let catalog = providers::catalog()?;
    let mut spec = (*folded.state.spec).clone();
    if let Some(conversation) = folded.state.tree.current() {
        // What hooks left for the tools of this conversation.
        let file = layout.env_file(agent, conversation);
        let left = std::fs::read_to_string(file).unwrap_or_default();
        spec.env.extend(variables(&left));
    }
    let asking = Some(asking);
    let ready = setup::ready(&catalog, &spec, None, &folder, &surroundings, asking)?;
    let has_key = ready.policy.missing_key.is_none();
    let paused = folded.state.turn.as_ref().and_then(|turn| turn.paused);
    let after = folded.state.after();
    let parts = Parts {
        journal: Box::new(journal),
        provider: ready.provider,
        tools: ready.tools,
        hooks: Some(Arc::new(hooks)),
        // Whoever watches asks the daemon.
        observer: Box::new(|_| {}),
        clock: clock::now,
    };
    let driver = Driver::wake(folded, after, ready.policy, parts).await;
    let driver = driver.map_err(|error| not_kept(&error))?;
    let (commands, queue) = mpsc::channel(COMMANDS);
    if paused == Some(PauseReason::MissingKey) && has_key {
        // The driver has not begun to read yet: there is room.
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

async fn terminated(signals: &mut Signals) {
    while !matches!(signals.next().await, Told::Terminate) {}
}

fn not_joined(error: &JoinError) -> Error {
    match error {
        // Somebody else has it; that is nothing that anybody needs to hear of.
        JoinError::Refused(_) => Error::new(Exit::Quiet, error.to_string()),
        JoinError::Gone(_) => Error::new(Exit::Unavailable, error.to_string()),
    }
}

fn not_kept(error: &JournalError) -> Error {
    match error {
        JournalError::Superseded(_) => Error::new(Exit::Quiet, error.to_string()),
        JournalError::Broken(_) => Error::new(Exit::Unavailable, error.to_string()),
    }
}
