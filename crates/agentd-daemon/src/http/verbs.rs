//! What is done to an agent: each with its own file under `lifecycle`.

use super::respond::{Answer, Body, Path, Said, to_its_end};
use crate::daemon::Daemon;
use crate::lifecycle;
use crate::view;
use agentd_client::api::*;
use agentd_core::id::ApprovalId;
use axum::extract::State;
use std::sync::Arc;

/// A verb whose answer is the agent as it is then.
macro_rules! verb {
    ($name:ident, $body:ty, $run:path) => {
        pub async fn $name(
            State(daemon): State<Arc<Daemon>>,
            Path(name): Path<String>,
            Body(body): Body<$body>,
        ) -> Answer<Agent> {
            let done = to_its_end(async move {
                let desk = daemon.named(&name).await?;
                $run(&daemon, &desk, body).await?;
                view::agent(&daemon, &desk).await
            });
            Ok(Said(done.await?))
        }
    };
}

verb!(start, Start, lifecycle::start::start);
verb!(stop, Stop, lifecycle::stop::stop);
verb!(restart, Restart, lifecycle::restart::restart);
verb!(go_on, Start, lifecycle::go_on::go_on);

pub async fn archive(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(body): Body<Archive>,
) -> Answer<Archived> {
    let done = to_its_end(async move {
        let desk = daemon.named(&name).await?;
        let ended = lifecycle::archive::archive(&daemon, &desk, body).await?;
        let agent = view::agent(&daemon, &desk).await?;
        Ok(Archived { agent, ended })
    });
    Ok(Said(done.await?))
}

pub async fn interrupt(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
) -> Answer<Agent> {
    let done = to_its_end(async move {
        let desk = daemon.named(&name).await?;
        lifecycle::interrupt::interrupt(&daemon, &desk).await?;
        view::agent(&daemon, &desk).await
    });
    Ok(Said(done.await?))
}

pub async fn restore(State(daemon): State<Arc<Daemon>>, Path(name): Path<String>) -> Answer<Agent> {
    let done = to_its_end(async move {
        let desk = daemon.put_away(&name).await?;
        lifecycle::restore::restore(&daemon, &desk).await?;
        view::agent(&daemon, &desk).await
    });
    Ok(Said(done.await?))
}

pub async fn rename(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(body): Body<Rename>,
) -> Answer<Agent> {
    let done = to_its_end(async move {
        let desk = daemon.named(&name).await?;
        lifecycle::rename::rename(&desk, body.to).await?;
        view::agent(&daemon, &desk).await
    });
    Ok(Said(done.await?))
}

pub async fn reset(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(body): Body<Reset>,
) -> Answer<Receipt> {
    let done = to_its_end(async move {
        let desk = daemon.named(&name).await?;
        lifecycle::reset::reset(&daemon, &desk, body).await
    });
    Ok(Said(done.await?))
}

pub async fn rewind(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(body): Body<Rewind>,
) -> Answer<Receipt> {
    let done = to_its_end(async move {
        let desk = daemon.named(&name).await?;
        lifecycle::rewind::rewind(&daemon, &desk, body).await
    });
    Ok(Said(done.await?))
}

/// Of one that was removed, too: nothing of it changes.
pub async fn fork(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(body): Body<Fork>,
) -> Answer<Forked> {
    let done = to_its_end(async move {
        let parent = daemon.any(&name).await?;
        let made = lifecycle::fork::fork(&daemon, &parent, body).await?;
        let desk = daemon.desk(made.agent).await?;
        let agent = view::without_words(&desk).await;
        let (from, repeated) = (made.from, made.repeated);
        Ok(Forked {
            agent,
            from,
            repeated,
        })
    });
    Ok(Said(done.await?))
}

pub async fn compact(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(body): Body<Compact>,
) -> Answer<Compacted> {
    let done = to_its_end(async move {
        let desk = daemon.named(&name).await?;
        lifecycle::compact::compact(&daemon, &desk, body).await
    });
    Ok(Said(done.await?))
}

pub async fn checkpoint(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(body): Body<Checkpoint>,
) -> Answer<Checkpointed> {
    let done = to_its_end(async move {
        let desk = daemon.named(&name).await?;
        lifecycle::checkpoint::checkpoint(&daemon, &desk, body).await
    });
    Ok(Said(done.await?))
}

pub async fn purge(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    Body(body): Body<Purge>,
) -> Answer<Purged> {
    let done = to_its_end(async move {
        let desk = daemon.any(&name).await?;
        lifecycle::purge::purge(&daemon, &desk, body).await
    });
    Ok(Said(done.await?))
}

pub async fn decide(
    State(daemon): State<Arc<Daemon>>,
    Path((name, approval)): Path<(String, ApprovalId)>,
    Body(body): Body<Answered>,
) -> Answer<Agent> {
    let done = to_its_end(async move {
        let desk = daemon.named(&name).await?;
        lifecycle::decide::decide(&daemon, &desk, approval, body.decision).await?;
        view::agent(&daemon, &desk).await
    });
    Ok(Said(done.await?))
}
