//! What awaits an answer, told from the events alone. Written from the rule, not from the product:
//! there is something to send exactly when a prompt that was taken, a result or a notice has come
//! since the model last spoke.

use agentd_core::event::{Body, Event, MessageStatus};
use std::collections::BTreeSet;

/// `lineage` are the events that a window is made of, oldest first.
pub fn awaits_answer(lineage: &[&Event]) -> bool {
    // Prompts that may be taken: those of the same conversation that nobody has taken yet.
    let mut takeable = BTreeSet::new();
    let mut last_word = None;
    for event in lineage {
        match &event.body {
            Body::ConversationBegan(_) => takeable.clear(),
            Body::Prompt(prompt) => {
                takeable.insert(prompt.prompt);
            }
            Body::PromptsTaken(taken) => {
                for prompt in &taken.prompts {
                    if takeable.remove(prompt) {
                        last_word = Some(Speaker::Us);
                    }
                }
            }
            Body::ResultAdded(_) | Body::Notice(_) => last_word = Some(Speaker::Us),
            Body::MessageAdded(message) => match message.status {
                MessageStatus::Complete | MessageStatus::Interrupted => {
                    last_word = Some(Speaker::Model);
                }
                MessageStatus::Superseded => {}
            },
            _ => {}
        }
    }
    last_word == Some(Speaker::Us)
}

#[derive(PartialEq)]
enum Speaker {
    Us,
    Model,
}
