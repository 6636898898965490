//! The title of a conversation for which the user has set none: the text it begins with. It is derived from the first
//! prompt when it is displayed, so it costs no request, is never stale, and disappears when the text is purged.

use crate::event::{Body, Event};
use crate::id::PromptId;
use crate::message::Block;
use crate::outbox::binding::shown_text;

/// The maximum length of a title, in characters.
const LONGEST: usize = 60;

/// The title from a conversation's first events: one that a hook set, or its first prompt.
pub fn of_events(events: &[Event]) -> Option<String> {
    of_hooks(events).or_else(|| of_prompts(events))
}

/// The title that a hook set in one of these.
pub fn of_hooks(events: &[Event]) -> Option<String> {
    events.iter().rev().find_map(|event| match &event.body {
        Body::HookOutput(output) => of_text(output.answer.title.as_deref()?),
        _ => None,
    })
}

/// The first prompt that was not removed, with its newest text.
fn of_prompts(events: &[Event]) -> Option<String> {
    let mut said: Vec<(PromptId, Option<String>)> = Vec::new();
    for event in events {
        match &event.body {
            Body::Prompt(prompt) => {
                let title = of_blocks(&prompt.blocks);
                match said.iter_mut().find(|(known, _)| *known == prompt.prompt) {
                    Some(known) => known.1 = title,
                    None => said.push((prompt.prompt, title)),
                }
            }
            Body::PromptsRemoved(gone) => said.retain(|(known, _)| !gone.prompts.contains(known)),
            _ => {}
        }
    }
    said.into_iter().find_map(|(_, title)| title)
}

/// The first words of a prompt.
pub fn of_blocks(blocks: &[Block]) -> Option<String> {
    blocks.iter().find_map(|block| match block {
        Block::Text { text } => of_text(&shown_text(text)),
        _ => None,
    })
}

/// The first line that is not blank, cut between two words.
pub fn of_text(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let whole = words.join(" ");
    if whole.chars().count() <= LONGEST {
        return Some(whole);
    }
    let mut title: String = whole.chars().take(LONGEST - 1).collect();
    let is_within_a_word = whole.chars().nth(LONGEST - 1) != Some(' ');
    if let (true, Some(end)) = (is_within_a_word, title.rfind(' ')) {
        title.truncate(end);
    }
    title.truncate(title.trim_end().len());
    title.push('…');
    Some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_and_not_too_long() {
        assert_eq!(
            of_text("\n  Fix  the tests \nand more"),
            Some("Fix the tests".into())
        );
        assert_eq!(of_text(" \n\t"), None);
        let long = of_text(&"word ".repeat(50)).unwrap();
        assert_eq!(long, format!("{}…", ["word"; 12].join(" ")));
        let one = of_text(&"ü".repeat(100)).unwrap();
        assert_eq!(one.chars().count(), LONGEST);
        let exact = "x".repeat(LONGEST);
        assert_eq!(of_text(&exact), Some(exact));
    }
}
