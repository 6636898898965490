//! The tools of MCP servers: looked at once per turn, before its first request, so that the tools do not change within
//! a turn.

use super::live::{Looked, Looks};
use super::plan::Move;
use super::{Effect, Machine};
use crate::event::{Body, Context, McpListed, Tool};
use crate::mcp::{Seen, Trouble, server_of, tool_names};

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
                self.live.looks.newest += 1;
                let look = self.live.looks.newest;
                Some(Move::Do(vec![Effect::ListMcp { look, unknown }]))
            }
        }
    }

    /// What the servers offer now. A server that is not mentioned has nothing new. What a look of an earlier turn found
    /// is kept for the next one: the server will not mention it again.
    pub(super) fn mcp_seen(&mut self, look: u64, seen: Vec<Seen>) {
        let is_awaited = look == self.live.looks.newest && self.live.turn.mcp == Looked::Asked;
        if !is_awaited {
            for seen in seen.into_iter().filter(|seen| seen.outcome.is_ok()) {
                self.live.looks.keep(look, seen);
            }
            return;
        }
        self.live.turn.mcp = Looked::Done;
        let late = self.live.looks.take(look, &seen);
        // A server with a list is not also one that failed.
        let is_late = |seen: &Seen| late.iter().any(|it| it.server == seen.server);
        let seen: Vec<Seen> = seen
            .into_iter()
            .filter(|seen| seen.outcome.is_ok() || !is_late(seen))
            .collect();
        let news = late.into_iter().chain(seen);
        let news = news.filter_map(|seen| self.mcp_news(seen));
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

    /// Whether a tool may run beside others: the user has marked it as one that changes nothing. The list that declares
    /// the tool says which one is meant by its name.
    pub(super) fn is_parallel(&self, tool: &str) -> bool {
        let is_marked = || {
            let mut servers = self.policy.mcp.iter();
            let server = servers.find(|it| server_of(tool) == Some(it.name.as_str()))?;
            let list = self.window.mcp_list(server)?;
            let own: Vec<&str> = list.tools.iter().map(|it| it.name.as_str()).collect();
            let names = tool_names(&list.server, own.iter().copied());
            let at = names.iter().position(|name| name == tool)?;
            Some(server.read_only.contains(own[at]))
        };
        self.policy.parallel.contains(tool) || is_marked().unwrap_or(false)
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

impl Looks {
    /// Keeps what a look found that no turn waits for. Of two looks the newer one counts.
    fn keep(&mut self, look: u64, seen: Seen) {
        let kept = self.late.get(&seen.server).map(|(look, _)| *look);
        let recorded = self.recorded.get(&seen.server).copied();
        if kept.max(recorded).is_none_or(|newest| newest < look) {
            self.late.insert(seen.server.clone(), (look, seen));
        }
    }

    /// What is to be recorded besides what `look` has `seen` itself.
    fn take(&mut self, look: u64, seen: &[Seen]) -> Vec<Seen> {
        let mut late = std::mem::take(&mut self.late);
        for seen in seen.iter().filter(|seen| seen.outcome.is_ok()) {
            late.remove(&seen.server);
            self.recorded.insert(seen.server.clone(), look);
        }
        for (server, (look, _)) in &late {
            self.recorded.insert(server.clone(), *look);
        }
        late.into_values().map(|(_, seen)| seen).collect()
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
