//! Finds agents, by name or id, and opens their handles.

use super::{Agent, AgentHandle, Daemon};
use crate::agent_name::canonical;
use crate::error::{Error, Kind, Result};
use crate::id_prefix;
use agentd_client::api::AgentRef;
use agentd_core::id::{AgentId, IdPrefix};
use agentd_store::{AgentQuery, AgentSort};
use std::sync::Arc;

/// How many names are compared when an agent is not found, to suggest a similar one.
const NAMES: usize = 1000;

impl Daemon {
    /// The handle of an agent. It is opened if the agent is not in use.
    pub async fn handle(self: &Arc<Self>, agent: AgentId) -> Result<AgentHandle> {
        let opened = self.agents.get(agent, || self.open(agent)).await?;
        Ok(AgentHandle::new(Arc::clone(self), opened))
    }

    /// The same, or none if there is no such agent. Every other error is one: an agent that cannot be read now exists.
    pub async fn existing(self: &Arc<Self>, agent: AgentId) -> Result<Option<AgentHandle>> {
        match self.handle(agent).await {
            Ok(handle) => Ok(Some(handle)),
            Err(error) if error.kind == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A handle for an agent that is about to be created, or the existing handle if another task creates it.
    pub async fn new_handle(self: &Arc<Self>, agent: AgentId) -> AgentHandle {
        let made = self.agents.make(agent, self.envs.of(agent)).await;
        AgentHandle::new(Arc::clone(self), made)
    }

    /// The handles of all agents in use.
    pub fn handles(self: &Arc<Self>) -> Vec<AgentHandle> {
        let agents = self.agents.all().into_iter();
        agents
            .map(|agent| AgentHandle::new(Arc::clone(self), agent))
            .collect()
    }

    /// An agent; none if its journal is so damaged that it has no state.
    pub async fn readable(self: &Arc<Self>, id: AgentId) -> Result<Option<AgentHandle>> {
        match self.handle(id).await {
            Ok(handle) => Ok(Some(handle)),
            Err(error) if error.kind == Kind::Internal => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Drops an agent whose creation failed, unless another task is about to create it.
    pub fn forget(&self, handle: &AgentHandle) {
        self.claims.lost(handle.id);
        self.agents.forget(handle.agent());
    }

    async fn open(&self, id: AgentId) -> Result<Agent> {
        let mut loaded = self.store.load(id).await?;
        if loaded.damage.is_some() {
            // Claiming the agent moves the damaged tail to quarantine; after that the agent can be used.
            self.claims.lost(id);
            match self.claims.fence(id, loaded.state.head).await {
                // In a read-only home, the events before the damage can still be read.
                Ok(_)
                | Err(agentd_store::Error::Damaged { .. } | agentd_store::Error::ReadOnly { .. }) =>
                    {}
                Err(error) => return Err(error.into()),
            }
            loaded = self.store.load(id).await?;
        }
        Ok(Agent::loaded(loaded, self.envs.of(id)))
    }

    /// The id of an agent, by its name, an old name, its id or the beginning of its id. An archived agent is found only by
    /// its id.
    pub async fn find(self: &Arc<Self>, given: &str) -> Result<AgentId> {
        let name = &*canonical(given);
        let found = self.store.find(name).await;
        if let Some(agent) = found? {
            return Ok(agent);
        }
        if let Some(agent) = self.by_id(name).await? {
            return Ok(agent);
        }
        let error = Error::new(Kind::NotFound, format!("no agent `{name}`"));
        if let Ok(Some(_)) = self.archived_id(name).await {
            let next = format!("restore it: agentd restore {name}");
            return Err(error.because("it is archived").next(next));
        }
        Err(match self.alike(name).await {
            Some(alike) => error.next(format!("did you mean `{alike}`?")),
            None => error.next("`agentd list` shows all agents"),
        })
    }

    /// The agent with this id, or with the only id that begins with it.
    async fn by_id(&self, given: &str) -> Result<Option<AgentId>> {
        let Ok(prefix) = given.parse::<IdPrefix>() else {
            return Ok(None);
        };
        let range = prefix.range();
        let ids = AgentId::new(*range.start())..=AgentId::new(*range.end());
        let found = self.store.agents_between(ids, id_prefix::LISTED + 1);
        id_prefix::only(&prefix, "agent", found.await?)
    }

    /// The archived agent with this name. Archiving frees the name, so an active agent may have the same name.
    async fn archived_id(&self, given: &str) -> Result<Option<AgentId>> {
        let name = &*canonical(given);
        let query = AgentQuery {
            archived: true,
            name_prefix: Some(name.to_owned()),
            sort: AgentSort::Name,
            limit: NAMES,
            ..AgentQuery::default()
        };
        let agents = self.store.agents(query).await?.agents.into_iter();
        let agents: Vec<_> = agents.filter(|agent| agent.name == name).collect();
        match &agents[..] {
            [] => Ok(None),
            [only] => Ok(Some(only.id)),
            several => {
                let ids: Vec<String> = several.iter().map(|agent| agent.id.to_string()).collect();
                let what = format!("{} archived agents have the name `{name}`", several.len());
                let next = format!("use one of their ids: {}", ids.join(", "));
                Err(Error::new(Kind::Conflict, what).next(next))
            }
        }
    }

    /// The id of an agent, archived or not.
    pub async fn find_any(self: &Arc<Self>, name: &str) -> Result<AgentId> {
        match self.find(name).await {
            Err(error) if error.kind == Kind::NotFound => {
                let removed = self.archived_id(name).await?;
                removed.ok_or(error)
            }
            found => found,
        }
    }

    /// The archived agent with this name; if there is none, the active one.
    pub async fn archived(self: &Arc<Self>, name: &str) -> Result<AgentHandle> {
        match self.archived_id(name).await? {
            Some(agent) => self.handle(agent).await,
            None => self.any(name).await,
        }
    }

    /// The agent that has this name as an alias. If another agent takes the name, it loses the alias.
    pub async fn alias_of(self: &Arc<Self>, given: &str) -> Result<Option<AgentRef>> {
        let name = canonical(given);
        let found = self.store.find(&name).await;
        let Some(holder) = found? else {
            return Ok(None);
        };
        let holder = self.reference(holder).await;
        Ok(Some(holder).filter(|holder| holder.name.as_deref() != Some(&name)))
    }

    /// An agent's id and its current name.
    pub async fn reference(self: &Arc<Self>, id: AgentId) -> AgentRef {
        let name = match self.handle(id).await {
            Ok(handle) => Some(handle.lock().await.state.name.clone()),
            Err(_) => None,
        };
        AgentRef { id, name }
    }

    pub async fn any(self: &Arc<Self>, name: &str) -> Result<AgentHandle> {
        self.handle(self.find_any(name).await?).await
    }

    pub async fn named(self: &Arc<Self>, name: &str) -> Result<AgentHandle> {
        self.handle(self.find(name).await?).await
    }

    /// The same for a request that changes the agent: an archived one, which is found by its id, is refused.
    pub async fn active(self: &Arc<Self>, name: &str) -> Result<AgentHandle> {
        let handle = self.named(name).await?;
        handle.lock().await.check_active()?;
        Ok(handle)
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
}
