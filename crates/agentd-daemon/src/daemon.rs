//! What all parts of the daemon share.

use crate::claims::Claims;
use crate::clock;
use crate::desk::Desk;
use crate::hooks::Hooks;
use crate::layout::Layout;
use crate::problem::{Result, of_store};
use crate::transcript::Transcripts;
use agentd_client::api::Env;
use agentd_client::{Kind, Problem};
use agentd_core::id::{AgentId, PromptId, Seq};
use agentd_core::time::Timestamp;
use agentd_store::{AgentQuery, AgentSort, Store};
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Desks that are kept, however quiet they are.
const DESKS: usize = 64;
/// Prompts whose place is remembered; that of an older one is looked for.
const PROMPTS: usize = 16_384;
/// Names that are looked at for one that is like the one that was not found.
const NAMES: usize = 1000;

pub struct Daemon {
    pub layout: Layout,
    pub store: Arc<dyn Store>,
    pub transcripts: Transcripts,
    pub hooks: Hooks,
    /// What runs an agent: this very program.
    pub program: PathBuf,
    pub started_at: Timestamp,
    pub orphan: Duration,
    pub runtime_env: Vec<(OsString, OsString)>,
    /// What this process was started with.
    own_env: Arc<Env>,
    claims: Arc<Claims>,
    desks: tokio::sync::Mutex<HashMap<AgentId, Arc<Desk>>>,
    /// What callers brought, for as long as this process lives.
    envs: Mutex<HashMap<AgentId, Arc<Env>>>,
    prompts: Mutex<Places>,
    ending: watch::Sender<Ending>,
    /// Somebody's silence began, or ended.
    pub silences: Notify,
}

/// How far the daemon is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    No,
    /// The agents' processes are to end first.
    Stops,
    /// Nothing new is started, and streams end.
    Leaves,
}

fn put(desks: &mut HashMap<AgentId, Arc<Desk>>, desk: Desk) -> Arc<Desk> {
    if desks.len() >= DESKS {
        desks.retain(|_, desk| Arc::strong_count(desk) > 1 || !desk.is_quiet());
    }
    let desk = Arc::new(desk);
    desks.insert(desk.id, Arc::clone(&desk));
    desk
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
        store: Arc<dyn Store>,
        transcripts: Transcripts,
        program: PathBuf,
        orphan: Duration,
        own_env: Env,
        runtime_env: Vec<(OsString, OsString)>,
    ) -> Self {
        let owner = format!("daemon {}", clock::new_id());
        Self {
            claims: Arc::new(Claims::new(Arc::clone(&store), owner)),
            layout,
            store,
            transcripts,
            hooks: Hooks::default(),
            program,
            started_at: clock::now(),
            orphan,
            runtime_env,
            own_env: Arc::new(own_env),
            desks: tokio::sync::Mutex::default(),
            envs: Mutex::default(),
            prompts: Mutex::default(),
            ending: watch::channel(Ending::No).0,
            silences: Notify::new(),
        }
    }

    pub fn end(&self, ending: Ending) {
        self.ending.send_modify(|known| *known = ending.max(*known));
    }

    pub fn ending(&self) -> watch::Receiver<Ending> {
        self.ending.subscribe()
    }

    pub fn is_ending(&self) -> bool {
        *self.ending.borrow() != Ending::No
    }

    /// The agent at hand, by its id.
    pub async fn desk(&self, agent: AgentId) -> Result<Arc<Desk>> {
        let mut desks = self.desks.lock().await;
        if let Some(desk) = desks.get(&agent) {
            return Ok(Arc::clone(desk));
        }
        let env = self.env_of(agent);
        let desk = Desk::open(&self.store, &self.claims, agent, env).await?;
        Ok(put(&mut desks, desk))
    }

    /// A place for an agent that is about to be; the one that there is, if somebody else makes it just now.
    pub async fn new_desk(&self, agent: AgentId) -> Arc<Desk> {
        let mut desks = self.desks.lock().await;
        if let Some(desk) = desks.get(&agent) {
            return Arc::clone(desk);
        }
        let env = self.env_of(agent);
        let desk = Desk::make(&self.store, &self.claims, agent, env);
        put(&mut desks, desk)
    }

    /// Those at hand.
    pub async fn desks(&self) -> Vec<Arc<Desk>> {
        self.desks.lock().await.values().cloned().collect()
    }

    /// Lets go of an agent that did not come to be.
    pub async fn forget(&self, agent: AgentId) {
        self.claims.lost(agent);
        self.desks.lock().await.remove(&agent);
    }

    /// The id of an agent, by its name, an old name, or the id itself.
    pub async fn find(&self, name: &str) -> Result<AgentId> {
        let found = self.store.find(name).await;
        if let Some(agent) = found.map_err(|error| of_store(&error))? {
            return Ok(agent);
        }
        if let Ok(agent) = name.parse::<AgentId>()
            && self.store.load(agent).await.is_ok()
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
    async fn put_away_as(&self, name: &str) -> Result<Option<AgentId>> {
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
    pub async fn put_away(&self, name: &str) -> Result<Arc<Desk>> {
        match self.put_away_as(name).await? {
            Some(agent) => self.desk(agent).await,
            None => self.any(name).await,
        }
    }

    pub async fn any(&self, name: &str) -> Result<Arc<Desk>> {
        self.desk(self.find_any(name).await?).await
    }

    pub async fn named(&self, name: &str) -> Result<Arc<Desk>> {
        self.desk(self.find(name).await?).await
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

    /// Keeps what a caller brought, for the agent's next process.
    pub fn bring(&self, agent: AgentId, brought: &Env) -> Option<Arc<Env>> {
        if brought.is_empty() {
            return None;
        }
        let mut envs = self.envs.lock().unwrap_or_else(PoisonError::into_inner);
        let known = envs.get(&agent);
        let mut all = known.map_or_else(Env::new, |known| (**known).clone());
        all.extend(brought.clone());
        if known.is_some_and(|known| **known == all) {
            return known.cloned();
        }
        // Thousands of agents are made from one shell: they share what it brought.
        let same = envs.values().find(|env| ***env == all).cloned();
        let all = same.unwrap_or_else(|| Arc::new(all));
        envs.insert(agent, Arc::clone(&all));
        Some(all)
    }

    pub fn has_brought(&self, agent: AgentId) -> bool {
        let envs = self.envs.lock().unwrap_or_else(PoisonError::into_inner);
        envs.contains_key(&agent)
    }

    pub fn own_env(&self) -> Arc<Env> {
        Arc::clone(&self.own_env)
    }

    fn env_of(&self, agent: AgentId) -> Arc<Env> {
        let envs = self.envs.lock().unwrap_or_else(PoisonError::into_inner);
        envs.get(&agent).unwrap_or(&self.own_env).clone()
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
