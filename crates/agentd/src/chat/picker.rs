//! A list from which the user chooses: turns and conversations.

use super::effect::{Conflicts, Effect, FilesPlan, Parts, RewindTo};
use crate::render::{count, line_of, time, word};
use agentd_client::api::{Conversations, OneConversation};
use agentd_core::begin::INIT;
use agentd_core::time::Timestamp;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

pub struct Choice {
    pub label: String,
    pub effect: Effect,
}

pub struct Picker {
    pub title: String,
    /// What is to be known before the choice.
    pub about: Vec<String>,
    pub choices: Vec<Choice>,
    pub selected: usize,
}

/// What a key asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Chosen(Effect),
    Leave,
    Nothing,
}

impl Picker {
    /// The turns of a conversation, newest first. The first choice leads to the other conversations.
    pub fn turns(one: &OneConversation, now: Timestamp) -> Self {
        let number = one.conversation.ordinal;
        let others = Choice {
            label: "another conversation…".to_owned(),
            effect: Effect::LoadConversations,
        };
        let turns = one.ended.iter().rev().map(|turn| {
            let words = turn.prompt.as_deref().map(line_of);
            let words = words.unwrap_or_else(|| match turn.compacts {
                true => "(compaction)".to_owned(),
                false => String::new(),
            });
            let ago = time::ago(turn.ended_at, now);
            let status = word(turn.status);
            let files = turn.files.filter(|files| *files > 0);
            let files = files.map(|files| format!(", {}", count(files, "file")));
            let files = files.unwrap_or_default();
            Choice {
                label: format!("{}. {words} · {status}, {ago}{files}", turn.number),
                effect: Effect::ChooseParts(RewindTo {
                    at: turn.id.to_string(),
                    conversation: Some(one.conversation.id),
                }),
            }
        });
        // In a branch, the label is where it began, which is not before its first turn.
        let conversation = &one.conversation;
        let has_first = conversation.from.is_none() && conversation.labels.contains_key(INIT);
        let first = has_first.then(|| Choice {
            label: "the beginning, before the first turn".to_owned(),
            effect: Effect::ChooseParts(RewindTo {
                at: INIT.to_owned(),
                conversation: Some(conversation.id),
            }),
        });
        let choices: Vec<Choice> = turns.chain(first).chain([others]).collect();
        Self {
            title: format!("Go back to the end of a turn of conversation {number}"),
            about: Vec::new(),
            choices,
            selected: 0,
        }
    }

    /// What a rewind returns to its position.
    pub fn parts(to: &RewindTo) -> Self {
        let choice = |label: &str, effect| Choice {
            label: label.to_owned(),
            effect,
        };
        let plan = |parts| Effect::PlanRewind {
            to: to.clone(),
            parts,
        };
        let conversation = Effect::Rewind {
            to: to.clone(),
            parts: Parts::Conversation,
            conflicts: Conflicts::Keep,
        };
        Self {
            title: "Rewind".to_owned(),
            about: Vec::new(),
            choices: vec![
                choice("the conversation; files stay as they are", conversation),
                choice("files; the conversation continues", plan(Parts::Files)),
                choice("both", plan(Parts::Both)),
            ],
            selected: 0,
        }
    }

    /// The files that a rewind would write. Those that something else changed are not overwritten by Enter alone.
    pub fn files(plan: &FilesPlan) -> Self {
        let rewind = |parts, conflicts| Effect::Rewind {
            to: plan.to.clone(),
            parts,
            conflicts,
        };
        let choice = |label: &str, effect| Choice {
            label: label.to_owned(),
            effect,
        };
        let mut choices = Vec::new();
        match plan.conflicts {
            Conflicts::Keep => {
                choices.push(choice("restore them", rewind(plan.parts, Conflicts::Keep)));
            }
            Conflicts::Overwrite => {
                let label =
                    "overwrite them: `agentd files undo` brings back what something else changed";
                choices.push(choice(label, rewind(plan.parts, Conflicts::Overwrite)));
            }
        }
        if plan.parts == Parts::Both {
            let label = "rewind only the conversation";
            choices.push(choice(label, rewind(Parts::Conversation, Conflicts::Keep)));
        }
        let selected = match plan.conflicts {
            Conflicts::Keep => 0,
            // Enter alone overwrites nothing.
            Conflicts::Overwrite => choices.len(),
        };
        choices.push(choice("do nothing", Effect::Redraw));
        Self {
            title: "Rewind files".to_owned(),
            about: plan.lines.clone(),
            choices,
            selected,
        }
    }

