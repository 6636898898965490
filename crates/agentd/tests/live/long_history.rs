//! A chat with 20,000 messages: the beginning and the end of its history are on the screen when the user asks for them.

use super::chat::{chat, press};
use super::test_live::{TestLive, until};
use agentd_core::event::{Body, MessageAdded, MessageStatus, Mode, NewEvent, StopReason};
use agentd_core::id::{AgentId, ConversationId};
use agentd_core::message::Block;
use agentd_core::spec::AgentSpec;
use agentd_core::time::Timestamp;
use agentd_store::{Append, Options, SqliteStore, Store as _};
use std::path::Path;
use uuid::Uuid;

const MESSAGES: usize = 20_000;
const AT_ONCE: usize = 2000;

const CTRL_HOME: &str = "\x1b[1;5H";
const CTRL_END: &str = "\x1b[1;5F";
const PAGE_UP: &str = "\x1b[5~";

fn answer(n: usize) -> Body {
    let message = MessageAdded {
        request: None,
        status: MessageStatus::Complete,
        stop: Some(StopReason::EndTurn),
        blocks: vec![Block::text(format!("answer {n}"))],
    };
    message.into()
}

/// Writes the agent `coder` with its history into the state directory.
async fn write(home: &Path) {
    let store = SqliteStore::open(Options::new(home)).unwrap();
    let agent = AgentId::new(Uuid::now_v7());
    let conversation = ConversationId::new(Uuid::now_v7());
    let fence = store.claim(agent, "test").await.unwrap().fence;
    let spec = AgentSpec::default();
    let created = agentd_core::begin::create("coder", Mode::Persistent, &spec, conversation);
    let created = created.into_iter().map(|(_, body)| body);
    let bodies: Vec<Body> = created.chain((1..=MESSAGES).map(answer)).collect();
    for some in bodies.chunks(AT_ONCE) {
        let events = some.iter().map(|body| NewEvent {
            at: Timestamp::from_millis(1_700_000_000_000),
            conversation,
            turn: None,
            body: body.clone(),
        });
        let append = Append::new(fence, events.collect());
        store.append(append).await.unwrap();
    }
    store.wait_caught_up().await.unwrap();
}

#[test]
fn twenty_thousand_messages_are_scrolled() {
    let live = TestLive::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(write(&live.home()));
    let mut terminal = chat(&live);
    let last = format!("answer {MESSAGES}");
    let screen = until(&terminal, &last);
    assert_eq!(screen.matches(&last).count(), 1, "{screen}");
    press(&mut terminal, PAGE_UP);
    until(&terminal, "scrolled back");
    press(&mut terminal, CTRL_HOME);
    let screen = until(&terminal, "answer 1\n");
    assert!(screen.contains("answer 2\n"), "{screen}");
    press(&mut terminal, CTRL_END);
    until(&terminal, &last);
}
