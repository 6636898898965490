//! Step 6: a new conversation.

use super::{Requests, take_over};
use crate::demo::claims::Claims;
use crate::demo::driver::Driver;
use crate::demo::evidence::is_so;
use crate::demo::lifecycle;
use crate::demo::model::ask_for_product;
use crate::demo::pen::failed;
use crate::error::Error;
use agentd_core::event::After;
use agentd_core::id::ConversationId;
use agentd_core::message::{Block, Message};
use agentd_core::request;
use agentd_core::wire;
use agentd_store::{SqliteStore, Store as _};

/// What the reset left behind.
pub struct Left {
    pub conversation: ConversationId,
    /// What would have been sent next, had there been no reset.
    pub next: Vec<u8>,
}

/// The prompt that is, or would be, sent next.
pub fn next_prompt() -> String {
    ask_for_product(6, 7)
}

pub async fn tell(
    claims: &mut Claims<'_>,
    store: &SqliteStore,
    mut driver: Driver<Requests>,
) -> Result<Left, Error> {
    claims.step("Reset: a new, empty conversation")?;
    let agent = driver.pen.fence.agent;
    let before = store.load(agent).await.map_err(failed)?;
    let next = lifecycle::request_after(&before, &next_prompt());
    let next = next.map(|next| wire::encode(&next).to_string().into_bytes());

    let (old, new) = lifecycle::reset(&mut driver.pen).await?;
    let loaded = store.load(agent).await.map_err(failed)?;
    let tree = &loaded.state.tree;
    let sealed = tree.get(old).is_some_and(|old| old.sealed.is_some());
    claims.check(
        "one commit sealed the old conversation and began the new one",
        is_so(
            sealed && tree.current() == Some(new),
            format!("{} conversations", tree.len()),
            format!("current is {:?}, {old} is sealed: {sealed}", tree.current()),
        ),
    )?;
    let nothing = loaded.window.items().is_empty()
        && request::answer(&loaded.window, &crate::demo::model::context()).is_none();
    claims.check(
        "the new one is empty: there is nothing to send",
        is_so(nothing, "", format!("there is {:?}", loaded.window.items())),
    )?;

    let mut driver = take_over(store, agent, After::Start).await?;
    let prompt = ask_for_product(3, 4);
    driver.prompt(&prompt).await?;
    let expected = [Message::user(vec![Block::text(prompt)])];
    let messages = driver.witness.0.first().map(|sent| &sent.messages);
    claims.check(
        "its first request holds the new prompt, and not a word of the old ones",
        is_so(
            messages.is_some_and(|messages| *messages == expected),
            "1 message",
            format!("it holds {messages:?}"),
        ),
    )?;
    Ok(Left {
        conversation: old,
        next: next.unwrap_or_default(),
    })
}
