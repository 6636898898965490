//! Finds, creates, forks, lists and removes the conversations that sessions are.

use super::conversation_ref::ConversationRef;
use crate::described::{Described, name_of};
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::{keys, providers};
use agent_client_protocol::v1::schema::{
    ListSessionsRequest, ListSessionsResponse, SessionId, SessionInfo,
};
use agentd_client::api::{Agent, Archive, Conversation, Create, Fork, List, Reset, time};
use agentd_client::{Client, Error as ClientError, Kind};
use agentd_core::event::Mode;
use agentd_core::id::{AgentId, OpId};
use agentd_core::time::Timestamp;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Names that are tried for a new agent, before one that cannot be taken.
const TRIES: usize = 20;
/// Agents of one page of the list of sessions.
const PAGE: usize = 50;
/// How often a fork whose conversation was sealed as well is forked again.
const FORKS: usize = 16;
/// The ordinal of an agent's first conversation.
const FIRST: &str = "1";
/// Time that a running turn gets to end before a reset.
const GRACE_MS: u64 = 15_000;

/// A new agent in this directory.
pub async fn create(client: &Client, cwd: PathBuf) -> Result<Agent, Error> {
    let catalog = providers::catalog()?;
    let spec = Described::in_dir(cwd.clone());
    // Standard output belongs to the protocol: this writes to standard error only.
    let spec = spec.spec(&catalog, &mut Output::stdout()).await?;
    let env = providers::env(&catalog, &spec.passed_env());
    let base = name_of(&cwd.to_string_lossy());
    for n in 1..=TRIES + 1 {
        let name = match n {
            1 => base.clone(),
            n if n <= TRIES => format!("{base}-{n}"),
            _ => format!("{base}-{}", &Uuid::now_v7().simple().to_string()[20..]),
        };
        let create = Create {
            name: Some(name),
            mode: Some(Mode::Persistent),
            spec: spec.clone(),
            env: env.clone(),
            ..Create::default()
        };
        match client.create(&create).await {
            Err(ClientError::Problem(problem)) if problem.kind == Kind::Conflict && n <= TRIES => {}
            created => return Ok(created?.agent),
        }
    }
    Err(
        Error::new(Exit::Refused, "no name was free for a new agent")
            .next("`agentd list` shows the agents; `agentd rm NAME` archives one"),
    )
}

/// A new conversation of this agent; its current one if that is empty.
pub async fn begin(client: &Client, name: &str) -> Result<Agent, Error> {
    let agent = client.agent(name).await?;
    let is_empty = agent.conversation.as_ref().is_some_and(|it| it.turns == 0)
        && agent.queued == 0
        && agent.turn.is_none();
    let id = agent.id.to_string();
    keys::merge_env(client, &id).await?;
    if is_empty {
        return Ok(agent);
    }
    let reset = Reset {
        grace_ms: Some(GRACE_MS),
        ..Reset::default()
    };
    client.reset(&id, &reset).await?;
    Ok(client.agent(&id).await?)
}

/// The current conversation of an agent.
pub fn current(agent: &Agent) -> Result<ConversationRef, Error> {
    let current = agent.conversation.as_ref().map(|current| ConversationRef {
        agent: agent.id,
        conversation: current.id,
    });
    current.ok_or_else(|| {
        Error::new(Exit::NotFound, "the agent has no conversation yet")
            .next(format!("`agentd send {} PROMPT` begins one", agent.name))
    })
}

/// A conversation that can be continued.
pub struct Found {
    pub agent: Agent,
    pub conversation: Conversation,
}

impl Found {
    pub const fn reference(&self) -> ConversationRef {
        ConversationRef {
            agent: self.agent.id,
            conversation: self.conversation.id,
        }
    }
}

/// The conversation of a session, or its fork if it is sealed.
pub async fn find(client: &Client, id: &SessionId) -> Result<Found, Error> {
    let reference: ConversationRef = id.0.parse().map_err(|()| unknown(id))?;
    continued(client, reference).await
}

/// The conversation, or its fork if it is not its agent's current one. The fork's op is derived from the conversation, so the
/// same one always leads to the same fork.
pub async fn continued(client: &Client, mut reference: ConversationRef) -> Result<Found, Error> {
    for _ in 0..FORKS {
        let found = at(client, reference).await?;
        if found.conversation.current {
            keys::merge_env(client, &reference.agent.to_string()).await?;
            return Ok(found);
        }
        reference = fork_sealed(client, reference).await?;
    }
    Err(
        Error::new(Exit::Refused, "the conversation was forked too often")
            .next("start a new session"),
    )
}

