//! What a submitted text does: a prompt, a command, a new text of a queued prompt, or the reason of a denial.

use super::{App, Focus, Purpose};
use crate::chat::commands::{self, Meaning, Verb};
use crate::chat::effect::{Effect, Page, RewindTo};
use crate::chat::pager::Pager;
use crate::chat::picker::Picker;
use agentd_client::api::{EditPrompt, Reset};
use agentd_core::event::{Direction, PromptMode};
use agentd_core::id::ApprovalId;
use agentd_core::spec::ApprovalMode;

/// Time that a running turn gets to end before a reset.
const GRACE_MS: u64 = 15_000;

impl App {
    pub fn submit(&mut self, mode: PromptMode) {
        let text = self.composer.text();
        let is_blank = text.trim().is_empty();
        match self.purpose.clone() {
            Purpose::Deny { approval, hash } => {
                let reason = (!is_blank).then_some(text);
                self.effects.push(Effect::Deny {
                    approval,
                    hash,
                    reason,
                });
                self.leave_purpose();
                self.forget_answered(Some(approval));
            }
            _ if is_blank => {}
            Purpose::Answer { approval } => self.submit_answer(approval, &text),
            Purpose::EditQueued { prompt, edits } => {
                // It is not lost if the prompt was taken or changed meanwhile.
                self.composer.past.add(&text);
                self.effects.push(Effect::EditQueued(EditPrompt {
                    prompt: prompt.to_string(),
                    text,
                    edits: Some(edits),
                }));
                self.leave_purpose();
            }
            Purpose::Prompt => self.submit_prompt(&text, mode),
        }
    }

    /// The answer to a question of an MCP server. One that does not fit stays in the prompt line.
    fn submit_answer(&mut self, approval: ApprovalId, text: &str) {
        let mut waiting = self.agent.approvals.iter();
        let asked = waiting.find(|it| it.id == approval);
        let Some(question) = asked.and_then(|asked| asked.question.as_ref()) else {
            return self.leave_purpose();
        };
        match question.filled(&question.fields_in(text)) {
            Ok(content) => {
                self.effects.push(Effect::Answer { approval, content });
                self.leave_purpose();
                self.forget_answered(Some(approval));
            }
            Err(why) => self.tell(&why),
        }
    }

    fn submit_prompt(&mut self, text: &str, mode: PromptMode) {
        if let Some(line) = text.strip_prefix('!') {
            return self.run_command(text, line.trim());
        }
        match commands::parse(text, &self.own) {
            Meaning::Unknown(name) => match commands::alias(&name) {
                Some(verb) => {
                    self.forget(text);
                    self.verb(verb, String::new());
                }
                None => {
                    let hint = match commands::nearest(&name, &self.own) {
                        Some(near) => format!("did you mean /{near}? /help lists them"),
                        None => "/help lists them".to_owned(),
                    };
                    self.tell(&format!("there is no command /{name}; {hint}"));
                }
            },
            Meaning::Command(verb, arguments) => {
                self.forget(text);
                self.verb(verb, arguments);
            }
            Meaning::Prompt {
                text: prompt,
                typed,
            } => {
                let typed = self.composer.typed(typed);
                self.composer.sends(&prompt, &typed);
                self.forget(text);
                self.scrollback.go_to_end();
                let text = prompt;
                let chosen = self.chosen_in(&typed);
                self.effects.push(Effect::Send {
                    text,
                    typed,
                    chosen,
                    mode,
                });
            }
        }
    }

    fn run_command(&mut self, text: &str, line: &str) {
        if line.is_empty() {
            self.tell("`!` needs a command, for example `!git status`");
            return;
        }
        self.forget(text);
        self.scrollback.go_to_end();
        self.effects.push(Effect::RunCommand(line.to_owned()));
    }

    /// Empties the prompt line; the text is among the earlier prompts.
    fn forget(&mut self, text: &str) {
        self.composer.clear();
        self.composer.past.add(text);
        self.completion = None;
        self.notice = None;
    }

