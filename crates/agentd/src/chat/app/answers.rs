//! Answers to what the chat asked for.

use super::{App, Focus, Purpose, seen};
use crate::chat::effect::{Answer, Change, Older};
use crate::chat::pager::Pager;
use crate::chat::picker::Picker;
use crate::error::Error;

impl App {
    pub fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Sent(_, Ok(notes)) => self.note_files(notes),
            Answer::Sent(text, Err(error)) => self.not_sent(&text, &error),
            Answer::Attached(path) => self.attach(path),
            // Its output is in the event stream.
            Answer::Ran(_, Ok(())) => {}
            Answer::Ran(line, Err(error)) => self.not_sent(&format!("!{line}"), &error),
            Answer::Changed(changed) => self.changed(changed),
            Answer::Queue(queue) => {
                self.wanted.queue.answered();
                if let Some(queue) = self.known(queue) {
                    self.queue.set(queue.prompts);
                    if self.queue.is_empty() && matches!(self.focus, Focus::Queue) {
                        self.focus = Focus::Prompt;
                    }
                }
            }
            Answer::Older(older) => self.older(older),
            Answer::Agent(agent) => {
                self.wanted.agent.answered();
                if let Some(agent) = self.known(agent) {
                    self.agent = *agent;
                    self.turn = self.agent.turn;
                    self.take_agent();
                }
            }
            Answer::Before(approval, text) => {
                if let Some(text) = text {
                    self.approvals.set_before(approval, text);
                }
            }
            Answer::Spec(spec) => {
                self.wanted.spec.answered();
                if let Some(spec) = self.known(spec) {
                    self.approval_mode = spec.approval.unwrap_or_default();
                    self.limits = Some(Box::new(spec.limits));
                }
            }
            Answer::Commands(own) => {
                self.own = own;
                if self.completion.is_some() {
                    self.complete_command();
                }
            }
            Answer::Tasks(tasks) => {
                self.wanted.tasks.answered();
                if let Some(tasks) = self.known(tasks) {
                    self.side.set_tasks(tasks.tasks);
                }
            }
            Answer::Output(task, offset, output) => {
                self.wanted.output.answered();
                // A task that has just ended has no output any more.
                if let Ok(output) = output {
                    self.side.output(task, offset, &output);
                }
            }
            Answer::Subagent(id, agent) => {
                self.wanted.output.answered();
                if let Ok(agent) = agent {
                    self.side.subagent(id, &agent);
                }
            }
            Answer::Turns(one) => {
                if let Some(one) = self.known(one) {
                    self.focus = Focus::Picker(Picker::turns(&one, self.now));
                }
            }
            Answer::Conversations(all) => {
                if let Some(all) = self.known(all) {
                    self.focus = Focus::Picker(Picker::conversations(&all, self.now));
                }
            }
            Answer::Page(page) => {
                if let Some((title, lines)) = self.known(page) {
                    self.focus = Focus::Pager(Pager::new(title, &lines));
                }
            }
            Answer::Paths(typed, found) => self.paths(&typed, &found),
            Answer::Files(typed, found) => self.files(&typed, &found),
            Answer::Edited(edited) => {
                if let Some(text) = self.known(edited) {
                    self.composer.set_edited(&text);
                    self.complete_command();
                }
            }
        }
    }

    /// What was asked for. An error is shown.
    pub(super) fn known<T>(&mut self, answer: Result<T, Error>) -> Option<T> {
        match answer {
            Ok(known) => Some(known),
            Err(error) => {
                self.fail(&error);
                None
            }
        }
    }

    /// The text of a prompt that was not accepted is not lost.
    fn not_sent(&mut self, text: &str, error: &Error) {
        match self.composer.is_empty() && self.purpose == Purpose::Prompt {
            true => self.composer.set(text),
            false => self.composer.past.add(text),
        }
        self.fail(error);
    }

    fn changed(&mut self, changed: Result<Change, Error>) {
        // What is shown may be out of date, whatever the answer is.
        self.wanted.agent.again();
        self.wanted.spec.again();
        self.wanted.queue.again();
        match self.known(changed) {
            Some(Change::Done(message)) if message.is_empty() => {}
            Some(Change::Done(message)) => self.tell(&message),
            Some(Change::Cleared(message)) => {
                self.scrollback.clear();
                self.tell(&message);
            }
            Some(Change::Stepped(message)) => {
                self.scrollback.reopen();
                self.tell(&message);
            }
            Some(Change::Planned(plan)) => {
                self.focus = Focus::Picker(Picker::files(&plan));
            }
            Some(Change::Model { message, window }) => {
                self.scrollback.set_window(window);
                self.tell(&message);
            }
            None => {}
        }
    }

    fn older(&mut self, older: Result<Older, Error>) {
        self.loads_older = false;
        let Some(older) = self.known(older) else {
            self.goes_to_top = false;
            return;
        };
        let prompts = older.events.iter().flat_map(seen::prompts);
        let prompts: Vec<String> = prompts.collect();
        self.composer.past.add_older(prompts);
        let search = self.composer.search.clone();
        if let Some(search) = search.filter(|it| it.found.is_none()) {
            self.composer.search_for(search.words);
        }
        self.scrollback.prepend(older);
        if self.goes_to_top {
            let height = usize::from(self.layout.history.height);
            self.scrollback.go_to_top(height);
            self.goes_to_top = self.scrollback.oldest().is_some();
        }
    }
}
