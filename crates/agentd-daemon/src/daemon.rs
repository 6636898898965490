//! What all parts of the daemon share.

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
use agentd_process::failpoint;
use agentd_store::{AgentQuery, AgentSort, Store};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// AgentHandles that are kept, however wait_idle they are.
const HANDLES: usize = 64;
/// Prompts whose place is remembered; that of an older one is looked for.
const PROMPTS: usize = 16_384;
/// Names that are looked at for one that is like the one that was not found.
const NAMES: usize = 1000;

pub struct Daemon {
    pub layout: Layout,
    pub home: Home,
    /// This start of the machine, as this home calls it.
    pub boot: BootId,
    pub store: Arc<dyn Store>,
    pub transcripts: Transcripts,
    pub hooks: Hooks,
    /// What runs an agent: this very program.
    pub program: PathBuf,
    pub started_at: Timestamp,
    pub orphan: Duration,
    /// How long a reset or a stop waits for all SessionEnd hooks together.
    pub session_end_wait: Duration,
    pub runtime_env: Vec<(OsString, OsString)>,
    pub tool_sockets: ToolSockets,
    pub envs: Envs,
    /// One change of the stored secrets at a time.
    pub secret_file: tokio::sync::Mutex<()>,
    /// Variables that hold keys of providers, whatever they are called.
    key_names: BTreeSet<String>,
    claims: Arc<Claims>,
    handles: tokio::sync::Mutex<HashMap<AgentId, Arc<AgentHandle>>>,
    prompts: Mutex<Places>,
    ending: watch::Sender<Ending>,
    /// What clients find when this daemon was told to stop.
    stop_mark: Mutex<Option<StopMark>>,
    /// Somebody's silence began, or ended.
    pub silences: Notify,
}

/// The state directory was deleted, or is another one.
#[derive(Clone, Copy, Debug)]
pub struct HomeLost;

/// How far the daemon is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    No,
    /// The agents' processes are to end first.
    Stops,
    /// By itself: they go on.
    Alone,
    /// Nothing new is started, and streams end.
    Leaves,
}

/// How far a stop that a client asked for has come.
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

/// Waits until the daemon leaves.
pub async fn left(ending: &mut watch::Receiver<Ending>) {
    // The sender is gone with the daemon: that is the same.
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
            tracing::error!(%error, "stored secrets are not used");
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

    /// Chooses the way out, where none was chosen before: whoever was told of one can rely on it. Which it is.
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

    /// Whether the home is still there. Where it is not, the daemon ends, and the agents' processes with it: what
    /// they would write from now on is nowhere.
    pub fn check_home(&self) -> std::result::Result<(), HomeLost> {
        if self.home.is_there() {
            return Ok(());
        }
        if !self.is_ending() {
            tracing::error!(home = %self.layout.home().display(), "the state directory is gone");
        }
        self.choose_end(Ending::Stops);
        Err(HomeLost)
    }

    /// Leaves the mark that clients under way find: they start no other daemon.
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
            tracing::error!(%error, "the mark of this stop cannot be written: clients may start another daemon");
        }
    }

    pub fn ending(&self) -> watch::Receiver<Ending> {
        self.ending.subscribe()
    }

    pub fn is_ending(&self) -> bool {
        *self.ending.borrow() != Ending::No
    }

    /// The agent at hand, by its id.
    pub async fn handle(&self, agent: AgentId) -> Result<Arc<AgentHandle>> {
        let mut handles = self.handles.lock().await;
        if let Some(handle) = handles.get(&agent) {
            return Ok(Arc::clone(handle));
        }
        let env = self.envs.of(agent);
        let handle = AgentHandle::open(&self.store, &self.claims, agent, env).await?;
        Ok(put(&mut handles, handle))
    }

    /// A place for an agent that is about to be; the one that there is, if somebody else makes it just now.
    pub async fn new_handle(&self, agent: AgentId) -> Arc<AgentHandle> {
        let mut handles = self.handles.lock().await;
        if let Some(handle) = handles.get(&agent) {
            return Arc::clone(handle);
        }
        let env = self.envs.of(agent);
        let handle = AgentHandle::make(&self.store, &self.claims, agent, env);
        put(&mut handles, handle)
    }

    /// Those at hand.
    pub async fn handles(&self) -> Vec<Arc<AgentHandle>> {
        self.handles.lock().await.values().cloned().collect()
    }

    /// Lets go of an agent that did not come to be.
    pub async fn forget(&self, agent: AgentId) {
        self.claims.lost(agent);
        self.handles.lock().await.remove(&agent);
    }

    /// The id of an agent, by its name, an old name, or the id itself.
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
        if let Ok(Some(_)) = self.put_away_as(name).await {
            let next = format!("`agentd restore {name}` takes it out again");
            return Err(problem.because("it was removed").next(next));
        }
        Err(match self.alike(name).await {
            Some(alike) => problem.next(format!("did you mean `{alike}`?")),
            None => problem.next("`agentd list` shows those that are there"),
        })
    }

    /// One that was removed. Its name is free for others, so a living one comes first.
    async fn put_away_as(&self, given: &str) -> Result<Option<AgentId>> {
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
                let what = format!("{} agents were removed as `{name}`", several.len());
                let next = format!("say which: {}", ids.join(", "));
                Err(Problem::new(Kind::Conflict, what).next(next))
            }
        }
    }

    /// The id of an agent that is there, or was removed: to be looked at.
    pub async fn find_any(&self, name: &str) -> Result<AgentId> {
        match self.find(name).await {
            Err(problem) if problem.kind == Kind::NotFound => {
                let removed = self.put_away_as(name).await?;
                removed.ok_or(problem)
            }
            found => found,
        }
    }

    /// One that was removed, before one that is there under the same name.
    pub async fn put_away(&self, name: &str) -> Result<Arc<AgentHandle>> {
        match self.put_away_as(name).await? {
            Some(agent) => self.handle(agent).await,
            None => self.any(name).await,
        }
    }

    /// The agent that has this name as an alias, which gives way to an agent of that name.
    pub async fn alias_of(&self, given: &str) -> Result<Option<AgentRef>> {
        let name = canonical(given);
        let found = self.store.find(&name).await;
        let Some(holder) = found.map_err(|error| of_store(&error))? else {
            return Ok(None);
        };
        let holder = self.reference(holder).await;
        Ok(Some(holder).filter(|holder| holder.name.as_deref() != Some(&name)))
    }

    /// An agent by its id and the name that it goes by.
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

    /// Every secret that is known of an agent: what must not be in anything that is kept or shown.
    pub fn secrets_of(&self, guard: &AgentGuard<'_>) -> Secrets {
        if failpoint::injected_bug("keys_unredacted") {
            return Secrets::default();
        }
        Secrets::of_env(&guard.env, &self.key_names)
            .and(self.envs.secret_values())
            .and(guard.keys.iter().cloned())
    }

    /// The same where it is about no agent.
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

    /// Where a prompt was accepted; from the beginning on, where nobody remembers.
    pub fn place_of(&self, prompt: PromptId) -> Seq {
        let places = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        places.known.get(&prompt).copied().unwrap_or(Seq::ZERO)
    }
}
