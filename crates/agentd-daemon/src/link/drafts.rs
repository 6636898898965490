//! The draft: pieces of a reply that is still streaming.

use crate::daemon::{AgentHandle, Live};
use agentd_client::api;
use agentd_core::draft::Change;
use agentd_core::link::{Down, Draft};
use agentd_failpoint as failpoint;
use agentd_store::{DraftAck, DraftChunk, Error};
use tokio::sync::mpsc;

/// Writes a piece. False if the connection is to be closed: the runtime reconnects and sends the piece again.
pub async fn keep(handle: &AgentHandle, draft: Draft, down: &mpsc::UnboundedSender<Down>) -> bool {
    let mut guard = handle.lock().await;
    if !guard.link.may_write(draft.request.incarnation) {
        return false;
    }
    let chunk = DraftChunk {
        request: draft.request,
        offset: draft.offset,
        bytes: draft.text.clone().into_bytes(),
    };
    let kept = match guard.fence().await {
        Ok(_) if failpoint::injected_bug("draft_not_flushed") => Ok(DraftAck::Kept),
        Ok(fence) => handle.daemon.store.write_draft(fence, chunk).await,
        Err(error) => Err(error),
    };
    match kept {
        Ok(ack) => {
            // It is durable before a client sees it.
            failpoint::hit("at", "barrier.4");
            if ack == DraftAck::Kept {
                show(handle, &draft);
            }
            let (request, offset) = (draft.request, draft.offset);
            let _broken = down.send(Down::Drafted {
                request,
                offset,
                refused: None,
            });
            true
        }
        // It would be refused as often as it is sent.
        Err(error @ Error::TooLarge { .. }) => {
            tracing::warn!(agent = %handle.id, %error, "draft refused");
            let (request, offset) = (draft.request, draft.offset);
            let _broken = down.send(Down::Drafted {
                request,
                offset,
                refused: Some(error.to_string()),
            });
            true
        }
        Err(error) => {
            tracing::warn!(agent = %handle.id, %error, "draft not written");
            false
        }
    }
}

/// Sends the text and the thinking of a durable piece to the clients that watch, in their order.
fn show(handle: &AgentHandle, draft: &Draft) {
    let mut pieces: Vec<api::Delta> = Vec::new();
    for line in draft.text.lines() {
        let Ok(delta) = serde_json::from_str::<agentd_core::draft::Delta>(line) else {
            continue;
        };
        let (text, thinking) = match delta.change {
            Change::Text { text } => (text, String::new()),
            Change::Thinking { text } => (String::new(), text),
            _ => continue,
        };
        if text.is_empty() && thinking.is_empty() {
            continue;
        }
        match pieces.last_mut() {
            Some(last) if last.thinking.is_empty() == thinking.is_empty() => {
                last.text.push_str(&text);
                last.thinking.push_str(&thinking);
            }
            _ => pieces.push(api::Delta {
                request: draft.request.to_string(),
                text,
                thinking,
            }),
        }
    }
    for piece in pieces {
        handle.show(Live::Delta(piece));
    }
}
