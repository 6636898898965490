//! An agent without a daemon: prompts in, events out, everything in one directory.

mod asking;
mod checkpoint;
mod input;
mod journal;
mod outcome;
mod seen;
mod session;
pub mod signals;
mod state_dir;

pub use crate::printer::Style;
pub use checkpoint::FILE;
use state_dir::StateDir;

use crate::described::settle_provider;
use crate::error::{Error, Exit};
use crate::home;
use crate::printer::Printer;
use crate::providers;
use crate::setup::{self, Surroundings, Whose};
use agentd_core::attachment;
use agentd_core::event::{After, Decision};
use agentd_core::id::{AgentId, ApprovalId};
use agentd_core::message::Block;
use agentd_core::request::check_attachments;
use agentd_core::spec::{AgentSpec, ApprovalMode, AutoReset, OnCrash};
use agentd_core::state::AgentState;
use agentd_daemon::layout::Layout;
use agentd_runtime::driver::{Command, Driver, Ended, JournalError, Observer, Parts};
use session::Session;
use signals::Signals;
use std::collections::BTreeSet;
use std::path::PathBuf;
use tokio::sync::mpsc;

/// The size of the queue of commands to the driver.
const COMMANDS: usize = 64;

/// Applies the command line to a spec.
pub type Adjust = Box<dyn Fn(&mut AgentSpec) -> Result<(), Error>>;

pub struct Settings {
    pub style: Style,
    pub run_id: Option<String>,
    /// The directory of the journal, the session file and the tasks.
    pub state_dir: PathBuf,
    pub resume: Option<Resume>,
    /// Changes to the agent's spec, or to the spec of a new agent.
    pub adjust: Adjust,
    pub base_url: Option<String>,
    pub input: Input,
    /// Prompts that arrive while a turn runs are added to it.
    pub steer: bool,
    /// Continue a turn that ended as `limited`, or that waits.
    pub continue_turn: bool,
    pub answers: Vec<(ApprovalId, Decision)>,
}

pub enum Resume {
    /// A session file, and the journal next to it if there is one.
    File(PathBuf),
    /// The journal itself.
    Journal,
}

pub enum Input {
    /// One prompt, with its attachments; the process ends with its turn.
    Prompt(Vec<Block>),
    Stdin,
    Fifo(PathBuf),
    /// No new prompt: only waiting work is done.
    Nothing,
}

