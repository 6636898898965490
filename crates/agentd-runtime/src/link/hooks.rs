//! Hooks, at the other end of a link: the daemon runs them.

use super::Ask;
use crate::driver::Hooks;
use agentd_core::hook::{Fire, Verdict};
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
    async fn fire(&self, fire: Fire) -> Verdict {
        let event = fire.occasion.event;
        let (tell, told) = oneshot::channel();
        let asked = self.asks.send(Ask::Fire(Box::new(fire), tell));
        match (asked, told.await) {
            (Ok(()), Ok(verdict)) => verdict,
            // The link has ended, and this process with it.
            _ => Verdict::unheard(event),
        }
    }
}
