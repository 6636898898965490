//! Agents that a command removes because of what they are, not by their names.

use crate::ask;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::render::table::{Head, table};
use crate::render::{line_of, time, word};
use agentd_client::Client;
use agentd_client::api::{AgentLine, List};
use agentd_core::event::Mode;
use agentd_core::state::Phase;
use agentd_core::time::Timestamp;
use agentd_daemon::clock;
use std::time::Duration;

/// How many agents are requested at once.
const PAGE: usize = 500;

/// How many agents are listed with their titles: reading one takes longer than listing it.
const TITLED: usize = 100;

/// Which agents are meant. Subagents are never among them: they are archived with the agent that started them.
#[derive(Clone, Debug)]
pub struct Selection {
    pub mode: Option<Mode>,
    pub phases: &'static [Phase],
    /// Only agents that were last used so long ago.
    pub unused_for: Option<Duration>,
    pub archived: bool,
}

impl Selection {
    /// The agents, the longest unused first.
    pub async fn find(&self, client: &Client) -> Result<Vec<AgentLine>, Error> {
        let now = clock::now();
        let mut list = List {
            mode: self.mode,
            archived: self.archived,
            limit: Some(PAGE),
            ..List::default()
        };
        let mut found = Vec::new();
        loop {
            let page = client.agents(&list).await?;
            let meant = page
                .agents
                .into_iter()
                .filter(|agent| self.means(agent, now));
            found.extend(meant);
            match page.next {
                Some(next) => list.after = Some(next),
                None => break,
            }
        }
        found.sort_by_key(|agent| agent.updated_at);
        for agent in found.iter_mut().take(TITLED) {
            // An agent that cannot be read is listed without its title.
            let shown = client.agent(&agent.id.to_string()).await.ok();
            agent.title = shown.and_then(|shown| shown.title);
        }
        Ok(found)
    }

    fn means(&self, agent: &AgentLine, now: Timestamp) -> bool {
        let unused = now.since(agent.updated_at);
        let is_old = self
            .unused_for
            .is_none_or(|least| unused >= time::millis(least));
        is_old && agent.parent.is_none() && self.phases.contains(&agent.phase)
    }
}

/// A table of the agents.
pub fn lines(agents: &[AgentLine], width: Option<u16>) -> Vec<String> {
    let now = clock::now();
    let head = [
        Head::Kept("NAME"),
        Head::Kept("PHASE"),
        Head::Spare("MODE", 0),
        Head::Kept("USED"),
        Head::Spare("TITLE", 1),
    ];
    let rows = agents.iter().map(|agent| {
        vec![
            agent.name.clone(),
            agent.phase.name().to_owned(),
            word(agent.mode),
            time::ago(agent.updated_at, now),
            agent.title.as_deref().map(line_of).unwrap_or_default(),
        ]
    });
    table(&head, &rows.collect::<Vec<_>>(), width)
}

/// Shows the agents and asks for confirmation. Without a terminal nothing is done.
pub async fn confirm(
    agents: &[AgentLine],
    what: &str,
    question: &str,
    out: &mut Output,
) -> Result<(), Error> {
    out.aside(what)?;
    for line in lines(agents, out.width()) {
        out.aside(format_args!("  {line}"))?;
    }
    let refused = || Error::new(Exit::Refused, "nothing was changed");
    if !ask::is_possible() {
        let error = refused().because("confirmation needs a terminal");
        return Err(error.next("pass --yes"));
    }
    let answer = ask::line(&format!("{question} [y/N]")).await?;
    match answer.as_deref() {
        Some("y" | "Y" | "yes") => Ok(()),
        _ => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::{AgentRef, Process, ProcessState, Usage};
    use agentd_core::id::AgentId;
    use uuid::Uuid;

    fn line(phase: Phase, at: i64) -> AgentLine {
        AgentLine {
            id: AgentId::new(Uuid::nil()),
            name: "a".to_owned(),
            mode: Mode::Oneshot,
            phase,
            process: Process {
                state: ProcessState::Asleep,
                pid: None,
            },
            generation: 1,
            conversations: 1,
            usage: Usage::default(),
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(at),
            archived: false,
            parent: None,
            title: None,
            model: None,
            provider: None,
            cwd: None,
            summary: None,
            next_due: None,
            no_tools: None,
            approvals: Vec::new(),
        }
    }

    #[test]
    fn agents_that_work_or_have_a_parent_are_left_alone() {
        let selection = Selection {
            mode: None,
            phases: &[Phase::Idle],
            unused_for: Some(Duration::from_secs(10)),
            archived: false,
        };
        let now = Timestamp::from_millis(20_000);
        assert!(selection.means(&line(Phase::Idle, 10_000), now));
        assert!(!selection.means(&line(Phase::Idle, 10_001), now));
        assert!(!selection.means(&line(Phase::Running, 0), now));
        let child = AgentLine {
            parent: Some(AgentRef {
                id: AgentId::new(Uuid::nil()),
                name: None,
            }),
            ..line(Phase::Idle, 0)
        };
        assert!(!selection.means(&child, now));
        // A clock that was set back.
        assert!(!selection.means(&line(Phase::Idle, 50_000), now));
    }
}
