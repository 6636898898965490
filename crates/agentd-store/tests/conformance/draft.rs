//! The draft: pieces of a reply are kept in order, end with it, and never come back.

use crate::author::{Author, events_of};
use crate::subject::Subject;
use agentd_core::draft::{Change, Delta, Reply, decode, encode};
use agentd_core::event::{Body, MessageAdded, MessageStatus, StopReason};
use agentd_core::id::{Incarnation, TryId};
use agentd_store::{Append, Draft, DraftAck, DraftChunk, Error, Fence, Store};

const fn attempt(incarnation: u64, n: u64) -> TryId {
    TryId {
        incarnation: Incarnation(incarnation),
        n,
    }
}

async fn write(
    store: &dyn Store,
    fence: Fence,
    request: TryId,
    offset: u64,
    text: &str,
) -> DraftAck {
    let bytes = text.as_bytes().to_vec();
    let chunk = DraftChunk {
        request,
        offset,
        bytes,
    };
    store.write_draft(fence, chunk).await.unwrap()
}

async fn text(store: &dyn Store, author: &Author) -> Option<(TryId, String)> {
    let draft = store.draft(author.agent).await.unwrap()?;
    Some((draft.request, String::from_utf8(draft.bytes).unwrap()))
}

/// Says something that ends a try.
async fn end(store: &dyn Store, author: &mut Author, request: TryId) {
    let message = MessageAdded {
        request: Some(request),
        status: MessageStatus::Complete,
        stop: Some(StopReason::EndTurn),
        blocks: Vec::new(),
    };
    let mut append = Append::new(author.fence, vec![author.event(None, message)]);
    append.ends = Some(request);
    store.append(append).await.unwrap();
}

pub async fn pieces_are_kept_in_order_and_only_where_the_draft_stops<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let author = Author::create(&*store, 1, "one").await;
    let fence = author.fence;
    assert_eq!(text(&*store, &author).await, None);
    let first = attempt(1, 1);
    assert_eq!(write(&*store, fence, first, 0, "abc").await, DraftAck::Kept);
    assert_eq!(write(&*store, fence, first, 3, "def").await, DraftAck::Kept);
    // Again, too early, too late: dropped.
    assert_eq!(
        write(&*store, fence, first, 3, "def").await,
        DraftAck::Dropped
    );
    assert_eq!(
        write(&*store, fence, first, 5, "xyz").await,
        DraftAck::Dropped
    );
    assert_eq!(
        write(&*store, fence, first, 9, "xyz").await,
        DraftAck::Dropped
    );
    assert_eq!(
        text(&*store, &author).await,
        Some((first, "abcdef".to_owned()))
    );
    // An empty chunk is no piece, however often it is sent, and blocks no later one.
    for _ in 0..3 {
        assert_eq!(write(&*store, fence, first, 6, "").await, DraftAck::Kept);
    }
    assert_eq!(write(&*store, fence, first, 6, "ghi").await, DraftAck::Kept);
    assert_eq!(
        text(&*store, &author).await,
        Some((first, "abcdefghi".to_owned()))
    );
}

pub async fn an_older_try_gives_way_and_does_not_come_back<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let author = Author::create(&*store, 1, "one").await;
    let fence = author.fence;
    let tries = [attempt(1, 1), attempt(1, 2), attempt(2, 1)];
    for (index, request) in tries.into_iter().enumerate() {
        assert_eq!(
            write(&*store, fence, request, 0, "new").await,
            DraftAck::Kept
        );
        for older in &tries[..index] {
            assert_eq!(
                write(&*store, fence, *older, 0, "old").await,
                DraftAck::Dropped
            );
            assert_eq!(
                write(&*store, fence, *older, 3, "old").await,
                DraftAck::Dropped
            );
        }
        assert_eq!(
            text(&*store, &author).await,
            Some((request, "new".to_owned()))
        );
    }
}

pub async fn a_draft_outlives_a_restart_and_goes_on_where_it_stopped<S: Subject>() {
    let subject = S::new().await;
    let request = attempt(1, 1);
    let author = {
        let store = subject.open().await;
        let author = Author::create(&*store, 1, "one").await;
        write(&*store, author.fence, request, 0, "before ").await;
        author
    };
    let store = subject.open().await;
    assert_eq!(
        text(&*store, &author).await,
        Some((request, "before ".to_owned()))
    );
    let fence = author.fence;
    assert_eq!(
        write(&*store, fence, request, 0, "x").await,
        DraftAck::Dropped
    );
    assert_eq!(
        write(&*store, fence, request, 7, "after").await,
        DraftAck::Kept
    );
    assert_eq!(
        text(&*store, &author).await,
        Some((request, "before after".to_owned()))
    );
    // A process that is not the owner writes no draft either.
    store.claim(author.agent, "next").await.unwrap();
    let chunk = DraftChunk {
        request,
        offset: 12,
        bytes: b"!".to_vec(),
    };
    let refused = store.write_draft(fence, chunk).await;
    assert!(matches!(refused, Err(Error::StaleFence { .. })));
}

