//! A message and the end of its binding at the same time, with a real store and simulated processes.

use super::*;
use crate::supervisor::tests::{Bed, bed};
use agentd_core::event::{AgentArchived, AgentRenamed, AgentRestored, Body};
use agentd_core::outbox::binding::Release;
use futures_util::FutureExt as _;
use std::collections::BTreeSet;
use std::pin::pin;

const ADDRESS: &str = "chat:team/42";

async fn bound(bed: &Bed, handle: &AgentHandle) -> BindingId {
    let id = BindingId::new(clock::new_id());
    let binding = Binding {
        id,
        address: ADDRESS.to_owned(),
        agent: handle.id,
        url: "http://127.0.0.1:9/".to_owned(),
        secret: "HOOK".to_owned(),
        release_on: BTreeSet::from([Release::Rm, Release::Rename]),
        bound_at: clock::now(),
        since: handle.lock().await.state.head,
        unbound: None,
        unbound_at: None,
    };
    let add = |all: &mut Vec<Binding>| *all = vec![binding];
    let daemon = &bed.daemon;
    daemon.bindings.change(&daemon.layout, add).await.unwrap();
    id
}

fn hello() -> BindingMessage {
    BindingMessage {
        id: "m1".to_owned(),
        sender: None,
        text: "hello".to_owned(),
    }
}

/// How a binding ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Unbound,
    Removed,
    Renamed,
    ArchivedAndRestored,
}

#[tokio::test]
async fn a_message_whose_binding_ends_while_it_is_accepted_is_refused() {
    for end in [
        End::Unbound,
        End::Removed,
        End::Renamed,
        End::ArchivedAndRestored,
    ] {
        let bed = bed();
        let handle = bed.agent(None).await;
        let id = bound(&bed, &handle).await;
        let mut guard = handle.lock().await;
        // It finds the binding, and waits for the agent.
        let mut sent = pin!(message(&bed.daemon, ADDRESS, hello()));
        assert!(sent.as_mut().now_or_never().is_none(), "{end:?}");
        let bodies = match end {
            End::Unbound | End::Removed => Vec::new(),
            End::Renamed => vec![Body::from(AgentRenamed {
                name: "writer".to_owned(),
            })],
            End::ArchivedAndRestored => {
                vec![Body::from(AgentArchived {}), Body::from(AgentRestored {})]
            }
        };
        let head = guard.state.head;
        for body in bodies {
            guard.note([body]).await.unwrap();
        }
        let change = |all: &mut Vec<Binding>| match end {
            End::Unbound => all[0].unbound = Some(head),
            End::Removed => all.clear(),
            End::Renamed | End::ArchivedAndRestored => {}
        };
        let bindings = &bed.daemon.bindings;
        bindings.change(&bed.daemon.layout, change).await.unwrap();
        drop(guard);
        let refused = sent.await.unwrap_err();
        assert_eq!(refused.kind, Kind::NotFound, "{end:?}: {refused}");
        let guard = handle.lock().await;
        assert_eq!(guard.state.inbox.waiting().len(), 0, "{end:?}");
        drop(guard);
        // The address is free at once, also if the webhook was not told yet.
        let left = bindings.get(id).await;
        if let Some(left) = left {
            assert!(left.is_released(&handle.lock().await.state), "{end:?}");
        }
    }
}

#[tokio::test]
async fn a_message_to_a_binding_that_lasts_is_accepted() {
    let bed = bed();
    let handle = bed.agent(None).await;
    bound(&bed, &handle).await;
    let sent = message(&bed.daemon, ADDRESS, hello()).await.unwrap();
    assert!(!sent.repeated);
    let again = message(&bed.daemon, ADDRESS, hello()).await.unwrap();
    assert_eq!((again.prompt, again.repeated), (sent.prompt, true));
}
