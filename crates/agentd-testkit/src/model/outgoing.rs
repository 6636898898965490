//! The sending of a reply: in pieces, with the faults that the script asks for.

use super::Shared;
use super::reply::Event;
use super::script::FaultKind;
use axum::body::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are sent together.
pub struct Piece {
    bytes: Vec<u8>,
    /// How long to wait before it.
    pause: Duration,
}

impl Piece {
    pub fn of(event: Event) -> Self {
        Self {
            bytes: event.text().into_bytes(),
            pause: event.pause,
        }
    }

    pub fn at_once(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            pause: Duration::ZERO,
        }
    }
}

/// A plain body in two pieces, so that it can break in between.
pub fn halves(body: &str) -> VecDeque<Piece> {
    let (first, second) = body.as_bytes().split_at(body.len() / 2);
    [first, second].into_iter().map(Piece::at_once).collect()
}

/// The same bytes in pieces of this size.
pub fn cut(pieces: &VecDeque<Piece>, size: usize) -> VecDeque<Piece> {
    let bytes: Vec<u8> = pieces
        .iter()
        .flat_map(|piece| piece.bytes.clone())
        .collect();
    bytes.chunks(size).map(Piece::at_once).collect()
}

/// Applies a fault to the pieces, and returns how the stream ends.
pub fn spoil(pieces: &mut VecDeque<Piece>, fault: Option<FaultKind>, streams: bool) -> End {
    match fault {
        Some(FaultKind::Drop { after }) => {
            pieces.truncate(if streams { after } else { 1 });
            End::Drop
        }
        Some(FaultKind::Malformed) if streams => {
            pieces.truncate(2);
            pieces.push_back(Piece::at_once(b"data: {\"type\": \"mess\n\n"));
            End::Good
        }
        Some(FaultKind::Malformed) => {
            pieces.truncate(1);
            End::Good
        }
        Some(FaultKind::Flood { bytes }) => {
            // Comments: they are part of no reply, and have to be read all the same.
            let comment = [b": ".as_slice(), &[b'x'; 64 * 1024], b"\n\n"].concat();
            let count = bytes.div_ceil(comment.len());
            pieces.extend((0..count).map(|_| Piece::at_once(&comment)));
            End::Good
        }
        Some(FaultKind::Hang { after }) => {
            pieces.truncate(after);
            End::Hang
        }
        _ => End::Good,
    }
}

/// How long a connection stays open after the last event before it breaks.
const DROP_AFTER: Duration = Duration::from_millis(150);

/// How a stream ends.
#[derive(Clone, Copy, PartialEq)]
pub enum End {
    Good,
    /// The connection breaks.
    Drop,
    Hang,
}

pub struct Streaming {
    server: Arc<Shared>,
    /// The request that it answers.
    number: u64,
    pieces: VecDeque<Piece>,
    end: End,
    over: bool,
}

impl Streaming {
    pub const fn new(server: Arc<Shared>, number: u64, pieces: VecDeque<Piece>, end: End) -> Self {
        Self {
            server,
            number,
            pieces,
            end,
            over: false,
        }
    }

    pub async fn next(mut self) -> Option<(std::io::Result<Bytes>, Self)> {
        let Some(piece) = self.pieces.pop_front() else {
            if self.end == End::Hang {
                std::future::pending::<()>().await;
            }
            let dropped = self.end == End::Drop && !self.over;
            if dropped {
                // What was sent is to arrive before the connection breaks under it.
                tokio::time::sleep(DROP_AFTER).await;
            }
            if self.end == End::Good && !self.over {
                self.finished();
            }
            self.over = true;
            return dropped.then(|| (Err(std::io::ErrorKind::ConnectionReset.into()), self));
        };
        // No pause is no time at all, not the clock's next tick.
        if piece.pause.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(piece.pause).await;
        }
        Some((Ok(Bytes::from(piece.bytes)), self))
    }
}

impl Streaming {
    fn finished(&self) {
        self.server.note(|seen| {
            let at = usize::try_from(self.number).unwrap_or_default();
            if let Some(request) = at.checked_sub(1).and_then(|at| seen.requests.get_mut(at)) {
                request.is_finished = true;
            }
        });
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        if !self.over {
            self.server.note(|seen| seen.disconnects += 1);
        }
    }
}
