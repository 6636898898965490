//! How much a server may write before it has answered. One that only floods would keep this process busy until the time
//! limit.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// The most bytes before the first answer.
pub(super) const MOST_BYTES: usize = 1024 * 1024;

/// What a server may still write. The connection lifts it when the server has answered.
#[derive(Clone, Default)]
pub(super) struct Allowance(Arc<State>);

#[derive(Default)]
struct State {
    used: AtomicUsize,
    is_lifted: AtomicBool,
}

impl Allowance {
    pub fn lift(&self) {
        self.0.is_lifted.store(true, Ordering::Relaxed);
    }

    pub fn is_exceeded(&self) -> bool {
        let is_lifted = self.0.is_lifted.load(Ordering::Relaxed);
        !is_lifted && self.0.used.load(Ordering::Relaxed) > MOST_BYTES
    }

    fn count(&self, bytes: usize) {
        if !self.0.is_lifted.load(Ordering::Relaxed) {
            self.0.used.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// The output of a server, which fails if it exceeds the allowance.
pub(super) struct Opening<R> {
    inner: R,
    allowance: Allowance,
}

impl<R> Opening<R> {
    pub const fn new(inner: R, allowance: Allowance) -> Self {
        Self { inner, allowance }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Opening<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.allowance.is_exceeded() {
            return Poll::Ready(Err(io::Error::other("too much output before an answer")));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        self.allowance.count(buffer.filled().len() - before);
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn a_flood_ends_and_an_answer_lifts_the_limit() {
        let endless = || tokio::io::repeat(b'x');
        let mut kept = vec![0; 2 * MOST_BYTES];
        let allowance = Allowance::default();
        let mut server = Opening::new(endless(), allowance.clone());
        server.read_exact(&mut kept[..1000]).await.unwrap();
        assert!(!allowance.is_exceeded());
        // A read that exceeds it is the last one.
        let mut small = vec![0; 64 * 1024];
        let mut read = 0;
        while let Ok(more) = server.read(&mut small).await {
            read += more;
            assert!(read <= MOST_BYTES + small.len(), "{read}");
        }
        assert!(allowance.is_exceeded());
        let answered = Allowance::default();
        answered.lift();
        let mut server = Opening::new(endless(), answered.clone());
        server.read_exact(&mut kept).await.unwrap();
        assert!(!answered.is_exceeded());
    }
}