    /// All conversations, newest first. A choice leads to its turns.
    pub fn conversations(all: &Conversations, now: Timestamp) -> Self {
        let newest = all.conversations.iter().rev();
        let choices = newest.map(|it| {
            let title = it.title.as_deref().map(line_of).unwrap_or_default();
            let current = if it.current { " · current" } else { "" };
            let (ordinal, turns) = (it.ordinal, it.ended_turns);
            let ago = time::ago(it.began_at, now);
            Choice {
                label: format!("{ordinal}. {title} · {turns} turns, {ago}{current}"),
                effect: Effect::LoadTurns(Some(it.id)),
            }
        });
        Self {
            title: "Conversations".to_owned(),
            about: Vec::new(),
            choices: choices.collect(),
            selected: 0,
        }
    }

    pub fn key(&mut self, key: KeyEvent) -> Reply {
        let last = self.choices.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Reply::Leave,
            KeyCode::Enter => {
                let chosen = self.choices.get(self.selected);
                return chosen.map_or(Reply::Leave, |it| Reply::Chosen(it.effect.clone()));
            }
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::PageDown => self.selected = (self.selected + 10).min(last),
            _ => {}
        }
        Reply::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::{AgentRef, Conversation, Origin, Usage};
    use agentd_core::event::BeginSource;
    use agentd_core::id::{AgentId, ConversationId, Seq};
    use std::collections::BTreeMap;

    #[test]
    fn a_choice_is_made_or_left() {
        let choice = |label: &str| Choice {
            label: label.to_owned(),
            effect: Effect::Copy(label.to_owned()),
        };
        let mut picker = Picker {
            title: String::new(),
            about: Vec::new(),
            choices: vec![choice("a"), choice("b")],
            selected: 0,
        };
        for _ in 0..3 {
            assert_eq!(picker.key(KeyCode::Down.into()), Reply::Nothing);
        }
        let chosen = Reply::Chosen(Effect::Copy("b".to_owned()));
        assert_eq!(picker.key(KeyCode::Enter.into()), chosen);
        assert_eq!(picker.key(KeyCode::Esc.into()), Reply::Leave);
        picker.choices.clear();
        assert_eq!(picker.key(KeyCode::Enter.into()), Reply::Leave);
    }

    fn conversation(from: Option<Origin>) -> OneConversation {
        let conversation = Conversation {
            id: ConversationId::from_bytes([1; 16]),
            ordinal: 1,
            parent: None,
            from,
            source: BeginSource::Create,
            began: Seq(1),
            began_at: Timestamp::from_millis(0),
            head: Seq(9),
            sealed: None,
            current: true,
            title: None,
            turns: 0,
            ended_turns: 0,
            compactions: 0,
            context_tokens: 0,
            usage: Usage::default(),
            labels: BTreeMap::from([(INIT.to_owned(), Seq(2))]),
            purged: false,
            last_request: None,
        };
        OneConversation {
            conversation,
            ended: Vec::new(),
        }
    }

    #[test]
    fn the_position_before_the_first_turn_can_be_chosen() {
        let one = conversation(None);
        let picker = Picker::turns(&one, Timestamp::from_millis(0));
        let [first, others] = picker.choices.as_slice() else {
            panic!("{} choices", picker.choices.len());
        };
        let to = RewindTo {
            at: INIT.to_owned(),
            conversation: Some(one.conversation.id),
        };
        assert_eq!(first.effect, Effect::ChooseParts(to));
        assert_eq!(others.effect, Effect::LoadConversations);
        // The label of a branch is where it began.
        let origin = Origin {
            agent: AgentRef {
                id: AgentId::from_bytes([2; 16]),
                name: None,
            },
            conversation: one.conversation.id,
            seq: Seq(5),
        };
        let branch = Picker::turns(&conversation(Some(origin)), Timestamp::from_millis(0));
        assert_eq!(branch.choices.len(), 1);
    }
}
