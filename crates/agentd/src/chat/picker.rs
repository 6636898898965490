//! A list from which the user chooses: turns and conversations.

use super::effect::{Effect, Parts, RewindTo};
use crate::render::{count, line_of, time, word};
use agentd_client::api::{Conversations, OneConversation};
use agentd_core::time::Timestamp;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

pub struct Choice {
    pub label: String,
    pub effect: Effect,
}

pub struct Picker {
    pub title: String,
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
        let choices: Vec<Choice> = turns.chain([others]).collect();
        Self {
            title: format!("Go back to the end of a turn of conversation {number}"),
            choices,
            selected: 0,
        }
    }

    /// What a rewind returns to its position.
    pub fn parts(to: &RewindTo) -> Self {
        let choice = |label: &str, parts| Choice {
            label: label.to_owned(),
            effect: Effect::Rewind {
                to: to.clone(),
                parts,
            },
        };
        Self {
            title: "Rewind".to_owned(),
            choices: vec![
                choice(
                    "the conversation; files stay as they are",
                    Parts::Conversation,
                ),
                choice("files; the conversation continues", Parts::Files),
                choice("both", Parts::Both),
            ],
            selected: 0,
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

    #[test]
    fn a_choice_is_made_or_left() {
        let choice = |label: &str| Choice {
            label: label.to_owned(),
            effect: Effect::Copy(label.to_owned()),
        };
        let mut picker = Picker {
            title: String::new(),
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
}
