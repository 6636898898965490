//! The event stream of the agent, which is opened again after the daemon was gone.

use super::Session;
use crate::connect::{self, Connection};
use crate::error::Error;
use crate::follow::{Follow, Seen};
use agentd_client::api::EventQuery;
use futures_util::StreamExt as _;
use futures_util::stream::LocalBoxStream;

pub(super) type Events = LocalBoxStream<'static, Result<Seen, Error>>;

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
            .into_stream(connection)
            .boxed_local()
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

/// Logs to stderr: stdout belongs to the protocol.
pub fn log(error: &Error) {
    use std::io::Write as _;
    let text = crate::terminal::uncoloured(&error.to_string());
    let _closed = writeln!(std::io::stderr(), "{text}");
}
