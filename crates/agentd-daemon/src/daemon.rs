//! The state that all parts of the daemon share, and finding agents by name.

use crate::Settings;
use crate::agent_handle::{AgentGuard, AgentHandle};
use crate::claims::Claims;
use crate::clock;
use crate::envs::Envs;
use crate::home::Home;
use crate::hooks::Hooks;
use crate::layout::Layout;
use crate::lifecycle::create::canonical;
use crate::lifecycle::secrets::values;
use crate::problem::{Result, of_store};
use crate::secrets;
use crate::sockets::ToolSockets;
use crate::stop_mark::StopMark;
use crate::transcript::Transcripts;
use agentd_client::api::AgentRef;
use agentd_client::{Kind, Problem};
use agentd_core::id::{AgentId, BootId, PromptId, Seq};
use agentd_core::secrets::Secrets;
use agentd_core::time::Timestamp;
use agentd_failpoint as failpoint;
use agentd_store::{AgentQuery, AgentSort, Store};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// AgentHandles that are kept in memory before idle ones are dropped.
const HANDLES: usize = 64;
/// Prompts whose position in the journal is remembered. An older one is searched for.
const PROMPTS: usize = 16_384;
/// Names that are compared when an agent is not found, to suggest a similar one.
const NAMES: usize = 1000;

pub struct Daemon {
    pub layout: Layout,
    pub home: Home,
    /// The id of the machine's current boot, as this home records it; see [`crate::home::boot_of`].
    pub boot: BootId,
    pub store: Arc<dyn Store>,
    pub transcripts: Transcripts,
    pub hooks: Hooks,
    /// The program that runs an agent: this program itself.
    pub program: PathBuf,
    pub started_at: Timestamp,
    pub orphan: Duration,
    /// How long a reset or a stop waits for all SessionEnd hooks together.
    pub session_end_wait: Duration,
    pub runtime_env: Vec<(OsString, OsString)>,
    pub tool_sockets: ToolSockets,
    pub envs: Envs,
    /// Serializes reading and changing the file of stored secrets.
    pub secret_file: tokio::sync::Mutex<()>,
    /// Names of the variables that hold provider keys. Their values are redacted.
    key_names: BTreeSet<String>,
    claims: Arc<Claims>,
    /// The agents in use. Locked while a handle is opened, so that an agent never has two handles.
    handles: tokio::sync::Mutex<HashMap<AgentId, Arc<AgentHandle>>>,
    /// Where recent prompts were accepted, so that an answer is not searched for from the start of the journal.
    prompts: Mutex<Places>,
    /// How far the shutdown of the daemon has come. Changed by signals, by `daemon stop` and when the home is lost.
    ending: watch::Sender<Ending>,
    /// Set when a client stops this daemon; the file tells clients not to start another daemon.
    stop_mark: Mutex<Option<StopMark>>,
    /// Notified when an agent with `auto_reset.idle_ms` changes: the time of the next idle reset may have changed.
    pub silences: Notify,
}

/// The state directory was deleted or replaced.
#[derive(Clone, Copy, Debug)]
pub struct HomeLost;

/// How far the shutdown of the daemon has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    No,
    /// The agents' processes end first.
    Stops,
    /// Only the daemon ends; the agents' processes continue.
    Alone,
    /// The daemon accepts no connection any more, and streams end.
    Leaves,
}

/// How far a stop that a client requested has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    Accepted,
    /// The agents' processes have ended.
    Complete,
}

fn put(handles: &mut HashMap<AgentId, Arc<AgentHandle>>, handle: AgentHandle) -> Arc<AgentHandle> {
    if handles.len() >= HANDLES {
        handles.retain(|_, handle| Arc::strong_count(handle) > 1 || !handle.is_idle());
    }
    let handle = Arc::new(handle);
    handles.insert(handle.id, Arc::clone(&handle));
    handle
}

/// Waits for [`Ending::Leaves`].
pub async fn left(ending: &mut watch::Receiver<Ending>) {
    // If the sender is dropped, the daemon has ended: that is the same.
    let _gone = ending.wait_for(|ending| *ending == Ending::Leaves).await;
}

#[derive(Default)]
struct Places {
    known: HashMap<PromptId, Seq>,
    order: VecDeque<PromptId>,
}

