//! Drafts, past the store: an ended one leaves no row.

use crate::lab::{Author, Lab, run};
use agentd_core::event::{MessageAdded, MessageStatus, StopReason};
use agentd_store::{Append, DraftAck, DraftChunk, Store as _};

#[test]
fn a_draft_that_has_ended_leaves_no_row() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut author = Author::create(&store, 1, "one").await;
        let request = author.next_try();
        for offset in [0, 4] {
            let bytes = b"half".to_vec();
            let chunk = DraftChunk {
                request,
                offset,
                bytes,
            };
            let ack = store.write_draft(author.fence, chunk).await.unwrap();
            assert_eq!(ack, DraftAck::Kept);
        }
        let rows = || -> i64 {
            let sql = "SELECT count(*) FROM draft";
            lab.journal().query_row(sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(rows(), 2);
        let message = MessageAdded {
            request: Some(request),
            status: MessageStatus::Complete,
            stop: Some(StopReason::EndTurn),
            blocks: Vec::new(),
        };
        let mut append = Append::new(author.fence, vec![author.event(None, message)]);
        append.ends = Some(request);
        store.append(append).await.unwrap();
        assert_eq!(rows(), 0);
    });
}