async fn at(client: &Client, reference: ConversationRef) -> Result<Found, Error> {
    let name = reference.agent.to_string();
    let agent = client.agent(&name).await?;
    let which = reference.conversation.to_string();
    let conversation = client.conversation(&name, &which).await?.conversation;
    Ok(Found {
        agent,
        conversation,
    })
}

fn unknown(id: &SessionId) -> Error {
    Error::new(Exit::NotFound, format!("there is no session {id}"))
        .next("list the sessions, or start a new one")
}

/// The conversation that the fork of a sealed one began with. The fork may have been reset since.
async fn fork_sealed(
    client: &Client,
    reference: ConversationRef,
) -> Result<ConversationRef, Error> {
    let op = format!("acp-{reference}").parse().ok();
    let agent = fork(client, reference, op).await?.id;
    let first = client.conversation(&agent.to_string(), FIRST).await?;
    Ok(ConversationRef {
        agent,
        conversation: first.conversation.id,
    })
}

/// A new agent that continues from the end of a conversation.
pub async fn fork(
    client: &Client,
    reference: ConversationRef,
    op: Option<OpId>,
) -> Result<Agent, Error> {
    let name = reference.agent.to_string();
    let fork = Fork {
        conversation: Some(reference.conversation),
        op,
        env: keys::env_of(client, &name).await?,
        ..Fork::default()
    };
    let forked = client.fork(&name, &fork).await?;
    Ok(client.agent(&forked.agent.id.to_string()).await?)
}

/// A page of the sessions, those that were used last first.
pub async fn list(
    client: &Client,
    request: &ListSessionsRequest,
) -> Result<ListSessionsResponse, Error> {
    let list = List {
        words: true,
        limit: Some(PAGE),
        after: request.cursor.clone(),
        ..List::default()
    };
    let page = client.agents(&list).await?;
    let mut sessions = Vec::new();
    for agent in &page.agents {
        let Some(cwd) = agent.cwd.as_deref().filter(|_| agent.parent.is_none()) else {
            continue;
        };
        if request.cwd.as_deref().is_some_and(|it| !is_same(it, cwd)) {
            continue;
        }
        // An agent that was removed meanwhile has no sessions.
        let Ok(all) = client.conversations(&agent.id.to_string()).await else {
            continue;
        };
        let shown = all.conversations.iter().rev();
        let shown = shown.filter(|it| it.current || (it.turns > 0 && !it.purged));
        sessions.extend(shown.map(|it| info(agent.id, cwd, it, agent.updated_at)));
    }
    Ok(ListSessionsResponse::new(sessions).next_cursor(page.next))
}

fn is_same(wanted: &Path, cwd: &str) -> bool {
    let whole = wanted.canonicalize();
    whole.as_deref().unwrap_or(wanted) == Path::new(cwd)
}

fn info(agent: AgentId, cwd: &str, it: &Conversation, updated_at: Timestamp) -> SessionInfo {
    let reference = ConversationRef {
        agent,
        conversation: it.id,
    };
    let at = if it.current { updated_at } else { it.began_at };
    SessionInfo::new(reference, cwd)
        .title(it.title.clone())
        .updated_at(time::rfc3339(at))
}

/// Archives the agent of a session, as `agentd rm` does. A session that does not exist is gone already.
pub async fn remove(client: &Client, id: &SessionId) -> Result<(), Error> {
    let reference: ConversationRef = id.0.parse().map_err(|()| unknown(id))?;
    let found = match at(client, reference).await {
        Ok(found) => found,
        Err(error) if error.failure().kind == "not_found" => return Ok(()),
        Err(error) => return Err(error),
    };
    let name = &found.agent.name;
    if !found.conversation.current {
        let number = found.conversation.ordinal;
        let what = format!("the session is conversation {number} of {name}, which has a newer one");
        return Err(Error::new(Exit::Refused, what).next(format!(
            "delete the session of its current conversation to archive {name}, or delete the text with \
             `agentd purge {name} --conversation {number}`"
        )));
    }
    let reason = Some("deleted in an editor".to_owned());
    client
        .archive(&reference.agent.to_string(), &Archive { reason })
        .await?;
    Ok(())
}