impl Daemon {
    pub fn new(
        layout: Layout,
        home: Home,
        boot: BootId,
        store: Arc<dyn Store>,
        transcripts: Transcripts,
        settings: Settings,
    ) -> Self {
        let owner = format!("daemon {}", clock::new_id());
        let stored = secrets::read(&layout).unwrap_or_else(|error| {
            tracing::error!(%error, "stored secrets not loaded");
            secrets::Stored::new()
        });
        let read_only = home.suspicion.as_ref().map(ToString::to_string);
        Self {
            claims: Arc::new(Claims::new(Arc::clone(&store), owner, read_only)),
            layout,
            home,
            boot,
            store,
            transcripts,
            hooks: Hooks::default(),
            program: settings.program,
            started_at: clock::now(),
            orphan: settings.orphan,
            session_end_wait: settings.session_end_wait,
            runtime_env: settings.runtime_env,
            tool_sockets: ToolSockets::default(),
            envs: Envs::new(settings.env, values(&stored)),
            secret_file: tokio::sync::Mutex::default(),
            key_names: settings.key_names,
            handles: tokio::sync::Mutex::default(),
            prompts: Mutex::default(),
            ending: watch::channel(Ending::No).0,
            stop_mark: Mutex::default(),
            silences: Notify::new(),
        }
    }

    pub fn end(&self, ending: Ending) {
        self.ending.send_modify(|known| *known = ending.max(*known));
    }

    /// Chooses how the daemon ends, unless that was chosen before, and returns the choice. It is final, because clients
    /// have been told.
    pub fn choose_end(&self, way: Ending) -> Ending {
        let mut chosen = way;
        self.ending.send_if_modified(|known| {
            let is_first = *known == Ending::No;
            if is_first {
                *known = way;
            }
            chosen = *known;
            is_first
        });
        chosen
    }

    /// Whether nothing may be changed: the home is a suspected copy.
    pub const fn is_read_only(&self) -> bool {
        self.home.suspicion.is_some()
    }

    /// Checks that the home still exists. If not, the daemon ends, and the agents' processes with it, because
    /// nothing that they write could be found again.
    pub fn check_home(&self) -> std::result::Result<(), HomeLost> {
        if self.home.is_there() {
            return Ok(());
        }
        if !self.is_ending() {
            tracing::error!(home = %self.layout.home().display(), "state directory is lost");
        }
        self.choose_end(Ending::Stops);
        Err(HomeLost)
    }

    /// Writes the stop mark. Clients that are already running read it and start no other daemon.
    pub fn mark_stopped(&self, stopped: Stopped) {
        let mut known = self
            .stop_mark
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mark = known.get_or_insert_with(|| StopMark {
            id: clock::new_id(),
            pid: std::process::id(),
            complete: false,
        });
        mark.complete |= stopped == Stopped::Complete;
        if let Err(error) = mark.write(&self.layout) {
            tracing::error!(%error, "stop mark not written: clients may start another daemon");
        }
    }

    pub fn ending(&self) -> watch::Receiver<Ending> {
        self.ending.subscribe()
    }

    pub fn is_ending(&self) -> bool {
        *self.ending.borrow() != Ending::No
    }

    /// The handle of an agent. It is opened if the agent is not in use.
    pub async fn handle(&self, agent: AgentId) -> Result<Arc<AgentHandle>> {
        let mut handles = self.handles.lock().await;
        if let Some(handle) = handles.get(&agent) {
            return Ok(Arc::clone(handle));
        }
        let env = self.envs.of(agent);
        let handle = AgentHandle::open(&self.store, &self.claims, agent, env).await?;
        Ok(put(&mut handles, handle))
    }

    /// A handle for an agent that is about to be created, or the existing handle if another task creates it.
    pub async fn new_handle(&self, agent: AgentId) -> Arc<AgentHandle> {
        let mut handles = self.handles.lock().await;
        if let Some(handle) = handles.get(&agent) {
            return Arc::clone(handle);
        }
        let env = self.envs.of(agent);
        let handle = AgentHandle::make(&self.store, &self.claims, agent, env);
        put(&mut handles, handle)
    }

    /// The handles of all agents in use.
    pub async fn handles(&self) -> Vec<Arc<AgentHandle>> {
        self.handles.lock().await.values().cloned().collect()
    }

    /// Drops the handle of an agent whose creation failed.
    pub async fn forget(&self, agent: AgentId) {
        self.claims.lost(agent);
        self.handles.lock().await.remove(&agent);
    }

    /// The id of an agent that is not archived, by its name, an old name, or the id itself.
    pub async fn find(&self, given: &str) -> Result<AgentId> {
        let name = &*canonical(given);
        let found = self.store.find(name).await;
        if let Some(agent) = found.map_err(|error| of_store(&error))? {
            return Ok(agent);
        }
        if let Ok(agent) = name.parse::<AgentId>()
            && self.store.is_listed(agent).await.unwrap_or(false)
        {
            return Ok(agent);
        }
        let problem = Problem::new(Kind::NotFound, format!("no agent `{name}`"));
        if let Ok(Some(_)) = self.archived_id(name).await {
            let next = format!("restore it: agentd restore {name}");
            return Err(problem.because("it is archived").next(next));
        }
        Err(match self.alike(name).await {
            Some(alike) => problem.next(format!("did you mean `{alike}`?")),
            None => problem.next("`agentd list` shows all agents"),
        })
    }

