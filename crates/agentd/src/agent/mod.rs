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

use crate::error::{Error, Exit};
use crate::printer::Printer;
use crate::providers;
use crate::setup::{self, Surroundings, Whose};
use agentd_core::event::{After, Decision};
use agentd_core::id::{AgentId, ApprovalId};
use agentd_core::spec::{AgentSpec, ApprovalMode, AutoReset, OnCrash};
use agentd_core::state::AgentState;
use agentd_runtime::driver::{Command, Driver, Ended, JournalError, Observer, Parts};
use session::Session;
use signals::Signals;
use std::path::PathBuf;
use tokio::sync::mpsc;

/// Commands that wait for the driver.
const COMMANDS: usize = 64;

/// Changes a spec as the command line says.
pub type Adjust = Box<dyn Fn(&mut AgentSpec) -> Result<(), Error>>;

pub struct Settings {
    pub style: Style,
    pub run_id: Option<String>,
    /// Where everything is kept.
    pub state_dir: PathBuf,
    pub resume: Option<Resume>,
    /// What is to be changed about the agent's spec, or to a new one.
    pub adjust: Adjust,
    pub base_url: Option<String>,
    pub input: Input,
    /// Prompts that come while a turn runs join it.
    pub steer: bool,
    /// Take up a turn that ended as `limited`, or waits.
    pub continue_turn: bool,
    pub answers: Vec<(ApprovalId, Decision)>,
}

pub enum Resume {
    /// A session file, and the journal beside it where there is one.
    File(PathBuf),
    /// The journal itself.
    Journal,
}

pub enum Input {
    /// One prompt; the process ends with its turn.
    Prompt(String),
    Stdin,
    Fifo(PathBuf),
    /// Nothing new: what waits is done.
    Nothing,
}

pub async fn run(mut settings: Settings) -> Result<(), Error> {
    // First of all: a signal that comes early is not lost.
    let signals = Signals::new()?;
    setup::close_to_others()?;
    let state_dir = StateDir::open(&settings.state_dir)?;
    let mut printer = Printer::new(settings.style);
    let catalog = providers::catalog()?;
    let adjust = |spec: &mut AgentSpec| {
        (settings.adjust)(spec)?;
        // Nobody is there to ask, unless the agent file or the command line says so.
        spec.approval.get_or_insert(ApprovalMode::Never);
        // That takes a daemon to carry it out.
        spec.auto_reset = AutoReset::default();
        if spec.provider.is_none() && spec.model.is_none() {
            spec.provider = providers::provider_by_key(&catalog);
        }
        Ok(())
    };

    let kept = open(&state_dir, &settings, &adjust).await?;
    if kept.is_left {
        leave(&state_dir, kept.agent, &settings, &catalog).await?;
    }
    let state = state_dir.load(kept.agent).await?.state;
    let (mut spec, name) = ((*state.spec).clone(), state.name.clone());
    let before = spec.clone();
    adjust(&mut spec)?;
    let ready = setup::ready(
        &catalog,
        &spec,
        settings.base_url.clone(),
        &state_dir.path,
        &Surroundings::own(),
        &Whose::alone(&name)?,
        None,
    )?;

    if let Some(why) = &ready.policy.missing_key {
        return Err(Error::new(Exit::Refused, "the provider cannot be used").because(why));
    }

    let (fence, told) = state_dir.claim(kept.agent).await?;
    if let Some(told) = told {
        printer.remark("quarantined", &told);
    }
    let mut folded = state_dir.fold(kept.agent).await?;
    asked(&folded.state, &settings.answers)?;
    let after = folded.state.after();
    if spec != before {
        // Before anything goes on: a limit that was raised or lowered holds from the first request.
        state_dir.change(fence, &folded.state, &spec).await?;
        folded = state_dir.fold(kept.agent).await?;
    }
    settings.continue_turn &= waits(&folded.state, after);
    if kept.is_new {
        state_dir.save(kept.agent).await?;
    }
    let Some(conversation) = folded.state.tree.current() else {
        let what = "the agent has no conversation";
        return Err(Error::new(Exit::Failed, what).next("look at it with `agentd verify`"));
    };
    let journal = state_dir.journal(fence, &folded);
    let (seen, sight) = mpsc::unbounded_channel();
    let (commands, queue) = mpsc::channel(COMMANDS);
    let state = &folded.state;
    let session = Session::new(
        &state_dir,
        state,
        conversation,
        commands,
        printer,
        &settings,
    );
    session.hello(kept.is_new);
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

/// That each answer has its question.
fn asked(state: &AgentState, answers: &[(ApprovalId, Decision)]) -> Result<(), Error> {
    for (approval, _) in answers {
        if !state.approvals.waiting().any(|(id, _)| id == approval) {
            let what = format!("no call waits for approval as {approval}");
            return Err(Error::new(Exit::Refused, what)
                .because("it was answered or withdrawn, or never asked"));
        }
    }
    Ok(())
}

/// Whether there is something that `--continue` takes up. A turn that goes on by itself is none: should
/// it reach its limit only now, nobody has asked for more.
fn waits(state: &AgentState, after: After) -> bool {
    let will_pause = after == After::Crash && state.spec.on_crash == OnCrash::Wait;
    let turn = state.turn.as_ref();
    turn.is_none_or(|turn| turn.paused.is_some() || will_pause)
}

/// The agent that is run, and how it came here.
struct Kept {
    agent: AgentId,
    /// Its conversation has just begun.
    is_new: bool,
    /// The conversation that is there is to be left for a new one.
    is_left: bool,
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
    };
    let here = state_dir.agent().await?;
    match (&settings.resume, here) {
        (Some(Resume::File(path)), _) => {
            let session = state_dir.session(path).await?;
            match here {
                Some(agent) => Ok(kept(agent, false, false)),
                None => Ok(kept(state_dir.import(&session).await?, true, false)),
            }
        }
        (Some(Resume::Journal), Some(agent)) => Ok(kept(agent, false, false)),
        (Some(Resume::Journal), None) => {
            let what = format!("there is no agent in {}", state_dir.path.display());
            Err(Error::new(Exit::NotFound, what).next("begin one without --resume"))
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

/// Ends what is under way in the current conversation, and begins a new one.
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
            // The driver has not begun to read yet: there is room.
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
            Error::new(Exit::Refused, "this agent is run by somebody else now").because(error)
        }
        JournalError::Broken(_) => Error::new(Exit::Unavailable, "the agent cannot go on")
            .because(error)
            .next("nothing is lost: see to the disk, then go on with --resume"),
    }
}

/// What the driver's task came to.
fn ended(
    joined: Result<Result<Ended, JournalError>, tokio::task::JoinError>,
) -> Result<Ended, Error> {
    match joined {
        Ok(ended) => ended.map_err(|error| of_journal(&error)),
        Err(error) => Err(Error::new(Exit::Failed, "the agent's loop broke").because(error)),
    }
}
