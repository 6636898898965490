//! What MCP servers offer, and what the model was told about servers that cannot be used.

use super::{Entry, Located, Window};
use crate::event::{Event, McpListed, Position};
use crate::mcp::Known;

impl Window {
    /// The newest list of a server, if it was made with the present settings.
    pub fn mcp_list(&self, server: &Known) -> Option<&McpListed> {
        let listed = &self.mcp_lists.get(&server.name)?.value;
        (listed.settings == server.settings).then_some(listed)
    }

    /// All lists, whatever the settings were.
    pub fn mcp_lists(&self) -> impl Iterator<Item = &McpListed> {
        self.mcp_lists.values().map(|list| &list.value)
    }

    /// What was told last about a server that cannot be used with the present settings. A later list takes it back.
    pub fn mcp_problem(&self, server: &Known) -> Option<&str> {
        let told = &self.mcp_problems.get(&server.name)?.value;
        let told = Some(told).filter(|told| told.settings == server.settings);
        told?.problem.as_deref()
    }

    pub(super) fn mcp_listed(&mut self, event: &Event, body: &McpListed) {
        self.keep_mcp(event.position(), body);
        if let Some(text) = &body.problem {
            self.awaits = true;
            self.push(event, event.position(), Entry::Notice(text.clone()));
        }
    }

    /// Restores what an event has recorded.
    pub(super) fn keep_mcp(&mut self, source: Position, body: &McpListed) {
        let value = body.clone();
        let located = Located { source, value };
        match body.problem {
            Some(_) => self.mcp_problems.insert(body.server.clone(), located),
            None => {
                self.mcp_problems.remove(&body.server);
                self.mcp_lists.insert(body.server.clone(), located)
            }
        };
    }
}
