//! The event stream of the agent: opened again after the daemon was gone, and that of a fork if another client moved the agent.

use super::{Session, log};
use crate::acp::open;
use crate::acp::servers::{self, Servers};
use crate::connect::{self, Connection};
use crate::error::Error;
use crate::follow::{Follow, Seen};
use agentd_client::api::EventQuery;
use agentd_core::event::ResetSource;
use futures_util::StreamExt as _;
use futures_util::stream::LocalBoxStream;

pub(super) type Events = LocalBoxStream<'static, Result<Seen, Error>>;

/// Whether the session has another agent now.
pub(super) enum Forked {
    Yes,
    No,
}

impl Session {
    pub(super) async fn follow(&self) -> Option<Events> {
        match Connection::open().await {
            Ok(connection) => Some(self.events(connection)),
            Err(error) => {
                log(&error);
                None
            }
        }
    }

    /// Follows again once a daemon listens. None is started: the user may have stopped it.
    pub(super) async fn follow_again(&self) -> Option<Events> {
        match connect::listens(self.shared.client.socket()) {
            Ok(true) => self.follow().await,
            _ => None,
        }
    }

    fn events(&self, connection: Connection) -> Events {
        let query = EventQuery {
            after: self.after.0,
            ..EventQuery::default()
        };
        Follow::new(self.target.id.as_str(), query)
            .reporting_breaks()
            .into_stream(connection)
            .boxed_local()
    }

    /// The daemon cannot be reached and is not started again, or the agent is gone.
    pub(super) fn lost(&mut self, error: &Error) {
        log(error);
        self.follows_again = error.is_unavailable();
        self.fail_all(|| {
            Error::from(agentd_client::Problem::new(
                agentd_client::Kind::Unavailable,
                "the connection to the daemon was lost",
            ))
            .because("accepted prompts are not lost, and are answered when a daemon runs")
            .next("`agentd daemon start`")
        });
    }

    /// Continues the conversation of the session in an agent of its own, if another one is current.
    pub(super) async fn fork_if_left(&mut self) -> Result<Forked, Error> {
        if !self.is_left().await {
            return Ok(Forked::No);
        }
        let found = open::continued(&self.shared.client, self.reference).await?;
        self.is_left = false;
        let (reference, agent) = (found.reference(), found.agent);
        if reference == self.reference {
            // It is current again.
            return Ok(Forked::No);
        }
        self.leave();
        self.reference = reference;
        self.target.id = reference.agent.to_string();
        self.after = agent.head;
        self.lend_again().await;
        self.look_at_agent();
        self.load_spec();
        let text = format!(
            "Another client began a new conversation, so this one continues in the agent {}.",
            agent.name
        );
        self.tell(&text);
        Ok(Forked::Yes)
    }

    /// The agent has these MCP servers of the editor until the session is closed, or the editor is gone.
    pub async fn lend(&mut self, servers: Servers) {
        self.servers = servers;
        self.lend_again().await;
    }

    /// Lends the servers to the agent that the session has now.
    async fn lend_again(&mut self) {
        let (client, usable) = (&self.shared.client, self.servers.usable.clone());
        self.lending = servers::lend(client, &self.target.id, usable).await;
    }

    /// Ends what belongs to the agent that is no longer followed: the events that would end it are not seen.
    fn leave(&mut self) {
        self.close_all();
        self.questions.withdraw_all();
        self.own_moves.clear();
        self.reset_by = ResetSource::User;
        self.translator.calls.forget();
    }
}

/// The next event; never without a stream.
pub(super) async fn next(events: &mut Option<Events>) -> Result<Seen, Error> {
    let seen = match events {
        Some(events) => events.next().await,
        None => None,
    };
    match seen {
        Some(seen) => seen,
        None => std::future::pending().await,
    }
}
