//! A chat with 20,000 messages: the beginning and the end of its history are on the screen when the user asks for them.

use super::chat::{chat, press};
use super::test_live::{TestLive, until};
use agentd_core::event::*;
use agentd_core::id::{AgentId, ConversationId, Incarnation, PromptId, TryId, TurnId};
use agentd_core::message::Block;
use agentd_core::spec::AgentSpec;
use agentd_core::time::Timestamp;
use agentd_core::usage::Usage;
use agentd_store::{Append, Options, SqliteStore, Store as _};
use std::path::Path;
use uuid::Uuid;

const TURNS: u64 = 10_000;
const TURNS_PER_APPEND: u64 = 500;

const CTRL_HOME: &str = "\x1b[1;5H";
const CTRL_END: &str = "\x1b[1;5F";
const PAGE_UP: &str = "\x1b[5~";

/// The events of one turn: `question N` and `answer N`.
fn turn(n: u64) -> Vec<Body> {
    let prompt = PromptId::new(Uuid::from_u128(u128::from(n)));
    let request = TryId {
        incarnation: Incarnation(1),
        n,
    };
    let (key, mode) = (None, PromptMode::Queue);
    vec![
        PromptQueued { prompt, key, mode }.into(),
        Prompt {
            prompt,
            blocks: vec![Block::text(format!("question {n}"))],
        }
        .into(),
        TurnStarted::default().into(),
        PromptsTaken {
            prompts: vec![prompt],
        }
        .into(),
        RequestSent {
            request,
            purpose: Purpose::Answer,
            grant: Grant::default(),
        }
        .into(),
        MessageAdded {
            request: Some(request),
            status: MessageStatus::Complete,
            stop: Some(StopReason::EndTurn),
            blocks: vec![Block::text(format!("answer {n}"))],
        }
        .into(),
        RequestEnded {
            request,
            outcome: RequestOutcome::Completed,
            usage: Usage::default(),
            estimated: false,
            cost: None,
            provider_request: None,
        }
        .into(),
        TurnEnded::with(TurnStatus::Completed).into(),
    ]
}

/// Writes the agent `coder` with its history into the state directory.
async fn write(home: &Path) {
    let store = SqliteStore::open(Options::new(home)).unwrap();
    let agent = AgentId::new(Uuid::now_v7());
    let conversation = ConversationId::new(Uuid::now_v7());
    let fence = store.claim(agent, "test").await.unwrap().fence;
    let spec = AgentSpec::default();
    let created = agentd_core::begin::create("coder", Mode::Persistent, &spec, conversation);
    let event = |turn, body| NewEvent {
        at: Timestamp::from_millis(1_700_000_000_000),
        conversation,
        turn,
        body,
    };
    let mut events: Vec<NewEvent> = created.into_iter().map(|(_, body)| event(None, body)).collect();
    for n in 1..=TURNS {
        let id = TurnId::new(Uuid::from_u128(u128::from(n)));
        for (place, body) in turn(n).into_iter().enumerate() {
            // The prompt comes before its turn.
            events.push(event((place >= 2).then_some(id), body));
        }
        if n % TURNS_PER_APPEND == 0 {
            let some = std::mem::take(&mut events);
            store.append(Append::new(fence, some)).await.unwrap();
        }
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
    let last = format!("answer {TURNS}");
    let screen = until(&terminal, &last);
    assert_eq!(screen.matches(&last).count(), 1, "{screen}");
    press(&mut terminal, PAGE_UP);
    until(&terminal, "scrolled back");
    press(&mut terminal, CTRL_HOME);
    let screen = until(&terminal, "> question 1\n");
    assert!(screen.contains("answer 1\n"), "{screen}");
    assert!(screen.contains("> question 2\n"), "{screen}");
    press(&mut terminal, CTRL_END);
    until(&terminal, &last);
}