pub async fn run(mut settings: Settings) -> Result<(), Error> {
    // First of all, so that an early signal is not lost.
    let signals = Signals::new()?;
    setup::close_to_others()?;
    setup::limit_memory()?;
    let state_dir = StateDir::open(&settings.state_dir)?;
    let mut printer = Printer::new(settings.style);
    let catalog = providers::catalog()?;
    let adjust = |spec: &mut AgentSpec| {
        (settings.adjust)(spec)?;
        // There is no user to ask, unless the agent file or the command line says so.
        spec.approval.get_or_insert(ApprovalMode::Never);
        // A reset needs the daemon.
        spec.auto_reset = AutoReset::default();
        if spec.provider.is_none() {
            // Stored secrets are the daemon's.
            settle_provider(spec, &catalog, &BTreeSet::new())?;
        }
        Ok(())
    };

    let kept = open(&state_dir, &settings, &adjust).await?;
    if kept.is_left {
        leave(&state_dir, kept.agent, &settings, &catalog).await?;
    }
    let loaded = state_dir.load(kept.agent).await?;
    let state = &loaded.state;
    let (mut spec, name) = ((*state.spec).clone(), state.name.clone());
    let before = spec.clone();
    adjust(&mut spec)?;
    let mut restricted = spec.clone();
    if let Ok(home) = home::dir() {
        let of_user = Surroundings::own().get("HOME");
        setup::project_rules::add(&mut restricted, &Layout::new(home), of_user.as_deref());
    }
    let ready = setup::ready(
        &catalog,
        &restricted,
        settings.base_url.clone(),
        &state_dir.path,
        &Surroundings::own(),
        &Whose::alone(&name)?,
        None,
    )?;

    if let Some(why) = &ready.policy.missing_key {
        return Err(Error::new(Exit::Refused, "cannot use the provider").because(why));
    }

    let wire = ready.policy.context.wire;
    if let Input::Prompt(blocks) = &settings.input {
        check_attachments(&loaded.window, wire, blocks).map_err(|(name, why)| {
            let refused = attachment::Refused::Unfit { name, why };
            Error::new(Exit::Refused, refused.to_string()).next(refused.next())
        })?;
    }
    let (fence, told) = state_dir.claim(kept.agent).await?;
    if let Some(told) = told {
        printer.remark("quarantined", &told);
    }
    let mut folded = state_dir.fold(kept.agent).await?;
    asked(&folded.state, &settings.answers)?;
    let after = folded.state.after();
    if spec != before {
        // Before the turn continues: a changed limit applies from the first request.
        state_dir.change(fence, &folded.state, &spec).await?;
        folded = state_dir.fold(kept.agent).await?;
    }
    settings.continue_turn &= waits(&folded.state, after);
    if kept.is_new {
        state_dir.save(kept.agent).await?;
    }
    let Some(conversation) = folded.state.tree.current() else {
        let what = "the agent has no conversation";
        return Err(Error::new(Exit::Failed, what).next("check it with `agentd verify`"));
    };
    let journal = state_dir.journal(fence, &folded);
    let (seen, sight) = mpsc::unbounded_channel();
    let (commands, queue) = mpsc::channel(COMMANDS);
    let (state, head) = (&folded.state, folded.state.head);
    let session = Session::new(
        &state_dir,
        state,
        conversation,
        commands,
        printer,
        &settings,
        wire,
    );
    session.hello(kept.from.as_ref(), head);
    let parts = Parts {
        journal: Box::new(journal),
        provider: ready.provider,
        tools: ready.tools,
        hooks: None,
        observer: seen::observer(seen),
        clock: agentd_daemon::clock::now,
    };
    let driver = Driver::wake(folded, after, ready.policy, parts).await;
    let driver = driver.map_err(|error| of_journal(&error))?;
    let driver = tokio::spawn(driver.run(queue));
    session.run(driver, sight, signals, settings).await
}

/// Checks that each answer belongs to a waiting approval.
fn asked(state: &AgentState, answers: &[(ApprovalId, Decision)]) -> Result<(), Error> {
    for (approval, _) in answers {
        if !state.approvals.waiting().any(|(id, _)| id == approval) {
            let what = format!("no call is waiting for the approval {approval}");
            return Err(Error::new(Exit::Refused, what)
                .because("it was already answered or withdrawn, or it never existed"));
        }
    }
    Ok(())
}

/// Whether there is a turn that `--continue-turn` applies to. A turn that continues by itself is not one: if it reaches its
/// limit now, the user has not asked to continue past it.
fn waits(state: &AgentState, after: After) -> bool {
    let will_pause = after == After::Crash && state.spec.on_crash == OnCrash::Wait;
    let turn = state.turn.as_ref();
    turn.is_none_or(|turn| turn.paused.is_some() || will_pause)
}

/// The agent to run, and where it came from.
struct Kept {
    agent: AgentId,
    /// Its conversation has just begun.
    is_new: bool,
    /// The existing conversation is to be replaced by a new one.
    is_left: bool,
    /// None for a new conversation.
    from: Option<ResumedFrom>,
}

/// What a conversation is resumed from.
pub enum ResumedFrom {
    /// The journal of this directory.
    Journal(PathBuf),
    /// A session file, which begins a new journal.
    File(PathBuf),
}

impl ResumedFrom {
    /// Its kind and its path, for the stream.
    pub const fn named(&self) -> (&'static str, &PathBuf) {
        match self {
            Self::Journal(path) => ("journal", path),
            Self::File(path) => ("file", path),
        }
    }
}

