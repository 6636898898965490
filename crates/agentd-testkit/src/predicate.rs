//! What awaits an answer, determined from the events alone. It implements the rule and shares no code with the product:
//! there is something to send exactly if a prompt that was taken, a result or a notice came after the model's last
//! message. A command that the user ran is told, but asks for nothing.

use agentd_core::event::{Body, CommandOutput, Event, MessageStatus, TurnStatus};
use agentd_core::id::{CommandId, PromptId, TurnId};
use agentd_core::message::Block;
use std::collections::{BTreeMap, BTreeSet};

/// `lineage` are the events that a window is made of, oldest first.
pub fn awaits_answer(lineage: &[&Event]) -> bool {
    // Prompts that may be taken: those of the same conversation that no turn has taken yet.
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
            Body::PromptBlocked(blocked) => {
                takeable.remove(&blocked.prompt);
            }
            Body::PromptsRemoved(removed) => {
                takeable.retain(|prompt| !removed.prompts.contains(prompt));
            }
            Body::ResultAdded(_) | Body::Notice(_) | Body::InstructionsChanged(_) => {
                last_word = Some(Speaker::Us)
            }
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

/// The words that every request must contain, whatever was compacted: those of the open turn's prompts, and of
/// everything after the model's last message. A turn that was limited stays open, because it can be continued. If a
/// prompt's turn is not open when a summary is written, the summary may replace the prompt permanently: a turn that an
/// invalid journal starts later does not restore it.
pub fn unanswered_words(lineage: &[&Event]) -> Vec<String> {
    let mut takeable: BTreeMap<PromptId, &[Block]> = BTreeMap::new();
    let mut open_turns: BTreeSet<TurnId> = BTreeSet::new();
    let mut prompts: Vec<(Option<TurnId>, &[Block])> = Vec::new();
    let mut commands: BTreeMap<CommandId, &CommandOutput> = BTreeMap::new();
    let mut since: Vec<String> = Vec::new();
    for event in lineage {
        match &event.body {
            Body::ConversationBegan(_) => {
                takeable.clear();
                open_turns.clear();
            }
            Body::Prompt(prompt) => {
                takeable.insert(prompt.prompt, &prompt.blocks);
            }
            Body::PromptsTaken(taken) => {
                let taken = taken.prompts.iter();
                for blocks in taken.filter_map(|prompt| takeable.remove(prompt)) {
                    prompts.push((event.turn, blocks));
                    blocks.iter().for_each(|block| block.words(&mut since));
                }
            }
            Body::PromptBlocked(blocked) => {
                takeable.remove(&blocked.prompt);
            }
            Body::PromptsRemoved(removed) => {
                takeable.retain(|prompt, _| !removed.prompts.contains(prompt));
            }
            Body::ResultAdded(result) => {
                let blocks = result.blocks.iter();
                blocks.for_each(|block| block.words(&mut since));
            }
            Body::CommandOutput(command) => {
                commands.insert(command.command, command);
            }
            Body::CommandsTaken(taken) => {
                let taken = taken.commands.iter();
                for command in taken.filter_map(|command| commands.remove(command)) {
                    since.extend([command.line.clone(), command.output.clone()]);
                }
            }
            Body::Notice(notice) => since.push(notice.text.clone()),
            Body::InstructionsChanged(changed) => since.push(changed.text.clone()),
            Body::MessageAdded(message) if message.status != MessageStatus::Superseded => {
                since.clear();
            }
            Body::TurnStarted(started) if started.compacts.is_none() => {
                match started.resumes {
                    Some(resumed) if open_turns.contains(&resumed) => {}
                    resumed => open_turns = resumed.into_iter().collect(),
                }
                open_turns.extend(event.turn);
            }
            Body::TurnEnded(ended) if !ended.compacts && ended.status != TurnStatus::Limited => {
                open_turns.clear();
            }
            Body::Summary(_) => prompts.retain(|(turn, _)| is_open(&open_turns, *turn)),
            _ => {}
        }
    }
    prompts.retain(|(turn, _)| is_open(&open_turns, *turn));
    for (_, blocks) in &prompts {
        blocks.iter().for_each(|block| block.words(&mut since));
    }
    since
}

fn is_open(open_turns: &BTreeSet<TurnId>, turn: Option<TurnId>) -> bool {
    turn.is_some_and(|turn| open_turns.contains(&turn))
}