    fn verb(&mut self, verb: Verb, arguments: String) {
        let given = Some(arguments).filter(|it| !it.is_empty());
        match verb {
            Verb::Reset => self.reset(Reset::default()),
            Verb::Clear => self.reset(Reset {
                clear_log: true,
                ..Reset::default()
            }),
            Verb::Undo => self.step(Direction::Undo),
            Verb::Redo => self.step(Direction::Redo),
            Verb::Rewind => self.effects.push(match given {
                Some(at) => {
                    let conversation = None;
                    return self.choose_parts(&RewindTo { at, conversation });
                }
                None => Effect::LoadTurns(None),
            }),
            Verb::Diff => self.effects.push(Effect::LoadPage(Page::Diff(given))),
            Verb::Fork => self.fork(given),
            Verb::Attach => match given {
                Some(path) => self.effects.push(Effect::Attach(path)),
                None => self.tell("/attach needs a file, for example /attach ~/Pictures/a b.png"),
            },
            Verb::Conversations => self.effects.push(Effect::LoadConversations),
            Verb::Compact => {
                self.tell("compacting…");
                let instructions = given;
                self.effects.push(Effect::Compact { instructions });
            }
            Verb::Model => match given {
                Some(model) => self.effects.push(Effect::SetModel(model)),
                None => {
                    let agent = &self.agent;
                    let known = |name: &Option<String>| name.clone().unwrap_or_default();
                    let (model, provider) = (known(&agent.model), known(&agent.provider));
                    self.tell(&format!(
                        "model: {model} ({provider}); /model NAME changes it"
                    ));
                }
            },
            Verb::Context => self.effects.push(Effect::LoadPage(Page::Context)),
            Verb::Usage => self.effects.push(Effect::LoadPage(Page::Usage)),
            Verb::Search => match given {
                Some(words) => self.effects.push(Effect::LoadPage(Page::Search(words))),
                None => self.tell("/search needs words"),
            },
            Verb::Permissions => self.permissions(given),
            Verb::Tasks => self.open_side(),
            Verb::Queue => self.toggle_queue(),
            Verb::Editor => self.effects.push(Effect::Edit(String::new())),
            Verb::Copy => match self.last_answer.clone() {
                Some(answer) => {
                    self.effects.push(Effect::Copy(answer));
                    self.tell("the last answer was sent to the clipboard of the terminal");
                }
                None => self.tell("there is no answer to copy"),
            },
            Verb::Continue => self.effects.push(Effect::Continue),
            Verb::Start => self.effects.push(Effect::Start),
            Verb::Help => self.show_help(),
            Verb::Quit => self.effects.push(Effect::Quit),
        }
    }

    /// Asks what to rewind: the conversation, files, or both.
    pub fn choose_parts(&mut self, to: &RewindTo) {
        self.focus = Focus::Picker(Picker::parts(to));
    }

    pub fn show_help(&mut self) {
        let lines = commands::help(&self.own);
        self.focus = Focus::Pager(Pager::new("Help", &lines));
    }

    fn step(&mut self, step: Direction) {
        self.reset(Reset {
            step: Some(step),
            ..Reset::default()
        });
    }

    fn reset(&mut self, reset: Reset) {
        self.effects.push(Effect::Reset(Reset {
            grace_ms: Some(GRACE_MS),
            ..reset
        }));
    }

    fn fork(&mut self, given: Option<String>) {
        let given = given.unwrap_or_default();
        let mut words = given.split_whitespace().map(str::to_owned);
        match (words.next(), words.next()) {
            (Some(name), at) => self.effects.push(Effect::Fork { name, at }),
            (None, _) => self.tell("/fork needs the name of the new agent"),
        }
    }

    fn permissions(&mut self, given: Option<String>) {
        let Some(given) = given else {
            self.effects.push(Effect::LoadPage(Page::Permissions));
            return;
        };
        let mode: Result<ApprovalMode, _> = serde_json::from_value(given.as_str().into());
        match mode {
            Ok(mode) => self.set_mode(mode),
            Err(_) => self.tell("the mode is one of: on-request, always, never"),
        }
    }
}
