//! A checkpoint directory: one journal with one agent, and an exclusive lock.

use super::checkpoint::{self, Unusable};
use super::journal::{KeptFiles, StoreJournal};
use crate::error::{Error, Exit};
use agentd_core::begin::{self, Queue};
use agentd_core::event::{Body, Mode, NewEvent, SpecSet};
use agentd_core::id::{AgentId, ConversationId, Seq, TurnId};
use agentd_core::session::Session;
use agentd_core::spec::AgentSpec;
use agentd_core::state::AgentState;
use agentd_daemon::clock;
use agentd_runtime::driver::Folded;
use agentd_store::{
    AgentQuery, AgentSort, Append, Fence, Loaded, Options, ReadQuery, SqliteStore, Store as _,
};
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

pub struct StateDir {
    pub path: PathBuf,
    pub store: SqliteStore,
    /// The lock, held for the lifetime of this value.
    _lock: File,
}

impl StateDir {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let cannot = |error: std::io::Error| {
            let what = format!("cannot use {}", path.display());
            Error::new(Exit::Unavailable, what)
                .because(error)
                .next("choose another directory with --checkpoint-dir")
        };
        let mut make = fs::DirBuilder::new();
        make.recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(cannot)?;
        let path = path.canonicalize().map_err(cannot)?;
        let mut lock = File::options();
        let lock = lock.create(true).truncate(false).write(true);
        let lock = lock.open(path.join("lock")).map_err(cannot)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let what = format!("{} is in use", path.display());
                return Err(Error::new(Exit::Refused, what)
                    .because("another agentd process runs this agent")
                    .next("stop it first, or choose another directory with --checkpoint-dir"));
            }
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
        }
        let store = SqliteStore::open(Options::new(&path)).map_err(|error| failed(&error))?;
        Ok(Self {
            path,
            store,
            _lock: lock,
        })
    }

    /// The agent in this directory.
    pub async fn agent(&self) -> Result<Option<AgentId>, Error> {
        let query = AgentQuery {
            mode: None,
            phase: None,
            archived: false,
            name_prefix: None,
            sort: AgentSort::default(),
            limit: 1,
            after: None,
        };
        let page = self
            .store
            .agents(query)
            .await
            .map_err(|error| failed(&error))?;
        Ok(page.agents.first().map(|row| row.id))
    }

    /// Claims the right to write the agent's journal. A damaged tail is moved to quarantine and reported.
    pub async fn claim(&self, agent: AgentId) -> Result<(Fence, Option<String>), Error> {
        let owner = format!("agent {}", std::process::id());
        let claim = self.store.claim(agent, &owner).await;
        let claim = claim.map_err(|error| failed(&error))?;
        let told = claim.quarantined.map(|damage| {
            format!(
                "events {} to {} of the journal are damaged ({}) and were moved to quarantine; the \
                 conversation continues from event {}",
                damage.from.0,
                damage.through.0,
                damage.reason,
                damage.from.0.saturating_sub(1),
            )
        });
        Ok((claim.fence, told))
    }

    pub async fn load(&self, agent: AgentId) -> Result<Loaded, Error> {
        let loaded = self.store.load(agent).await;
        loaded.map_err(|error| failed(&error))
    }

    /// The agent as folded from its journal, for the driver.
    pub async fn fold(&self, agent: AgentId) -> Result<Folded, Error> {
        let loaded = self.load(agent).await?;
        let draft = self.store.draft(agent).await;
        let draft = draft.map_err(|error| failed(&error))?;
        Ok(Folded {
            incarnation: loaded.state.incarnation.next(),
            state: loaded.state,
            window: loaded.window,
            draft: draft.map(|draft| (draft.request, draft.bytes)),
        })
    }

    /// A new agent with its first conversation.
    pub async fn create(&self, name: &str, spec: &AgentSpec) -> Result<AgentId, Error> {
        let agent = AgentId::new(clock::new_id());
        let conversation = ConversationId::new(clock::new_id());
        let lines = begin::create(name, Mode::Persistent, spec, conversation);
        let (fence, _) = self.claim(agent).await?;
        self.append(fence, lines).await?;
        Ok(agent)
    }

    /// Records the agent's new spec.
    pub async fn change(
        &self,
        fence: Fence,
        state: &AgentState,
        spec: &AgentSpec,
    ) -> Result<(), Error> {
        let Some(conversation) = state.tree.current() else {
            return Ok(());
        };
        self.append(fence, vec![(conversation, set(spec))]).await
    }

    /// The agent of a session whose journal is not in this directory.
    pub async fn import(&self, session: &Session) -> Result<AgentId, Error> {
        let (fence, _) = self.claim(session.agent).await?;
        let events = session.events(&mut clock::new_id).into_iter();
        let events = events.map(|(turn, body)| event(session.conversation, turn, body));
        let append = Append::new(fence, events.collect());
        let appended = self.store.append(append).await;
        appended.map_err(|error| failed(&error))?;
        Ok(session.agent)
    }

    /// Seals the current conversation, whose turn must have ended, and begins an empty one.
    pub async fn begin(&self, agent: AgentId) -> Result<(), Error> {
        let (fence, _) = self.claim(agent).await?;
        let Loaded { state, window, .. } = self.load(agent).await?;
        let new = ConversationId::new(clock::new_id());
        let lines = begin::reset(&state, &window, new, Queue::SetAside, None);
        let lines = lines.map_err(|refused| {
            Error::new(Exit::Refused, "cannot begin a new conversation").because(refused)
        })?;
        self.append(fence, lines).await
    }

    async fn append(&self, fence: Fence, lines: Vec<begin::Line>) -> Result<(), Error> {
        let events = lines.into_iter();
        let events = events.map(|(conversation, body)| event(conversation, None, body));
        let append = Append::new(fence, events.collect());
        let appended = self.store.append(append).await;
        appended.map(drop).map_err(|error| failed(&error))
    }

    /// Reads the session file, and compares it with the journal next to it.
    pub async fn session(&self, path: &Path) -> Result<Session, Error> {
        let session = match checkpoint::read(path) {
            Ok(session) => session,
            Err(unusable) => return Err(self.unusable(path, &unusable).await?),
        };
        let Some(agent) = self.agent().await? else {
            return Ok(session);
        };
        let seq = session.head.seq;
        let query = ReadQuery::all(agent, Seq(seq.0.saturating_sub(1)), 1);
        let page = self
            .store
            .read(query)
            .await
            .map_err(|error| failed(&error))?;
        let head = page.events.first().filter(|event| event.seq == seq);
        let is_there = agent == session.agent && head.is_some_and(|it| it.at == session.head.at);
        if !is_there {
            let what = format!(
                "{} does not belong to the journal next to it",
                path.display()
            );
            return Err(Error::new(Exit::Refused, what)
                .because("its last event is not in that journal")
                .next(format!(
                    "resume the journal itself with `--resume {}`, or use the file with an empty \
                     directory: --checkpoint-dir",
                    self.path.display()
                )));
        }
        let loaded = self.load(agent).await?;
        if loaded.state.tree.current() != Some(session.conversation) {
            let what = format!("{} belongs to an earlier conversation", path.display());
            return Err(Error::new(Exit::Refused, what)
                .because("the agent has begun a new one since then")
                .next("to continue from the file, give an empty directory with --checkpoint-dir"));
        }
        Ok(session)
    }

    /// Adds a hint that says what can be resumed instead.
    async fn unusable(&self, path: &Path, why: &Unusable) -> Result<Error, Error> {
        let what = format!("cannot resume {}", path.display());
        let error = match why {
            Unusable::Io(error) => Error::of_file(what, error),
            _ => Error::new(Exit::Refused, what).because(why),
        };
        let Some(agent) = self.agent().await? else {
            return Ok(error.next(
                "there is no journal next to it; resume an older copy of the file, or start a new \
                 agent without --resume",
            ));
        };
        let state = self.load(agent).await?.state;
        let turn = match &state.last_turn {
            Some(turn) => format!("its last turn, {}, ended as {:?}", turn.id, turn.status),
            None => "no turn has ended yet".to_owned(),
        };
        Ok(error.next(format!(
            "the journal next to it is valid up to event {} ({}); continue from it with `--resume {}`",
            state.head.0,
            turn.to_lowercase(),
            self.path.display()
        )))
    }

    pub fn journal(&self, fence: Fence, folded: &Folded) -> StoreJournal {
        StoreJournal {
            store: self.store.clone(),
            fence,
            incarnation: folded.incarnation,
            appends: 0,
            files: KeptFiles::of(&folded.state),
        }
    }

    /// Writes `session-latest.json`.
    pub async fn save(&self, agent: AgentId) -> Result<Loaded, Error> {
        let loaded = self.load(agent).await?;
        if let Some(session) = Session::of(&loaded.state, &loaded.window, clock::now()) {
            checkpoint::write(&self.path, &session)?;
        }
        Ok(loaded)
    }
}

fn set(spec: &AgentSpec) -> Body {
    let spec = Box::new(spec.clone());
    SpecSet { spec }.into()
}

pub fn event(
    conversation: ConversationId,
    turn: Option<TurnId>,
    body: impl Into<Body>,
) -> NewEvent {
    NewEvent {
        at: clock::now(),
        conversation,
        turn,
        body: body.into(),
    }
}

fn failed(error: &agentd_store::Error) -> Error {
    Error::of_store("cannot use the journal", error)
}
