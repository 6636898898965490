//! A reset, and its undo.

use crate::demo::claims::Claims;
use crate::demo::daemon::{DemoDaemon, NAME};
use crate::demo::evidence::{self, is_so};
use crate::demo::journal::{bytes, next_request, prompted};
use crate::demo::line;
use crate::error::Error;
use agentd_client::api::{Reset, Status};
use agentd_core::event::Direction;
use agentd_core::id::{ConversationId, Seq};
use agentd_core::request::Request;

const FRESH: &str = "run `echo a fresh start`";
const NEXT: &str = "list the files here";

/// Returns the size of the request that was compared.
pub async fn tell(claims: &mut Claims<'_>, demo: &mut DemoDaemon) -> Result<usize, Error> {
    claims.step("Reset: begin a new conversation")?;
    let journal = demo.journal(claims).await?;
    let current = demo.agent().await?.conversation.map(|it| it.id);
    let old = current.unwrap_or_else(|| ConversationId::from_bytes([0; 16]));
    let expected = next_request(&prompted(&journal.window(old), NEXT));
    claims.say(&format!("agentd reset {NAME}"))?;
    let receipt = demo.client().reset(NAME, &Reset::default()).await?;
    let tree = demo.client().conversations(NAME).await?;
    let is_sealed = tree
        .conversations
        .iter()
        .any(|it| it.id == old && it.sealed.is_some());
    claims.check(
        "the old conversation is sealed and kept, and a new one is current",
        is_so(
            receipt.old == old && is_sealed && tree.current == Some(receipt.new),
            format!("{} conversations", tree.conversations.len()),
            format!("{receipt:?}, {tree:?}"),
        ),
    )?;
    let sent = demo.send(claims, FRESH).await?;
    let answer = demo.finish(claims, &sent).await?;
    let journal = demo.journal(claims).await?;
    let first = journal.request_after(receipt.new, Seq::ZERO);
    claims.check(
        "the next request contains only the new prompt",
        is_so(
            first.as_ref().map(words).as_deref() == Some(&[FRESH]),
            "",
            format!("it was {first:?}"),
        ),
    )?;
    claims.check(
        "the agent works in the new conversation",
        is_so(
            answer.status == Status::Completed && answer.text.contains("a fresh start"),
            "",
            format!("the answer is {:?}", answer.text),
        ),
    )?;
    undo(claims, demo, old, expected.as_ref()).await
}

async fn undo(
    claims: &mut Claims<'_>,
    demo: &mut DemoDaemon,
    old: ConversationId,
    expected: Option<&Request>,
) -> Result<usize, Error> {
    claims.step("Undo the reset")?;
    claims.say(&format!("agentd reset {NAME} --undo"))?;
    let undo = Reset {
        step: Some(Direction::Undo),
        ..Reset::default()
    };
    demo.client().reset(NAME, &undo).await?;
    let current = demo.agent().await?.conversation.map(|it| it.id);
    claims.check(
        "the old conversation is current again",
        is_so(current == Some(old), "", format!("current is {current:?}")),
    )?;
    let sent = demo.send(claims, NEXT).await?;
    let answer = demo.finish(claims, &sent).await?;
    let journal = demo.journal(claims).await?;
    let found = journal.request_after(old, sent.seq);
    let (before, after) = (bytes(expected), bytes(found.as_ref()));
    let same = match before.is_empty() {
        true => Err("there was nothing to compare it with".to_owned()),
        false => evidence::same_bytes(&before, &after),
    };
    claims.check(
        "the next request is byte for byte what it would have been without the reset",
        same,
    )?;
    let verdict = found.as_ref().map(evidence::is_valid);
    claims.check(
        "it is valid and needed no repair",
        verdict.unwrap_or_else(|| Err("no request was sent".to_owned())),
    )?;
    claims.check(
        "the agent continues in the old conversation",
        is_so(
            answer.status == Status::Completed && answer.conversation == old,
            "",
            format!("{answer:?}"),
        ),
    )?;
    Ok(after.len())
}

/// All texts of a request.
fn words(request: &Request) -> Vec<&str> {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    blocks
        .map(|block| line::text(block).unwrap_or("(something else)"))
        .collect()
}
