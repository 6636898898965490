//! Agents: create, list, show, export and import.

use super::respond::{Answer, Body, Fault, JsonBody, Path, Query, Under, to_its_end};
use crate::daemon::Daemon;
use crate::lifecycle::create::canonical;
use crate::lifecycle::{self, ops::Asked};
use crate::problem::of_store;
use crate::view;
use agentd_client::api::{Agent, Agents, Create, Created, Held, Import, List};
use agentd_client::{Kind, Problem};
use agentd_core::event::OpVerb;
use agentd_core::spec::AgentSpec;
use agentd_store::{AgentCursor, AgentQuery, AgentSort};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Lines of a page, if the request names no limit.
const PAGE: usize = 100;
const LONGEST_PAGE: usize = 1000;

pub async fn create(
    State(daemon): State<Arc<Daemon>>,
    Query(Under { op }): Query<Under>,
    Body(body): Body<Create>,
) -> Answer<Created> {
    let done = to_its_end(async move {
        let displaced = match &body.name {
            Some(name) => daemon.alias_of(name).await?,
            None => None,
        };
        let (agent, prompt) = lifecycle::create::create(&daemon, body, op).await?;
        let handle = daemon.handle(agent).await?;
        let agent = view::named(view::agent(&daemon, &handle).await?, displaced);
        Ok(Created { agent, prompt })
    });
    Ok(JsonBody(done.await?))
}

pub async fn list(State(daemon): State<Arc<Daemon>>, Query(list): Query<List>) -> Answer<Agents> {
    let after: Option<AgentCursor> = match &list.after {
        Some(text) => Some(serde_json::from_str(text).map_err(|error| {
            Problem::new(Kind::Invalid, "`after` is not a cursor of this list").because(error)
        })?),
        None => None,
    };
    let query = AgentQuery {
        mode: list.mode,
        phase: list.phase,
        archived: list.archived,
        name_prefix: list.prefix.map(|prefix| canonical(&prefix)),
        sort: match list.by_name {
            true => AgentSort::Name,
            false => AgentSort::Recent,
        },
        limit: list.limit.unwrap_or(PAGE).clamp(1, LONGEST_PAGE),
        after,
    };
    let page = daemon.store.agents(query).await;
    let page = page.map_err(|error| of_store(&error))?;
    let handles = daemon.handles().await;
    let handles: HashMap<_, _> = handles.iter().map(|handle| (handle.id, handle)).collect();
    let mut agents = Vec::new();
    for row in page.agents {
        let handle = handles.get(&row.id).map(|handle| &***handle);
        agents.push(view::line(&daemon, row, handle).await);
    }
    let next = page.next.and_then(|next| serde_json::to_string(&next).ok());
    let total = page.total;
    Ok(JsonBody(Agents {
        agents,
        total,
        next,
    }))
}

pub async fn show(State(daemon): State<Arc<Daemon>>, Path(name): Path<String>) -> Answer<Agent> {
    let handle = daemon.any(&name).await?;
    Ok(JsonBody(view::agent(&daemon, &handle).await?))
}

pub async fn spec(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Answer<AgentSpec> {
    let handle = daemon.any(&name).await?;
    let spec = (*handle.lock().await.state.spec).clone();
    Ok(JsonBody(spec))
}

/// What a held agent contains.
pub async fn held(State(daemon): State<Arc<Daemon>>, Path(name): Path<String>) -> Answer<Held> {
    let handle = daemon.any(&name).await?;
    Ok(JsonBody(lifecycle::held::contents(&daemon, &handle).await?))
}

pub async fn set_spec(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(spec): Body<AgentSpec>,
) -> Answer<Agent> {
    let done = to_its_end(async move {
        let handle = daemon.named(&name).await?;
        let asked = Asked::new(op, OpVerb::SetSpec, &spec)?;
        lifecycle::set_spec::set_spec(&daemon, &handle, spec, &asked).await?;
        view::agent(&daemon, &handle).await
    });
    Ok(JsonBody(done.await?))
}

/// The buffer of an export. Shared, because the store takes ownership of the writer.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub async fn export(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Result<Response, Fault> {
    let agent = daemon.find_any(&name).await?;
    let out = Shared::default();
    let exported = daemon.store.export(agent, Box::new(out.clone())).await;
    exported.map_err(|error| of_store(&error))?;
    let mut bytes = out.0.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = std::mem::take(&mut *bytes);
    let kind = [(header::CONTENT_TYPE, "application/zstd")];
    Ok((kind, bytes).into_response())
}

pub async fn import(
    State(daemon): State<Arc<Daemon>>,
    Query(ask): Query<Import>,
    Query(Under { op }): Query<Under>,
    body: Bytes,
) -> Answer<Agent> {
    let done = to_its_end(async move {
        let imported = lifecycle::import::import(&daemon, ask, op, body).await?;
        let handle = daemon.handle(imported.agent).await?;
        let displaced = match imported.displaced {
            Some(agent) => Some(daemon.reference(agent).await),
            None => None,
        };
        Ok(view::named(view::agent(&daemon, &handle).await?, displaced))
    });
    Ok(JsonBody(done.await?))
}
