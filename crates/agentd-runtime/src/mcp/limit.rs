//! How much a server may ask for at a time. The library answers requests of a server in tasks of their own: a server that asks
//! and does not read the answers would fill the memory.

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Requests of a server that have no answer yet. With one more, the connection ends.
const MOST_ASKED: usize = 256;

/// A transport that ends when its server asks for too much.
pub(super) struct Limited<T> {
    inner: T,
    /// Requests that were received and whose answers were not sent yet.
    asked: Arc<AtomicUsize>,
}

impl<T> Limited<T> {
    pub fn new(inner: T) -> Self {
        let asked = Arc::default();
        Self { inner, asked }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Limited<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let sending = self.inner.send(item);
        let asked = Arc::clone(&self.asked);
        async move {
            let sent = sending.await;
            if is_answer {
                let less = |asked: usize| Some(asked.saturating_sub(1));
                let _always = asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
        if matches!(message, JsonRpcMessage::Request(_))
            && self.asked.fetch_add(1, Ordering::Relaxed) >= MOST_ASKED
        {
            tracing::warn!("an MCP server has too many open requests: its connection ends");
            return None;
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::transport::async_rw::AsyncRwTransport;
    use tokio::io::{AsyncWriteExt as _, duplex, split};

    #[tokio::test]
    async fn a_server_that_only_asks_is_cut_off() {
        let (ours, theirs) = duplex(1 << 20);
        let (read, write) = split(ours);
        let mut transport = Limited::new(AsyncRwTransport::new_client(read, write));
        let (_unread, mut server) = split(theirs);
        for id in 0..=MOST_ASKED {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
            server.write_all(line.as_bytes()).await.unwrap();
        }
        for _ in 0..MOST_ASKED {
            assert!(transport.receive().await.is_some());
        }
        assert!(transport.receive().await.is_none());
    }
}
