//! The process that is killed: it works for the agent as fast as it can, and tells on its standard
//! output what the store has acknowledged.

use super::driver::{Driver, FlushBytes, Witness};
use super::model;
use super::telling::Telling;
use crate::error::Error;
use agentd_core::event::After;
use agentd_core::id::{AgentId, Seq, TryId};
use agentd_core::request::Request;
use agentd_store::{Options, SqliteStore};
use std::io::{StdoutLock, Write as _};
use std::path::Path;

/// Short turns before the long one.
pub const TURNS: u64 = 12;
/// Far more than it gets to say before it is killed.
pub const COUNT_TO: u64 = 20_000;

/// Every piece at once: a long way to fall.
const FLUSH: FlushBytes = FlushBytes(1);

pub async fn work(home: &Path, agent: AgentId) -> Result<(), Error> {
    let store = SqliteStore::open(Options::new(home)).map_err(super::pen::failed)?;
    let witness = Teller {
        out: std::io::stdout().lock(),
    };
    let mut driver = Driver::take_over(store, agent, After::Start, FLUSH, witness).await?;
    for n in 0..TURNS {
        let question = model::ask_for_product(17 + 3 * n, 23 + 2 * n);
        driver.prompt(&question).await?;
    }
    driver.prompt(&model::ask_to_count(COUNT_TO)).await
}

struct Teller<'a> {
    out: StdoutLock<'a>,
}

impl Teller<'_> {
    /// Whole lines only, each at once. When nobody reads them any more, the work ends too.
    fn tell(&mut self, telling: Telling) -> Result<(), Error> {
        self.out
            .write_all(format!("{telling}\n").as_bytes())
            .and_then(|()| self.out.flush())
            .map_err(|error| Error::of_output(&error))
    }
}

impl Witness for Teller<'_> {
    fn committed(&mut self, first: Seq, last: Seq) -> Result<(), Error> {
        self.tell(Telling::Committed { first, last })
    }

    fn kept(&mut self, request: TryId, bytes: u64) -> Result<(), Error> {
        self.tell(Telling::Kept { request, bytes })
    }

    fn sending(&mut self, _request: &Request) {}
}
