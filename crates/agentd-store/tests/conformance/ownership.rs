//! One owner at a time: an owner that was overtaken is told so, and what is sent twice is stored once.

use crate::author::{Author, agent_id, said};
use crate::run::soon;
use crate::subject::Subject;
use agentd_core::event::{NewEvent, Note};
use agentd_core::id::{Incarnation, Seq};
use agentd_store::{Ack, Append, DraftChunk, Error, Fence, Source};
use tokio::task::JoinSet;

fn stale<T: std::fmt::Debug>(answer: Result<T, Error>, held: u64, current: u64) {
    let Err(Error::StaleFence {
        held: found_held,
        current: found_current,
        ..
    }) = &answer
    else {
        panic!("{answer:?}");
    };
    assert_eq!((*found_held, *found_current), (held, current));
    assert!(answer.unwrap_err().to_string().contains("must stop"));
}

pub async fn a_second_owner_makes_the_first_one_stale_for_everything<S: Subject>() {
    // claude-code#39151, #69364; adk-python#4751; goose#12321: two writers of one conversation.
    let subject = S::new().await;
    let store = subject.open().await;
    let mut first = Author::create(&*store, 1, "one").await;
    let second = store.claim(first.agent, "second").await.unwrap().fence;
    let events = first.turn("mine", "yours");
    stale(
        store.append(Append::new(first.fence, events.clone())).await,
        1,
        2,
    );
    let chunk = DraftChunk {
        request: first.next_try(),
        offset: 0,
        bytes: b"mine".to_vec(),
    };
    stale(store.write_draft(first.fence, chunk).await, 1, 2);
    // Nothing of it is there, and the second goes on as if nothing had been.
    let ack = store.append(Append::new(second, events)).await.unwrap();
    let (from, to) = (Seq(3), Seq(10));
    assert_eq!(
        ack,
        Ack::Committed {
            first: from,
            last: to
        }
    );
    // A fence from the future is as good as one from the past.
    let event = said(second, "x");
    let fence = Fence { epoch: 9, ..second };
    stale(store.append(Append::new(fence, vec![event])).await, 9, 2);
}

fn from(author: &mut Author, incarnation: u64, n: u64) -> Append {
    let mut append = Append::new(author.fence, author.turn("words", "answer"));
    let incarnation = Incarnation(incarnation);
    append.source = Some(Source { incarnation, n });
    append
}

pub async fn what_is_sent_again_is_applied_once_also_after_a_restart<S: Subject>() {
    let subject = S::new().await;
    let mut store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let place = |n: u64| {
        let first = Seq(3 + (n - 1) * 8);
        (first, Seq(first.0 + 7))
    };
    for n in 1..=5 {
        let append = from(&mut author, 7, n);
        let (first, last) = place(n);
        let ack = store.append(append.clone()).await.unwrap();
        assert_eq!(ack, Ack::Committed { first, last });
        if n % 2 == 0 {
            store = subject.reopen(store).await;
        }
        let again = Ack::Repeated {
            place: Some((first, last)),
        };
        assert_eq!(store.append(append).await.unwrap(), again);
        // One that came before: it is there, and where is not known any more.
        if n > 1 {
            let older = from(&mut author, 7, n - 1);
            let ack = store.append(older).await.unwrap();
            assert_eq!(ack, Ack::Repeated { place: None });
        }
        // Appends of others in between, without a counter, change nothing about it.
        if n == 5 {
            let events = author.reset();
            author.append(&*store, events).await;
            let ack = store.append(from(&mut author, 7, 5)).await.unwrap();
            assert_eq!(ack, again);
        }
    }
    store.wait_caught_up().await.unwrap();
    let state = store.load(author.agent).await.unwrap().state;
    assert_eq!(state.head, Seq(2 + 5 * 8 + 2));
}