    /// The archived agent of a name. Its name is free for others, so callers look for an active agent first.
    async fn archived_id(&self, given: &str) -> Result<Option<AgentId>> {
        let name = &*canonical(given);
        let query = AgentQuery {
            archived: true,
            name_prefix: Some(name.to_owned()),
            sort: AgentSort::Name,
            limit: NAMES,
            ..AgentQuery::default()
        };
        let agents = self.store.agents(query).await;
        let agents = agents.map_err(|error| of_store(&error))?.agents.into_iter();
        let agents: Vec<_> = agents.filter(|agent| agent.name == name).collect();
        match &agents[..] {
            [] => Ok(None),
            [only] => Ok(Some(only.id)),
            several => {
                let ids: Vec<String> = several.iter().map(|agent| agent.id.to_string()).collect();
                let what = format!("{} archived agents have the name `{name}`", several.len());
                let next = format!("use one of their ids: {}", ids.join(", "));
                Err(Problem::new(Kind::Conflict, what).next(next))
            }
        }
    }

    /// The id of an agent, archived or not.
    pub async fn find_any(&self, name: &str) -> Result<AgentId> {
        match self.find(name).await {
            Err(problem) if problem.kind == Kind::NotFound => {
                let removed = self.archived_id(name).await?;
                removed.ok_or(problem)
            }
            found => found,
        }
    }

    /// The archived agent of a name; if there is none, the active one.
    pub async fn archived(&self, name: &str) -> Result<Arc<AgentHandle>> {
        match self.archived_id(name).await? {
            Some(agent) => self.handle(agent).await,
            None => self.any(name).await,
        }
    }

    /// The agent that has this name as an alias. It loses the alias to an agent that takes the name.
    pub async fn alias_of(&self, given: &str) -> Result<Option<AgentRef>> {
        let name = canonical(given);
        let found = self.store.find(&name).await;
        let Some(holder) = found.map_err(|error| of_store(&error))? else {
            return Ok(None);
        };
        let holder = self.reference(holder).await;
        Ok(Some(holder).filter(|holder| holder.name.as_deref() != Some(&name)))
    }

    /// An agent's id and its current name.
    pub async fn reference(&self, id: AgentId) -> AgentRef {
        let name = match self.handle(id).await {
            Ok(handle) => Some(handle.lock().await.state.name.clone()),
            Err(_) => None,
        };
        AgentRef { id, name }
    }

    pub async fn any(&self, name: &str) -> Result<Arc<AgentHandle>> {
        self.handle(self.find_any(name).await?).await
    }

    pub async fn named(&self, name: &str) -> Result<Arc<AgentHandle>> {
        self.handle(self.find(name).await?).await
    }

    async fn alike(&self, name: &str) -> Option<String> {
        let query = AgentQuery {
            sort: AgentSort::Recent,
            limit: NAMES,
            ..AgentQuery::default()
        };
        let agents = self.store.agents(query).await.ok()?.agents;
        let near = agents.into_iter().map(|agent| {
            let distance = strsim::damerau_levenshtein(&agent.name, name);
            (distance, agent.name)
        });
        let (distance, nearest) = near.min()?;
        (distance <= 1 + name.len() / 4).then_some(nearest)
    }

    /// Every secret that is known of an agent. None of them may be in anything that is stored or shown.
    pub fn secrets_of(&self, guard: &AgentGuard<'_>) -> Secrets {
        if failpoint::injected_bug("keys_unredacted") {
            return Secrets::default();
        }
        Secrets::of_env(&guard.env, &self.key_names)
            .and(self.envs.secret_values())
            .and(guard.keys.iter().cloned())
    }

    /// The secrets for work that belongs to no agent.
    pub fn own_secrets(&self) -> Secrets {
        Secrets::of_env(&self.envs.own(), &self.key_names).and(self.envs.secret_values())
    }

    pub fn remember(&self, prompt: PromptId, seq: Seq) {
        let mut places = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        if places.known.insert(prompt, seq).is_none() {
            places.order.push_back(prompt);
        }
        if places.order.len() > PROMPTS
            && let Some(oldest) = places.order.pop_front()
        {
            places.known.remove(&oldest);
        }
    }

    /// The position where a prompt was accepted, or the beginning of the journal if it is not remembered.
    pub fn place_of(&self, prompt: PromptId) -> Seq {
        let places = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        places.known.get(&prompt).copied().unwrap_or(Seq::ZERO)
    }
}
