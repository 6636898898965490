//! A new conversation, and the old one again.

use super::Scene;
use crate::clock;
use crate::demo::claims::Claims;
use crate::demo::evidence::{self, is_so};
use crate::error::Error;
use agentd_core::event::{Direction, NewEvent, Prompt, PromptsTaken};
use agentd_core::id::{AgentId, ConversationId, PromptId, Seq};
use agentd_core::message::Block;
use agentd_core::request;
use agentd_core::window::Window;
use agentd_core::wire;
use agentd_store::Loaded;

const NEXT: &str = "what did we do?";

/// Returns the size of the request that was compared.
pub async fn tell(claims: &mut Claims<'_>, scene: &mut Scene) -> Result<usize, Error> {
    claims.step("Reset it: a new, empty conversation")?;
    let (folder, agent) = scene.open().await?;
    let before = folder.load(agent).await?;
    let old = before.state.tree.current();
    let expected = next_request(&before);
    folder.begin(agent).await?;
    let fresh = folder.load(agent).await?;
    let is_sealed = |id| {
        fresh
            .state
            .tree
            .get(id)
            .is_some_and(|it| it.sealed.is_some())
    };
    claims.check(
        "one commit sealed the old conversation and began the new one",
        is_so(
            old.is_some_and(is_sealed) && fresh.state.tree.current() != old,
            format!("{} conversations", fresh.state.tree.len()),
            format!("current is {:?}", fresh.state.tree.current()),
        ),
    )?;
    claims.check(
        "the new one is empty: there is nothing to send",
        is_so(
            fresh.window.items().is_empty(),
            "",
            format!("there is {:?}", fresh.window.items()),
        ),
    )?;
    drop(folder);
    let home = scene.home.to_string_lossy().into_owned();
    let worker = scene.worker(&["--resume", &home, "run `echo a fresh start`"])?;
    let (result, _) = scene.finish(worker).await?;
    claims.check(
        "the agent works in it",
        is_so(
            result.text().contains("a fresh start"),
            "",
            format!("it says {:?}", result.text()),
        ),
    )?;

    claims.step("Undo the reset")?;
    let (folder, agent) = scene.open().await?;
    folder.step(agent, Direction::Undo).await?;
    let after = folder.load(agent).await?;
    claims.check(
        "the old conversation, the same one, is current again",
        is_so(
            after.state.tree.current() == old,
            "",
            format!("current is {:?}", after.state.tree.current()),
        ),
    )?;
    let found = next_request(&after);
    let same = match expected.is_empty() {
        true => Err("there was nothing to compare it with".to_owned()),
        false => evidence::same_bytes(&expected, &found),
    };
    claims.check(
        "the next request is what it would have been, byte for byte",
        same,
    )?;
    Ok(found.len())
}

/// What would leave if this were prompted next. Nothing is written.
fn next_request(loaded: &Loaded) -> Vec<u8> {
    let window = prompted(&loaded.window, NEXT);
    let context = window.context();
    let request = context.and_then(|context| request::answer(&window, context));
    request.map_or_else(Vec::new, |request| {
        wire::encode(&request).to_string().into_bytes()
    })
}

/// The window as if this had been prompted.
pub fn prompted(window: &Window, text: &str) -> Window {
    let mut window = window.clone();
    let id = PromptId::new(clock::new_id());
    let blocks = vec![Block::text(text)];
    let prompts = vec![id];
    let bodies = [
        Prompt { prompt: id, blocks }.into(),
        PromptsTaken { prompts }.into(),
    ];
    for body in bodies {
        let event = NewEvent {
            at: clock::now(),
            conversation: ConversationId::from_bytes([0; 16]),
            turn: None,
            body,
        };
        window.apply(&event.placed(AgentId::from_bytes([0; 16]), Seq(u64::MAX)));
    }
    window
}
