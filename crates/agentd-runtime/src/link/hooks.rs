//! Hooks, at the other end of a link: the daemon runs them.

use super::Ask;
use crate::driver::Hooks;
use agentd_core::hook::{HookInvocation, Verdict};
use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

pub struct LinkHooks {
    asks: mpsc::UnboundedSender<Ask>,
}

impl LinkHooks {
    pub(super) const fn new(asks: mpsc::UnboundedSender<Ask>) -> Self {
        Self { asks }
    }
}

#[async_trait]
impl Hooks for LinkHooks {
    async fn invoke(&self, invocation: HookInvocation) -> Verdict {
        let event = invocation.hook_input.event;
        let (tell, told) = oneshot::channel();
        let asked = self.asks.send(Ask::InvokeHooks(Box::new(invocation), tell));
        match (asked, told.await) {
            (Ok(()), Ok(verdict)) => verdict,
            // The link has ended, so this process ends too.
            _ => Verdict::unheard(event),
        }
    }
}
