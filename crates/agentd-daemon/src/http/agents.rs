//! Agents: create, list, show, export and import.

use super::respond::{self, Answer, Body, Fault, JsonBody, Path, Query, Under, to_its_end};
use crate::agent_name;
use crate::daemon::Daemon;
use crate::lifecycle::{self, ops::Asked};
use crate::view;
use agentd_client::api::{
    Agent, Agents, Create, Created, Held, Import, List, ModelContext, ProcessLog,
};
use agentd_core::event::OpVerb;
use agentd_core::spec::AgentSpec;
use agentd_store::{AgentCursor, AgentQuery, AgentSort};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::collections::HashMap;
use std::sync::Arc;

/// Lines of a page, if the request names no limit.
const PAGE: usize = 100;
const LONGEST_PAGE: usize = 1000;
/// The largest body of an import.
const LARGEST_IMPORT: u64 = 1024 * 1024 * 1024;

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
        let agent = view::named(view::agent(&handle).await?, displaced);
        Ok(Created { agent, prompt })
    });
    Ok(JsonBody(done.await?))
}

pub async fn list(State(daemon): State<Arc<Daemon>>, Query(list): Query<List>) -> Answer<Agents> {
    let query = AgentQuery {
        mode: list.mode,
        phase: list.phase,
        archived: list.archived,
        name_prefix: list.prefix.map(|prefix| agent_name::canonical(&prefix)),
        sort: match list.by_name {
            true => AgentSort::Name,
            false => AgentSort::Recent,
        },
        limit: list.limit.unwrap_or(PAGE).clamp(1, LONGEST_PAGE),
        after: list.after.map(AgentCursor::from_text),
    };
    let page = daemon.store.agents(query).await?;
    let handles = daemon.handles();
    let handles: HashMap<_, _> = handles.iter().map(|handle| (handle.id, handle)).collect();
    let mut agents = Vec::new();
    for row in page.agents {
        let handle = handles.get(&row.id).copied();
        let line = view::line::of(&daemon, row, handle).await;
        agents.push(match list.words {
            true => view::line::with_words(&daemon, line).await,
            false => line,
        });
    }
    let next = page.next.map(|next| next.to_string());
    let total = page.total;
    Ok(JsonBody(Agents {
        agents,
        total,
        next,
    }))
}

pub async fn show(State(daemon): State<Arc<Daemon>>, Path(name): Path<String>) -> Answer<Agent> {
    let handle = daemon.any(&name).await?;
    Ok(JsonBody(view::agent(&handle).await?))
}

pub async fn process_log(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Answer<ProcessLog> {
    let handle = daemon.any(&name).await?;
    Ok(JsonBody(lifecycle::process_log::read(&handle).await?))
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
pub async fn context(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Answer<ModelContext> {
    let handle = daemon.any(&name).await?;
    Ok(JsonBody(view::context::context(&handle).await?))
}

pub async fn held(State(daemon): State<Arc<Daemon>>, Path(name): Path<String>) -> Answer<Held> {
    let handle = daemon.any(&name).await?;
    Ok(JsonBody(lifecycle::held::contents(&handle).await?))
}

pub async fn set_spec(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(spec): Body<AgentSpec>,
) -> Answer<Agent> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        let asked = Asked::new(op, OpVerb::SetSpec, &spec)?;
        lifecycle::set_spec::set_spec(&handle, spec, &asked).await?;
        view::agent(&handle).await
    });
    Ok(JsonBody(done.await?))
}

pub async fn export(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Result<Response, Fault> {
    let agent = daemon.find_any(&name).await?;
    let bytes = lifecycle::export::export(&daemon, agent).await?;
    let kind = [(header::CONTENT_TYPE, "application/zstd")];
    Ok((kind, bytes).into_response())
}

pub async fn import(
    State(daemon): State<Arc<Daemon>>,
    Query(ask): Query<Import>,
    Query(Under { op }): Query<Under>,
    request: Request,
) -> Answer<Agent> {
    let file = respond::spooled(request, daemon.layout.home(), LARGEST_IMPORT).await?;
    let done = to_its_end(async move {
        let imported = lifecycle::import::import(&daemon, ask, op, file).await?;
        let handle = daemon.handle(imported.agent).await?;
        let displaced = match imported.displaced {
            Some(agent) => Some(daemon.reference(agent).await),
            None => None,
        };
        Ok(view::named(view::agent(&handle).await?, displaced))
    });
    Ok(JsonBody(done.await?))
}
