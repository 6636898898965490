//! The agents that the writer keeps folded between appends.

use super::Thread;
use super::failure::{Failure, contained};
use crate::error::Error;
use crate::sqlite::entry::{self, Care, Entry};
use crate::sqlite::readers::Databases;
use crate::store::Fence;
use agentd_core::id::AgentId;
use std::collections::hash_map::Entry as Known;

impl Thread {
    /// The agent as it is now, folded. Does not check a fence.
    pub(super) fn agent(
        &mut self,
        databases: &Databases,
        agent: AgentId,
    ) -> Result<&mut Entry, Failure> {
        match self.entries.entry(agent) {
            Known::Occupied(known) => Ok(known.into_mut()),
            Known::Vacant(unknown) => {
                let entry = entry::read(databases, agent, Care::Tail).map_err(contained)?;
                Ok(unknown.insert(entry.ok_or(Error::NoSuchAgent { agent })?))
            }
        }
    }

    /// The same for the owner of this fence. An error if the fence is stale or the journal is damaged.
    pub(super) fn entry(
        &mut self,
        databases: &Databases,
        fence: Fence,
    ) -> Result<&mut Entry, Failure> {
        let agent = fence.agent;
        let entry = self.agent(databases, agent)?;
        if entry.epoch != fence.epoch {
            return Err(Failure::Refused(Error::StaleFence {
                agent,
                held: fence.epoch,
                current: entry.epoch,
            }));
        }
        if let Some(damage) = &entry.damage {
            return Err(Failure::Refused(Error::of_damage(agent, damage)));
        }
        Ok(entry)
    }
}
