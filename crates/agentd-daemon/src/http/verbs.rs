//! The verbs of an agent, each of which has its own file in `lifecycle`.

use super::respond::{Answer, Body, JsonBody, Path, Query, Under, to_its_end};
use crate::caller::Caller;
use crate::daemon::Daemon;
use crate::error::Kind;
use crate::lifecycle::{self, ops::Asked};
use crate::view;
use agentd_client::api::*;
use agentd_core::event::{Decision, OpVerb};
use agentd_core::id::ApprovalId;
use agentd_core::outer::ProgramMemory;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::http::header::USER_AGENT;
use std::sync::Arc;

/// The part of a request that must be the same when it is sent again with its op. Variables, time limits and the `head`
/// of a release may differ.
trait About {
    fn about(&self) -> impl serde::Serialize;
}

impl About for Start {
    fn about(&self) -> impl serde::Serialize {
        // A release that keeps nothing equals a start without a release.
        let keep = self.release.as_ref().map(|release| &release.keep);
        keep.filter(|keep| !keep.is_empty())
    }
}

impl About for Stop {
    fn about(&self) -> impl serde::Serialize {
        self.kill_background
    }
}

impl About for Restart {
    fn about(&self) -> impl serde::Serialize {}
}

/// A verb whose response is the agent after the change.
macro_rules! verb {
    ($name:ident, $body:ty, $run:path, $verb:expr) => {
        pub async fn $name(
            State(daemon): State<Arc<Daemon>>,
            Path(name): Path<String>,
            Query(Under { op }): Query<Under>,
            Body(body): Body<$body>,
        ) -> Answer<Agent> {
            let done = to_its_end(async move {
                let handle = daemon.active(&name).await?;
                let asked = Asked::new(op, $verb, &body.about())?;
                $run(&handle, body, &asked).await?;
                view::agent(&handle).await
            });
            Ok(JsonBody(done.await?))
        }
    };
}

verb!(start, Start, lifecycle::start::start, OpVerb::Start);
verb!(stop, Stop, lifecycle::stop::stop, OpVerb::Stop);
verb!(
    restart,
    Restart,
    lifecycle::restart::restart,
    OpVerb::Restart
);
verb!(
    continue_turn,
    Start,
    lifecycle::r#continue::continue_turn,
    OpVerb::Continue
);

pub async fn archive(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(body): Body<Archive>,
) -> Answer<Archived> {
    let done = to_its_end(async move {
        let asked = Asked::new(op, OpVerb::Archive, &())?;
        // An agent that this op has archived is no longer found by its name.
        let handle = match daemon.named(&name).await {
            Err(error) if error.kind == Kind::NotFound && op.is_some() => {
                let removed = daemon.archived(&name).await?;
                match asked.is_made(&removed.lock().await.state) {
                    Ok(true) => {}
                    _ => return Err(error),
                }
                removed
            }
            found => found?,
        };
        let ended = lifecycle::archive::archive(&handle, body, &asked).await?;
        let agent = view::agent(&handle).await?;
        Ok(Archived { agent, ended })
    });
    Ok(JsonBody(done.await?))
}

pub async fn interrupt(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
) -> Answer<Agent> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        let asked = Asked::new(op, OpVerb::Interrupt, &())?;
        lifecycle::interrupt::interrupt(&handle, &asked).await?;
        view::agent(&handle).await
    });
    Ok(JsonBody(done.await?))
}

pub async fn run_command(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(body): Body<RunCommand>,
) -> Answer<EndedCommand> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        let asked = Asked::new(op, OpVerb::RunCommand, &body.timeout_ms)?;
        lifecycle::run_command::run_command(&handle, body, &asked).await
    });
    Ok(JsonBody(done.await?))
}

pub async fn restore(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(body): Body<Restore>,
) -> Answer<Agent> {
    let done = to_its_end(async move {
        let asked = Asked::new(op, OpVerb::Restore, &body)?;
        // An agent that this op has restored takes precedence over another archived agent with the same name.
        let called = body.name.as_ref().unwrap_or(&name);
        let restored = match daemon.named(called).await {
            Ok(handle) if asked.is_made(&handle.lock().await.state)? => Some(handle),
            _ => None,
        };
        let handle = match restored {
            Some(handle) => handle,
            None => daemon.archived(&name).await?,
        };
        let name = match &body.name {
            Some(name) => name.clone(),
            None => handle.lock().await.state.name.clone(),
        };
        let displaced = daemon.alias_of(&name).await?;
        lifecycle::restore::restore(&handle, body, &asked).await?;
        let agent = view::agent(&handle).await?;
        Ok(view::named(agent, displaced))
    });
    Ok(JsonBody(done.await?))
}

