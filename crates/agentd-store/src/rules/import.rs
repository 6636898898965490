//! What an import may write, and what it adds.

use super::Journals;
use crate::chain::{Hash, hex};
use crate::damage::Damage;
use crate::error::{Error, Result};
use crate::export::Checked;
use crate::rechain::Rechain;
use crate::store::Import;
use crate::stored::StoredEvent;
use agentd_core::event::{
    AgentHeld, AgentImported, AgentRenamed, Body, HoldReason, Kind, NewEvent, Origin,
};
use agentd_core::id::{AgentId, Seq};
use agentd_core::state::AgentState;

/// The agent that this op has already imported, under its own id or another one.
pub fn made_before(
    journals: &impl Journals,
    agent: AgentId,
    order: &Import,
) -> Result<Option<AgentId>> {
    let Some(operation) = &order.operation else {
        return Ok(None);
    };
    let copy = order.under.as_ref().map(|under| under.id);
    for agent in [Some(agent), copy].into_iter().flatten() {
        if !journals.is_listed(agent)? {
            continue;
        }
        let (state, _) = journals.state(agent)?;
        match state.made(operation.op, operation.verb, &operation.digest) {
            Ok(Some(_)) => return Ok(Some(agent)),
            Ok(None) => {}
            Err(_) => {
                let op = Box::new(operation.op);
                return Err(Error::OtherOp { op });
            }
        }
    }
    Ok(None)
}

/// How the journal of the file gets another id, and the event that records its origin. None if it keeps its own, because
/// its agent is not stored here or the import names no other id.
pub fn copied(
    journals: &impl Journals,
    file: &Checked,
    order: &Import,
) -> Result<Option<(Rechain, AgentImported)>> {
    match &order.under {
        Some(under) if journals.is_listed(file.agent)? => {
            let (seq, chain) = file.last;
            let origin = AgentImported {
                agent: file.agent,
                seq,
                chain: hex(&chain),
            };
            Ok(Some((Rechain::new(file.agent, under.id), origin)))
        }
        _ => Ok(None),
    }
}

/// Why the file contains a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is the exported agent.
    Exported,
    /// A branch of the exported agent begins in it.
    Ancestor,
}

/// What is stored of an agent before the import.
#[derive(Clone, Copy, Debug)]
pub struct Existing {
    /// The agent itself is stored, not only a prefix of its journal as an ancestor.
    pub is_listed: bool,
    pub head: Seq,
}

/// The journal that is being written.
pub struct Target {
    agent: AgentId,
    /// The last event that existed before. Up to it, the events of the file must be the stored ones.
    had: Seq,
    /// The agent may have an owner: no event is added to its journal.
    lives: bool,
}

/// What is done with an event of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Write,
    /// The same event is stored already.
    Known,
}

impl Target {
    /// An error if the exported agent is already stored here. An agent that is only stored as an ancestor may be
    /// completed.
    pub const fn new(agent: AgentId, role: Role, existing: Option<Existing>) -> Result<Self> {
        let (had, lives) = match existing {
            Some(existing) => (existing.head, existing.is_listed),
            None => (Seq::ZERO, false),
        };
        if lives && matches!(role, Role::Exported) {
            return Err(Error::AgentExists { agent });
        }
        Ok(Self { agent, had, lives })
    }

    /// `chain_here` reads the checksum of the stored event with the same number.
    pub fn admit(
        &self,
        event: &StoredEvent,
        chain_here: impl FnOnce() -> Result<Option<Hash>>,
    ) -> Result<Admission> {
        let exists = Error::AgentExists { agent: self.agent };
        if event.seq <= self.had {
            if chain_here()? == Some(event.chain) {
                return Ok(Admission::Known);
            }
            return Err(exists);
        }
        if self.lives {
            return Err(exists);
        }
        // An unknown kind must not be imported silently.
        let known = Kind::check(&event.kind, event.version);
        known.map_err(|error| Error::BadExport(error.to_string()))?;
        Ok(Admission::Write)
    }
}

/// The origin of the conversation that begins with this event, if the conversation is a branch.
pub fn branch_of(event: &StoredEvent) -> Option<Origin> {
    let body = event.body.as_ref()?;
    if event.kind != Kind::ConversationBegan.name() {
        return None;
    }
    match Body::from_json(&event.kind, event.version, body) {
        Ok(Body::ConversationBegan(began)) => began.from,
        _ => None,
    }
}

/// The imported events must fold.
pub fn check_readable(agent: AgentId, damage: Option<&Damage>) -> Result<()> {
    match damage {
        Some(damage) => Err(Error::BadExport(format!(
            "event {} of agent {agent} cannot be read: {}",
            damage.from, damage.reason
        ))),
        None => Ok(()),
    }
}

/// The origins of branches must exist, including their text.
pub fn check_origins(journals: &impl Journals, state: &AgentState) -> Result<()> {
    let branches = state.tree.iter().filter(|branch| !branch.purged);
    for from in branches.filter_map(|branch| branch.from) {
        let origin = match from.agent == state.id {
            true => state.tree.get(from.conversation).map(|known| known.purged),
            false => {
                let (parent, _) = journals.state(from.agent)?;
                let known = parent.tree.get(from.conversation);
                known
                    .map(|known| known.purged)
                    .filter(|_| parent.head >= from.seq)
            }
        };
        match origin {
            Some(false) => {}
            Some(true) => {
                return Err(Error::OriginPurged {
                    conversation: from.conversation,
                });
            }
            None => return Err(Error::BadExport("a branch without its origin".to_owned())),
        }
    }
    Ok(())
}

/// The events that are appended to an imported journal: its origin, its new name, the hold, and the op.
///
/// `origin` is set if the journal got another id. The hold comes after all events of the file, so that none of them can
/// end it. The op of the user who imports comes last.
pub fn added(
    state: &AgentState,
    order: Import,
    origin: Option<AgentImported>,
) -> Result<Vec<NewEvent>> {
    let Some(conversation) = state.tree.current() else {
        return Err(Error::BadExport(
            "an agent without a conversation".to_owned(),
        ));
    };
    let name = order.under.map(|under| under.name);
    let name = name.filter(|name| *name != state.name);
    let reason = HoldReason::Imported;
    let bodies = origin.map(Body::from).into_iter();
    let bodies = bodies
        .chain(name.map(|name| AgentRenamed { name }.into()))
        .chain([AgentHeld { reason }.into()])
        .chain(order.operation.map(Body::from));
    let event = |body| NewEvent {
        at: order.at,
        conversation,
        turn: None,
        body,
    };
    Ok(bodies.map(event).collect())
}

/// A name must not have the form of an id: commands would look it up as an id and find another agent or none.
pub fn check_name(state: &AgentState) -> Result<()> {
    match state.name.parse::<AgentId>() {
        Ok(_) => Err(Error::NameIsId {
            name: state.name.clone(),
        }),
        Err(_) => Ok(()),
    }
}