pub async fn an_end_that_is_refused_keeps_the_draft<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let request = attempt(1, 1);
    write(&*store, author.fence, request, 0, "kept").await;
    let events = author.turn("x", "y");
    let mut append = Append::new(author.fence, events);
    append.ends = Some(request);
    append.expected_generation = Some(99);
    assert!(store.append(append).await.is_err());
    assert_eq!(
        text(&*store, &author).await,
        Some((request, "kept".to_owned()))
    );
}

pub async fn a_reply_of_ten_thousand_deltas_is_one_message<S: Subject>() {
    // goose#7850, goose#7962: every token became a row.
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let request = author.next_try();
    let mut whole = Reply::default();
    let mut offset = 0;
    for flush in 0..100 {
        let deltas: Vec<Delta> = (0..100)
            .map(|n| Delta {
                part: 0,
                change: Change::Text {
                    text: format!("{} ", flush * 100 + n),
                },
            })
            .collect();
        deltas.iter().cloned().for_each(|delta| whole.apply(delta));
        let bytes = encode(&deltas).unwrap();
        let length = bytes.len() as u64;
        let chunk = DraftChunk {
            request,
            offset,
            bytes,
        };
        let ack = store.write_draft(author.fence, chunk).await.unwrap();
        assert_eq!(ack, DraftAck::Kept);
        offset += length;
    }
    let Draft { bytes, .. } = store.draft(author.agent).await.unwrap().unwrap();
    let streamed = decode(&bytes).unwrap();
    assert_eq!(streamed, whole);
    let message = MessageAdded {
        request: Some(request),
        status: MessageStatus::Complete,
        stop: Some(StopReason::EndTurn),
        blocks: streamed.finish(request, []),
    };
    let mut append = Append::new(author.fence, vec![author.event(None, message.clone())]);
    append.ends = Some(request);
    store.append(append).await.unwrap();

    assert_eq!(store.draft(author.agent).await.unwrap(), None);
    let events = events_of(&*store, author.agent).await;
    assert_eq!(events.len(), 3);
    assert_eq!(events[2].body, Body::MessageAdded(message));
}

pub async fn a_draft_has_limits_that_name_themselves<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let author = Author::create(&*store, 1, "one").await;
    for (offset, size) in [(0, 1024 * 1024 + 1), (32 * 1024 * 1024, 1), (u64::MAX, 1)] {
        let chunk = DraftChunk {
            request: attempt(1, 1),
            offset,
            bytes: vec![b'x'; size],
        };
        let refused = store.write_draft(author.fence, chunk).await;
        let Err(Error::TooLarge { size, limit, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert!(size > limit, "{size} {limit}");
    }
}

pub async fn a_piece_of_an_ended_try_is_dropped_for_ever<S: Subject>() {
    let subject = S::new().await;
    let mut author;
    let ended = attempt(1, 2);
    {
        let store = subject.open().await;
        author = Author::create(&*store, 1, "one").await;
        let fence = author.fence;
        assert_eq!(
            write(&*store, fence, ended, 0, "half").await,
            DraftAck::Kept
        );
        end(&*store, &mut author, ended).await;
        assert_eq!(text(&*store, &author).await, None);
        // Late, repeated, and of a try before.
        assert_eq!(
            write(&*store, fence, ended, 4, "late").await,
            DraftAck::Dropped
        );
        assert_eq!(
            write(&*store, fence, ended, 0, "half").await,
            DraftAck::Dropped
        );
        let before = attempt(1, 1);
        assert_eq!(
            write(&*store, fence, before, 0, "old").await,
            DraftAck::Dropped
        );
        assert_eq!(text(&*store, &author).await, None);
    }
    // A restart remembers it, and so does a new owner.
    let store = subject.open().await;
    let fence = author.fence;
    assert_eq!(
        write(&*store, fence, ended, 4, "late").await,
        DraftAck::Dropped
    );
    let fence = store.claim(author.agent, "next").await.unwrap().fence;
    author.fence = fence;
    assert_eq!(
        write(&*store, fence, ended, 0, "half").await,
        DraftAck::Dropped
    );
    // Ending it again, or an older one, does not take away what came after.
    let newer = attempt(2, 1);
    assert_eq!(
        write(&*store, fence, newer, 0, "next").await,
        DraftAck::Kept
    );
    end(&*store, &mut author, ended).await;
    end(&*store, &mut author, attempt(1, 1)).await;
    assert_eq!(
        text(&*store, &author).await,
        Some((newer, "next".to_owned()))
    );
    end(&*store, &mut author, newer).await;
    assert_eq!(text(&*store, &author).await, None);
}
