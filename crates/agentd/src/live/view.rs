//! What is shown of an agent's work. Pure: it has no clock and no terminal.

mod commands;
mod prompts;
mod request;
mod status;
mod tally;
#[cfg(test)]
mod tests;

use super::calls::Calls;
use super::line::Line;
use super::plan;
use super::reply::Reply;
use crate::render::Detail;
use crate::render::event::told;
use crate::terminal::{HEADING, without_controls};
use agentd_client::api::Delta;
use agentd_core::event::{Asks, Body, Event, NoticeCause, PauseReason, TurnEnded, TurnStatus};
use agentd_core::id::{ApprovalId, PromptId, TurnId};
use agentd_core::time::Timestamp;
use request::{Request, Retry, Thinking};
use std::collections::BTreeMap;
use tally::Tally;

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything that the agent does.
    Agent,
    /// Only the turn that answers this prompt.
    Prompt(PromptId),
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub scope: Scope,
    pub detail: Detail,
    /// The size of the model's context window in tokens, if it is known.
    pub window: Option<u64>,
}

/// When and where something is shown.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: Timestamp,
    pub width: usize,
}

/// What the last line belongs to: it decides whether a blank line comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Prompt,
    /// The text of a reply that continues.
    Text,
    EndOfText,
    Other,
}

pub struct View {
    options: Options,
    /// The turn that answers the prompt of the scope.
    own: Option<TurnId>,
    turn: Option<Tally>,
    /// The turn that ended last. Events that come after its end do not begin it again.
    ended: Option<TurnId>,
    request: Option<Request>,
    /// How many requests have failed in a row.
    failures: u32,
    retry: Option<Retry>,
    thinking: Option<Thinking>,
    /// Thinking of the reply was shown as it streamed.
    has_thought: bool,
    reply: Reply,
    /// The text of the reply as it was streamed.
    streamed: String,
    calls: Calls,
    /// The commands that the user runs.
    commands: Calls,
    /// The calls that wait for approval, by their titles.
    approvals: BTreeMap<ApprovalId, String>,
    /// The prompts that wait behind the turn, as they are shown when they are answered.
    waiting: BTreeMap<PromptId, Vec<Line>>,
    /// Those of them that a reset has set aside. They may be queued again.
    aside: BTreeMap<PromptId, Vec<Line>>,
    paused: Option<PauseReason>,
    /// Why the turn of the scope's prompt cannot begin yet.
    waits: Option<String>,
    /// The text of the last message, if it was shown.
    answered: Option<String>,
    last: Option<Section>,
    /// Whether what is happening is shown.
    is_shown: bool,
    lines: Vec<Line>,
}

impl View {
    pub fn new(options: Options) -> Self {
        Self {
            options,
            own: None,
            turn: None,
            ended: None,
            request: None,
            failures: 0,
            retry: None,
            thinking: None,
            has_thought: false,
            reply: Reply::default(),
            streamed: String::new(),
            calls: Calls::default(),
            commands: Calls::default(),
            approvals: BTreeMap::new(),
            waiting: BTreeMap::new(),
            aside: BTreeMap::new(),
            paused: None,
            waits: None,
            answered: None,
            last: None,
            is_shown: false,
            lines: Vec::new(),
        }
    }

    pub const fn set_window(&mut self, window: Option<u64>) {
        self.options.window = window;
    }

    /// Takes notice of an event that happened before.
    pub fn prime(&mut self, event: &Event, moment: Moment) {
        self.find_own(event);
        self.is_shown = false;
        self.apply(event, None, moment);
        self.interrupted_by_others();
        (self.last, self.answered) = (None, None);
        self.lines.clear();
    }

    /// Finds the turn of the scope.
    fn find_own(&mut self, event: &Event) {
        let Scope::Prompt(prompt) = self.options.scope else {
            return;
        };
        let is_it = match &event.body {
            Body::PromptsTaken(taken) => taken.prompts.contains(&prompt),
            Body::PromptBlocked(blocked) => blocked.prompt == prompt,
            _ => false,
        };
        if is_it {
            self.own = event.turn;
        }
    }

    /// The lines that are finished with an event. `number` is that of the conversation that it begins.
    pub fn event(&mut self, event: &Event, number: Option<u32>, moment: Moment) -> Vec<Line> {
        self.find_own(event);
        self.is_shown = match self.options.scope {
            Scope::Agent => true,
            Scope::Prompt(_) => event.turn.is_some() && event.turn == self.own,
        };
        self.apply(event, number, moment);
        std::mem::take(&mut self.lines)
    }

