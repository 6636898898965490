//! The story, one file per step.

mod closing;
mod create;
mod go_on;
mod kill;
mod look;
mod reset;
mod undo;

use super::claims::Claims;
use super::driver::{Driver, FlushBytes, Witness};
use super::evidence::{Verdict, is_so};
use super::pen::failed;
use crate::clock;
use crate::error::Error;
use crate::output::{HEADING, Output};
use agentd_core::event::After;
use agentd_core::id::{AgentId, Seq, TryId};
use agentd_core::request::Request;
use agentd_store::{Options, SqliteStore, Store as _};
use std::path::Path;
use std::time::Instant;

/// As much of a stream as a crash may cost: what an agent's own process would allow.
const FLUSH: FlushBytes = FlushBytes(2048);

pub async fn tell(out: &mut Output, home: &Path) -> Result<(), Error> {
    let begin = Instant::now();
    out.line(format_args!(
        "{HEADING}agentd demo{HEADING:#}: an agent, a kill -9, and nothing lost"
    ))?;
    out.line("Offline, with a scripted model, in a temporary folder that is removed at the end.")?;
    let mut claims = Claims::new(out);
    let agent = AgentId::new(clock::new_id());

    let created = create::tell(&mut claims, home, agent).await?;
    let told = kill::tell(&mut claims, home, agent, created).await?;

    let store = open(home)?;
    let cut = look::tell(&mut claims, &store, agent, &told).await?;
    let driver = go_on::tell(&mut claims, &store, agent, &cut).await?;
    let left = reset::tell(&mut claims, &store, driver).await?;
    let request_bytes = undo::tell(&mut claims, &store, agent, &left).await?;
    let figures = closing::Figures {
        acknowledged: told.acknowledged.len(),
        kept_bytes: cut.text.len(),
        request_bytes,
        seconds: begin.elapsed().as_secs_f64(),
    };
    closing::tell(&mut claims, &store, agent, &figures).await
}

fn open(home: &Path) -> Result<SqliteStore, Error> {
    SqliteStore::open(Options::new(home)).map_err(failed)
}

/// A new process for the agent, as far as the journal can tell.
async fn take_over(
    store: &SqliteStore,
    agent: AgentId,
    after: After,
) -> Result<Driver<Requests>, Error> {
    Driver::take_over(store.clone(), agent, after, FLUSH, Requests::default()).await
}

/// Remembers the requests that left.
#[derive(Default)]
struct Requests(Vec<Request>);

impl Witness for Requests {
    fn committed(&mut self, _first: Seq, _last: Seq) -> Result<(), Error> {
        Ok(())
    }

    fn kept(&mut self, _request: TryId, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    fn sending(&mut self, request: &Request) {
        self.0.push(request.clone());
    }
}

/// What `agentd verify` would say.
async fn verified(store: &SqliteStore) -> Result<Verdict, Error> {
    let report = store.verify(None).await.map_err(failed)?;
    Ok(is_so(
        report.is_clean() && report.quarantined == 0,
        format!("{} events", report.events),
        format!("{report:?}"),
    ))
}