pub async fn rename(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(body): Body<Rename>,
) -> Answer<Agent> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        let displaced = daemon.alias_of(&body.to).await?;
        let asked = Asked::new(op, OpVerb::Rename, &body)?;
        lifecycle::rename::rename(&handle, &body.to, &asked).await?;
        let agent = view::agent(&handle).await?;
        Ok(view::named(agent, displaced))
    });
    Ok(JsonBody(done.await?))
}

pub async fn reset(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(mut body): Body<Reset>,
) -> Answer<Receipt> {
    let done = to_its_end(async move {
        body.op = body.op.or(op);
        let handle = daemon.active(&name).await?;
        lifecycle::reset::reset(&handle, body).await
    });
    Ok(JsonBody(done.await?))
}

pub async fn rewind(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(mut body): Body<Rewind>,
) -> Answer<Receipt> {
    let done = to_its_end(async move {
        body.op = body.op.or(op);
        let handle = daemon.active(&name).await?;
        lifecycle::rewind::rewind(&handle, body).await
    });
    Ok(JsonBody(done.await?))
}

/// The parent may be archived: it does not change.
pub async fn fork(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(mut body): Body<Fork>,
) -> Answer<Forked> {
    let done = to_its_end(async move {
        body.op = body.op.or(op);
        let parent = daemon.any(&name).await?;
        let displaced = match &body.name {
            Some(name) => daemon.alias_of(name).await?,
            None => None,
        };
        let made = lifecycle::fork::fork(&parent, body).await?;
        let handle = daemon.handle(made.agent).await?;
        let agent = view::named(view::without_words(&handle).await, displaced);
        let from = view::conversation::origin(&daemon, made.from, None).await;
        let runtime = handle.lock().await.state.spec.runtime;
        Ok(Forked {
            agent,
            from,
            repeated: made.repeated,
            prompt: made.prompt,
            program: ProgramMemory::after_fork(runtime),
        })
    });
    Ok(JsonBody(done.await?))
}

pub async fn compact(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(mut body): Body<Compact>,
) -> Answer<Compacted> {
    let done = to_its_end(async move {
        body.op = body.op.or(op);
        let handle = daemon.active(&name).await?;
        lifecycle::compact::compact(&handle, body).await
    });
    Ok(JsonBody(done.await?))
}

pub async fn checkpoint(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(body): Body<Checkpoint>,
) -> Answer<Checkpointed> {
    let done = to_its_end(async move {
        let handle = daemon.active(&name).await?;
        let asked = Asked::new(op, OpVerb::Checkpoint, &body)?;
        lifecycle::checkpoint::checkpoint(&handle, body, &asked).await
    });
    Ok(JsonBody(done.await?))
}

pub async fn purge(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Query(Under { op }): Query<Under>,
    Body(body): Body<Purge>,
) -> Answer<Purged> {
    let done = to_its_end(async move {
        let handle = daemon.any(&name).await?;
        let asked = Asked::new(op, OpVerb::Purge, &body.conversation)?;
        lifecycle::purge::purge(&handle, body, &asked).await
    });
    Ok(JsonBody(done.await?))
}

/// Applies the retention policy, or says what it would delete.
pub async fn prune(State(daemon): State<Arc<Daemon>>, Body(body): Body<Prune>) -> Answer<Pruned> {
    let done = to_its_end(async move { lifecycle::prune::prune(&daemon, body).await });
    Ok(JsonBody(done.await?))
}

/// A verb that answers an approval request. The response is the agent after the change.
macro_rules! answer {
    ($name:ident, $body:ty, $run:path, $decision:expr) => {
        pub async fn $name(
            State(daemon): State<Arc<Daemon>>,
            ConnectInfo(caller): ConnectInfo<Caller>,
            Path((name, approval)): Path<(String, ApprovalId)>,
            Query(Under { op }): Query<Under>,
            headers: HeaderMap,
            Body(body): Body<$body>,
        ) -> Answer<Agent> {
            let client = headers.get(USER_AGENT);
            let client = client.and_then(|client| client.to_str().ok());
            let by = lifecycle::approval::answered_by(caller, client);
            let done = to_its_end(async move {
                let handle = daemon.active(&name).await?;
                let asked = Asked::new(op, OpVerb::Decide, &(approval, $decision))?;
                $run(&handle, approval, (body, by), &asked).await?;
                view::agent(&handle).await
            });
            Ok(JsonBody(done.await?))
        }
    };
}

answer!(
    approve,
    Approve,
    lifecycle::approve::approve,
    Decision::Allow
);
answer!(deny, Deny, lifecycle::deny::deny, Decision::Deny);
answer!(
    answer,
    AnswerQuestion,
    lifecycle::answer::answer,
    Decision::Allow
);

/// Adds the caller's variables to an agent that may wait for one of them.
pub async fn merge_env(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(body): Body<Start>,
) -> Answer<Agent> {
    let handle = daemon.active(&name).await?;
    lifecycle::merge_env::merge_env(&handle, &body.env).await;
    Ok(JsonBody(view::agent(&handle).await?))
}