    /// The lines that are finished with a piece of a reply.
    pub fn delta(&mut self, delta: &Delta, moment: Moment) -> Vec<Line> {
        let Some(request) = self.request.as_mut().filter(|it| it.id == delta.request) else {
            return Vec::new();
        };
        if request.compacts {
            return Vec::new();
        }
        self.is_shown = request.is_shown;
        if !delta.thinking.is_empty() {
            let thinking = self
                .thinking
                .get_or_insert_with(|| Thinking::new(moment.now));
            thinking.text.push_str(&delta.thinking);
        }
        if !delta.text.is_empty() {
            request.writes_since.get_or_insert(moment.now);
            self.end_thinking(moment);
            self.streamed.push_str(&delta.text);
            let lines = self
                .reply
                .push(&without_controls(&delta.text), moment.width);
            self.say(Section::Text, lines);
        }
        std::mem::take(&mut self.lines)
    }

    /// The answer to the prompt, as far as it was not shown.
    pub fn answer(&mut self, text: &str, width: usize) -> Vec<Line> {
        if self.answered.as_deref() == Some(text) || text.trim().is_empty() {
            return Vec::new();
        }
        self.is_shown = true;
        let streamed = std::mem::take(&mut self.streamed);
        self.text_after(&streamed, text, width);
        self.answered = Some(text.to_owned());
        std::mem::take(&mut self.lines)
    }

    /// The text of a reply that broke off here.
    pub fn unfinished(&mut self, width: usize) -> Vec<Line> {
        self.is_shown = self
            .request
            .as_ref()
            .is_some_and(|request| request.is_shown);
        let lines = self.reply.finish(width);
        self.say(Section::Text, lines);
        std::mem::take(&mut self.lines)
    }

    /// The text of a whole reply, of which some was shown as it streamed.
    fn text_after(&mut self, streamed: &str, all: &str, width: usize) {
        let more = match all.strip_prefix(streamed) {
            Some(more) => more,
            // Some of it did not arrive: it is shown from its beginning.
            None => {
                let lines = self.reply.finish(width);
                self.say(Section::Text, lines);
                self.end_text();
                all
            }
        };
        let mut lines = self.reply.push(&without_controls(more), width);
        lines.extend(self.reply.finish(width));
        self.say(Section::Text, lines);
    }

    /// The rows of the block of text that is still growing.
    pub fn growing(&self, width: usize) -> Vec<Line> {
        let is_shown = self
            .request
            .as_ref()
            .is_some_and(|request| request.is_shown);
        let rows = match is_shown {
            true => self.reply.growing(width),
            false => Vec::new(),
        };
        let gap = !rows.is_empty() && self.gap_before(Section::Text);
        let blank = gap.then(Line::default);
        blank.into_iter().chain(rows).collect()
    }

    fn say(&mut self, section: Section, lines: Vec<Line>) {
        if !self.is_shown || lines.is_empty() {
            return;
        }
        if self.gap_before(section) {
            self.lines.push(Line::default());
        }
        self.lines.extend(lines);
        self.last = Some(section);
    }

    fn gap_before(&self, section: Section) -> bool {
        let follows_on = matches!(
            (self.last, section),
            (None, _)
                | (Some(Section::Text), Section::Text)
                | (Some(Section::Other | Section::Prompt), Section::Other)
        );
        !follows_on
    }

