//! What an agent changed in files: the list, the difference, a restore and its undo.

use super::respond::{Answer, Body, JsonBody, Path, Query, Under, to_its_end};
use crate::daemon::Daemon;
use crate::lifecycle;
use agentd_client::api::{
    ChangedFiles, DiffFiles, FilesDiff, FilesQuery, RestoreFiles, RestoredFiles, UndoFiles,
};
use axum::extract::State;
use std::sync::Arc;

pub async fn list(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(query): Query<FilesQuery>,
) -> Answer<ChangedFiles> {
    let handle = daemon.any(&name).await?;
    Ok(JsonBody(
        lifecycle::files::list::list(&handle, query).await?,
    ))
}

pub async fn diff(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(body): Body<DiffFiles>,
) -> Answer<FilesDiff> {
    let handle = daemon.any(&name).await?;
    let done = to_its_end(async move { lifecycle::files::diff::diff(&handle, body).await });
    Ok(JsonBody(done.await?))
}

pub async fn restore(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(mut body): Body<RestoreFiles>,
) -> Answer<RestoredFiles> {
    let done = to_its_end(async move {
        body.op = body.op.or(op);
        let handle = daemon.active(&name).await?;
        lifecycle::files::restore::restore(&handle, body).await
    });
    Ok(JsonBody(done.await?))
}

pub async fn undo(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(mut body): Body<UndoFiles>,
) -> Answer<RestoredFiles> {
    let done = to_its_end(async move {
        body.op = body.op.or(op);
        let handle = daemon.active(&name).await?;
        lifecycle::files::undo::undo(&handle, body).await
    });
    Ok(JsonBody(done.await?))
}
