//! The tools of MCP servers: looked at once per turn, before its first request, so that the tools do not change within
//! a turn.

use super::live::Looked;
use super::plan::Move;
use super::{Effect, Machine};
use crate::event::{Body, Context, McpListed, Tool};
use crate::mcp::{Seen, Trouble, tool_names};

impl Machine {
    /// What comes before the first request of a turn: a look at the servers.
    pub(super) fn mcp_first(&mut self) -> Option<Move> {
        if self.policy.mcp.is_empty() {
            return None;
        }
        let turn = self.agent.turn.as_ref();
        // A turn that another process began has its tools, if it has made a request.
        let has_asked = turn.is_some_and(|turn| turn.iterations > 0 || turn.failures > 0);
        if has_asked && self.window.context().is_some() {
            return None;
        }
        match self.live.turn.mcp {
            Looked::Done => None,
            Looked::Asked => Some(Move::Wait),
            Looked::NotYet => {
                self.live.turn.mcp = Looked::Asked;
                let servers = self.policy.mcp.iter();
                let unknown = servers.filter(|server| self.window.mcp_list(server).is_none());
                let unknown = unknown.map(|server| server.name.clone()).collect();
                Some(Move::Do(vec![Effect::ListMcp { unknown }]))
            }
        }
    }

    /// What the servers offer now. A server that is not mentioned has nothing new.
    pub(super) fn mcp_seen(&mut self, seen: Vec<Seen>) {
        // The turn may have ended meanwhile.
        if self.live.turn.mcp != Looked::Asked {
            return;
        }
        self.live.turn.mcp = Looked::Done;
        let news = seen.into_iter().filter_map(|seen| self.mcp_news(seen));
        let news: Vec<Body> = news.map(Body::from).collect();
        self.live.outbox.backlog.extend(news);
    }

    fn mcp_news(&self, seen: Seen) -> Option<McpListed> {
        let mut servers = self.policy.mcp.iter();
        let server = servers.find(|it| it.name == seen.server && it.settings == seen.settings)?;
        let known = self.window.mcp_list(server);
        let told = self.window.mcp_problem(server);
        match seen.outcome {
            Ok(offer) => {
                let is_known = known.is_some_and(|known| {
                    known.tools == offer.tools && known.life_cycle == Some(offer.life_cycle)
                });
                (!is_known || told.is_some()).then_some(McpListed {
                    server: seen.server,
                    settings: seen.settings,
                    life_cycle: Some(offer.life_cycle),
                    tools: offer.tools,
                    problem: None,
                })
            }
            // The list that is known still counts. A problem is told once: its text may differ at each attempt.
            Err(trouble) => {
                let is_better =
                    |told| trouble != Trouble::Late && told == Trouble::Late.text(&seen.server);
                let is_new = known.is_none() && told.is_none_or(is_better);
                is_new.then(|| McpListed {
                    problem: Some(trouble.text(&seen.server)),
                    server: seen.server,
                    settings: seen.settings,
                    life_cycle: None,
                    tools: Vec::new(),
                })
            }
        }
    }

    /// The context that the next request should have: the policy's, with the tools of servers whose lists are known.
    pub(super) fn wanted_context(&self) -> Context {
        let mut wanted = self.policy.context.clone();
        let servers = self.policy.mcp.iter();
        let lists = servers.filter_map(|server| self.window.mcp_list(server));
        wanted.tools.extend(lists.flat_map(declarations));
        wanted
    }
}

/// The tools of a server, as they are declared to the model.
fn declarations(list: &McpListed) -> impl Iterator<Item = Tool> {
    let names = tool_names(&list.server, list.tools.iter().map(|it| it.name.as_str()));
    let tools = names.into_iter().zip(&list.tools);
    tools.map(|(name, tool)| Tool {
        name,
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
    })
}