async fn open(
    state_dir: &StateDir,
    settings: &Settings,
    adjust: &dyn Fn(&mut AgentSpec) -> Result<(), Error>,
) -> Result<Kept, Error> {
    let kept = |agent, is_new, is_left| Kept {
        agent,
        is_new,
        is_left,
        from: None,
    };
    let resumed = |agent, from| Kept {
        is_new: matches!(from, ResumedFrom::File(_)),
        from: Some(from),
        ..kept(agent, false, false)
    };
    let journal = || ResumedFrom::Journal(state_dir.path.clone());
    let here = state_dir.agent().await?;
    match (&settings.resume, here) {
        (Some(Resume::File(path)), _) => {
            let session = state_dir.session(path).await?;
            match here {
                Some(agent) => Ok(resumed(agent, journal())),
                None => {
                    let agent = state_dir.import(&session).await?;
                    Ok(resumed(agent, ResumedFrom::File(path.clone())))
                }
            }
        }
        (Some(Resume::Journal), Some(agent)) => Ok(resumed(agent, journal())),
        (Some(Resume::Journal), None) => {
            let what = format!("{} contains no agent", state_dir.path.display());
            Err(Error::new(Exit::NotFound, what).next("start one without --resume"))
        }
        (None, Some(agent)) => Ok(kept(agent, true, true)),
        (None, None) => {
            let mut spec = AgentSpec::default();
            adjust(&mut spec)?;
            let name = settings.run_id.as_deref().unwrap_or("agent");
            Ok(kept(state_dir.create(name, &spec).await?, true, false))
        }
    }
}

/// Ends the turn in progress in the current conversation, and begins a new conversation.
async fn leave(
    state_dir: &StateDir,
    agent: AgentId,
    settings: &Settings,
    catalog: &agentd_core::catalog::Catalog,
) -> Result<(), Error> {
    let folded = state_dir.fold(agent).await?;
    if folded.state.turn.is_some() {
        let (fence, _) = state_dir.claim(agent).await?;
        let spec = folded.state.spec.clone();
        let ready = setup::ready(
            catalog,
            &spec,
            settings.base_url.clone(),
            &state_dir.path,
            &Surroundings::own(),
            &Whose::alone(&folded.state.name)?,
            None,
        )?;
        let observer: Observer = Box::new(|_| {});
        let parts = Parts {
            journal: Box::new(state_dir.journal(fence, &folded)),
            provider: ready.provider,
            tools: ready.tools,
            hooks: None,
            observer,
            clock: agentd_daemon::clock::now,
        };
        let driver = Driver::wake(folded, After::Restart, ready.policy, parts).await;
        let driver = driver.map_err(|error| of_journal(&error))?;
        let (commands, queue) = mpsc::channel(COMMANDS);
        for command in [Command::Interrupt, Command::Stop] {
            // The driver has not started to read yet, so the queue has room.
            let _there_is_room = commands.try_send(command);
        }
        driver
            .run(queue)
            .await
            .map_err(|error| of_journal(&error))?;
    }
    state_dir.begin(agent).await
}

fn of_journal(error: &JournalError) -> Error {
    match error {
        JournalError::Superseded(_) => {
            Error::new(Exit::Refused, "another process runs this agent now").because(error)
        }
        JournalError::Broken(_) | JournalError::DraftRefused(_) => Error::new(
            Exit::Unavailable,
            "the agent cannot continue",
        )
        .because(error)
        .next(
            "everything acknowledged is saved: fix the disk problem, then continue with --resume",
        ),
    }
}

/// The result of the driver's task.
fn ended(
    joined: Result<Result<Ended, JournalError>, tokio::task::JoinError>,
) -> Result<Ended, Error> {
    match joined {
        Ok(ended) => ended.map_err(|error| of_journal(&error)),
        Err(error) => Err(Error::new(Exit::Failed, "the agent's driver crashed").because(error)),
    }
}
