//! Agents whose program runs their turns: it sends no request to the lab's model, and a turn of it ends with its process.

use super::story::{Story, Turn};

/// The names in the context that such an agent's journal has in place of a provider.
const NAMES: [&str; 2] = ["acp", "command"];

/// Whether a program of its own runs the agent's turns.
pub fn is_outer(story: &Story<'_>) -> bool {
    let mut contexts = story.events.iter().filter(|event| event.is("context"));
    contexts.any(|event| NAMES.contains(&event.text("provider")))
}

/// Whether the turn ended because its program could not finish it, and the conversation was told so.
pub fn ended_with_its_program(story: &Story<'_>, turn: &Turn<'_>) -> bool {
    let own = story.events.iter();
    let mut own = own.filter(|event| event.turn.as_deref() == Some(turn.id));
    let told = own
        .any(|event| event.is("notice") && matches!(event.text("cause"), "crashed" | "restarted"));
    told && is_outer(story)
}
