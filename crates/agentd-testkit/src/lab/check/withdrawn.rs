//! Turns whose prompt the user removed while they were beginning.

use super::story::{Story, Turn};

/// Whether the turn takes only prompts that were removed before: it does nothing.
pub fn is_withdrawn(story: &Story<'_>, turn: &Turn<'_>) -> bool {
    let of_turn = |id: Option<&str>| id == Some(turn.id);
    let mut events = story.events.iter();
    let takes = events.any(|event| of_turn(event.turn.as_deref()) && event.is("prompts_taken"));
    let mut taken = story.prompts.values().flat_map(|prompt| &prompt.taken);
    takes && !taken.any(|(_, by)| *by == turn.id)
}