    fn apply(&mut self, event: &Event, number: Option<u32>, moment: Moment) {
        let at = event.at;
        if let Some(turn) = event.turn
            && self.turn.as_ref().is_none_or(|known| known.id != turn)
            && self.ended != Some(turn)
        {
            self.turn = Some(Tally::new(turn, at));
        }
        match &event.body {
            Body::MessageAdded(message) => self.message(message, moment),
            Body::RequestSent(sent) => {
                let is_shown = self.is_shown;
                self.request = Some(Request::new(sent, at, is_shown));
                (self.retry, self.thinking, self.has_thought) = (None, None, false);
            }
            Body::RequestEnded(ended) => {
                let lines = self.request_ended(ended, at);
                self.say_other(lines);
            }
            Body::FileKept(kept) => {
                self.turn.iter_mut().for_each(|tally| tally.kept(kept));
                self.calls.kept(kept);
            }
            Body::ToolEnded(ended) => self.turn.iter_mut().for_each(|it| it.tool_ended(ended)),
            Body::ToolStarted(started) => {
                let shown = self.fit(moment);
                let lines = self.calls.started(&started.call, &started.tool, at, shown);
                self.say(Section::Other, lines);
            }
            Body::ResultAdded(result) => {
                let shown = self.fit(moment);
                let (id, outcome) = (&result.call, result.outcome);
                let lines = self.calls.ended(id, outcome, &result.blocks, at, shown);
                self.say(Section::Other, lines);
            }
            Body::CommandLine(_) | Body::CommandEnded(_) | Body::CommandOutput(_) => {
                self.command(&event.body, at, moment);
            }
            Body::CallRevised(revised) => {
                self.calls.revised(&revised.call, &revised.arguments);
                self.other(event, number);
            }
            Body::ApprovalRequested(asked) => {
                let title = self.calls.title(&asked.call).unwrap_or_default();
                self.approvals.insert(asked.approval, title.clone());
                // A command that waits for a prompt reports what it waits for itself.
                if self.options.scope == Scope::Agent {
                    let what = match asked.asks {
                        Asks::Approval => "approval needed",
                        Asks::Input => "answer needed",
                    };
                    let line = Line::painted(HEADING, format!("{what}: {title}"));
                    self.interrupted_by_others();
                    self.say(Section::Other, vec![line]);
                }
            }
            Body::ApprovalAnswered(answered) => {
                self.approvals.remove(&answered.approval);
                self.other(event, number);
            }
            Body::ApprovalWithdrawn(withdrawn) => {
                self.approvals.remove(&withdrawn.approval);
            }
            Body::TurnPaused(paused) => {
                self.paused = Some(paused.reason);
                if self.options.scope == Scope::Agent {
                    self.other(event, number);
                }
            }
            Body::PlanSet(set) => self.say_other(plan::lines(set)),
            Body::TurnContinued(_) => {
                (self.paused, self.failures) = (None, 0);
            }
            Body::TurnEnded(ended) => self.turn_ended(event, ended, number),
            Body::FilesScanned(scanned) => self.say_other(tally::of_commands(&scanned.found)),
            Body::AgentFailed(_) => {
                self.other(event, number);
                self.nothing_runs();
            }
            Body::Prompt(prompt) => self.prompt(event, prompt),
            Body::PromptsTaken(taken) => self.prompts_taken(&taken.prompts),
            Body::PromptsRemoved(gone) => {
                self.prompts_gone(&gone.prompts);
                self.other(event, number);
            }
            Body::PromptBlocked(blocked) => {
                self.prompts_gone(&[blocked.prompt]);
                self.other(event, number);
            }
            Body::PromptsSetAside(aside) => {
                self.prompts_set_aside(&aside.prompts);
                self.other(event, number);
            }
            Body::PromptsRequeued(queued) => {
                self.prompts_requeued(&queued.prompts);
                self.other(event, number);
            }
            // It is for the model; the end of the turn says the same.
            Body::Notice(notice) if notice.cause == NoticeCause::Interrupted => {}
            _ => self.other(event, number),
        }
    }

    /// An event as `logs` shows it.
    fn other(&mut self, event: &Event, number: Option<u32>) {
        if let Some(text) = told(event, number, Detail::Brief) {
            self.interrupted_by_others();
            self.say(Section::Other, Line::of_painted(&text));
        }
    }

    fn turn_ended(&mut self, event: &Event, ended: &TurnEnded, number: Option<u32>) {
        if self.options.scope == Scope::Agent && ended.status != TurnStatus::Completed {
            self.other(event, number);
        }
        self.ended = event.turn;
        let tally = self.turn.take();
        let summary = tally.and_then(|tally| tally.summary(event.at, self.options.window));
        if let Some(summary) = summary {
            self.say(Section::EndOfText, vec![summary]);
            self.last = self.last.map(|_| Section::EndOfText);
        }
        self.nothing_runs();
    }

    fn nothing_runs(&mut self) {
        (self.turn, self.request, self.retry, self.paused) = (None, None, None, None);
        self.failures = 0;
        self.approvals.clear();
        self.calls.clear();
    }
}