pub async fn the_counter_survives_snapshots_and_a_long_time_without_it<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    store.append(from(&mut author, 3, 1)).await.unwrap();
    store.append(from(&mut author, 3, 2)).await.unwrap();
    for _ in 0..20 {
        let events = author.turn("without", "a counter");
        author.append(&*store, events).await;
        store.wait_caught_up().await.unwrap();
    }
    let store = subject.reopen(store).await;
    let again = store.append(from(&mut author, 3, 2)).await.unwrap();
    let place = Some((Seq(11), Seq(18)));
    assert_eq!(again, Ack::Repeated { place });
    let refused = store.append(from(&mut author, 3, 4)).await;
    assert!(matches!(
        refused,
        Err(Error::OutOfOrder { expected: 3, .. })
    ));
}

pub async fn a_counter_that_skips_or_an_incarnation_that_is_over_is_refused<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let order = |answer: Result<Ack, Error>| match answer {
        Err(Error::OutOfOrder { sent, expected, .. }) => (sent, expected),
        other => panic!("{other:?}"),
    };
    assert_eq!(order(store.append(from(&mut author, 2, 2)).await), (2, 1));
    assert_eq!(order(store.append(from(&mut author, 2, 0)).await), (0, 1));
    store.append(from(&mut author, 2, 1)).await.unwrap();
    assert_eq!(order(store.append(from(&mut author, 2, 3)).await), (3, 2));
    assert_eq!(order(store.append(from(&mut author, 2, 0)).await), (0, 2));
    // A newer process begins at one; then the older one has nothing to say any more.
    assert_eq!(order(store.append(from(&mut author, 3, 2)).await), (2, 1));
    store.append(from(&mut author, 3, 1)).await.unwrap();
    for n in [1, 2] {
        let refused = store.append(from(&mut author, 2, n)).await;
        assert!(matches!(
            refused,
            Err(Error::StaleIncarnation {
                sent: Incarnation(2),
                current: Incarnation(3),
                ..
            })
        ));
    }
    // What was refused has left nothing behind.
    let state = store.load(author.agent).await.unwrap().state;
    assert_eq!(state.head, Seq(2 + 16));
}

pub async fn of_two_who_expect_the_same_generation_one_gets_it<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    for round in 0..20 {
        let expected = store.load(author.agent).await.unwrap().state.generation();
        let mut both = JoinSet::new();
        for _ in 0..2 {
            let mut append = Append::new(author.fence, author.reset());
            append.expected_generation = Some(expected);
            let store = store.clone();
            both.spawn(async move { store.append(append).await });
        }
        let mut answers = [soon(both.join_next()).await, soon(both.join_next()).await]
            .map(|answer| answer.unwrap().unwrap());
        answers.sort_by_key(Result::is_err);
        assert!(answers[0].is_ok(), "round {round}");
        let Err(Error::GenerationChanged {
            expected: asked,
            current,
            ..
        }) = answers[1]
        else {
            panic!("{:?}", answers[1]);
        };
        assert_eq!((asked, current), (expected, expected + 1));
    }
}

pub async fn what_is_refused_before_the_disk_is_asked_names_its_limit<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let refused = store.append(Append::new(author.fence, Vec::new())).await;
    assert!(matches!(refused, Err(Error::EmptyAppend)));
    let event = author.event(
        None,
        Note {
            about: None,
            text: String::new(),
        },
    );
    let many: Vec<NewEvent> = vec![event; 20_001];
    let refused = store.append(Append::new(author.fence, many)).await;
    let text = refused.unwrap_err().to_string();
    let told = "an append of 20001 events exceeds the limit of 20000; make it smaller";
    assert_eq!(text, told);
    let huge = Note {
        about: None,
        text: "x".repeat(33 * 1024 * 1024),
    };
    let huge = author.event(None, huge);
    let refused = store.append(Append::new(author.fence, vec![huge])).await;
    assert!(matches!(refused, Err(Error::TooLarge { .. })));
    let unknown = Fence {
        agent: agent_id(77),
        epoch: 1,
    };
    let event = author.event(
        None,
        Note {
            about: None,
            text: "x".to_owned(),
        },
    );
    let refused = store.append(Append::new(unknown, vec![event])).await;
    assert!(matches!(refused, Err(Error::NoSuchAgent { .. })));
}
