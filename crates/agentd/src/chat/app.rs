//! The state of the chat. Pure: what happens and the time go in, and what is to be done comes out.

mod answers;
mod approving;
mod files;
mod keys;
mod needs;
mod seen;
#[cfg(test)]
mod tests;
mod unsent;
mod verbs;

use super::approvals::{self, Approvals};
use super::commands::Own;
use super::completion::Completion;
use super::composer::Composer;
use super::effect::{Effect, Input, Older};
use super::focused::Focused;
use super::layout::{Layout, Needs, Size, layout};
use super::pager::Pager;
use super::picker::Picker;
use super::queue::Queued;
use super::scrollback::{Numbers, Scrollback};
use super::side::Side;
use crate::live::{Line, Options, plan};
use crate::render;
use crate::terminal::{BAD, QUIET};
use agentd_client::api::Agent;
use agentd_core::event::LimitKind;
use agentd_core::id::{ApprovalId, PromptId, TurnId};
use agentd_core::spec::{ApprovalMode, Limits};
use agentd_core::state::Phase;
use agentd_core::time::Timestamp;
use needs::Wanted;

/// How long a message is shown, and how long an error.
const SHOWN_MS: u64 = 8_000;
const ERROR_MS: u64 = 30_000;
/// The rows of the agent's plan, with its title.
const PLAN_ROWS: usize = 6;

/// What the chat begins with.
pub struct Begin {
    pub agent: Agent,
    pub options: Options,
    pub numbers: Numbers,
    pub newest: Older,
    /// The user's own commands.
    pub own: Vec<Own>,
}

/// What has the keys.
pub enum Focus {
    Prompt,
    Approval,
    Queue,
    Side,
    Pager(Pager),
    Picker(Picker),
}

/// What the text in the prompt line is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    Prompt,
    /// Another text for a queued prompt.
    EditQueued {
        prompt: PromptId,
        edits: u32,
    },
    /// The reason why a call is denied.
    Deny {
        approval: ApprovalId,
        hash: Option<String>,
    },
    /// The answer to a question of an MCP server: its fields, as `name=value`.
    Answer {
        approval: ApprovalId,
    },
}

impl Purpose {
    /// What stands before the prompt line.
    pub const fn sign(&self) -> &'static str {
        match self {
            Self::Prompt => "> ",
            Self::EditQueued { .. } => "edit> ",
            Self::Deny { .. } => "reason> ",
            Self::Answer { .. } => "answer> ",
        }
    }
}

struct Notice {
    lines: Vec<Line>,
    until: Timestamp,
}

pub struct App {
    agent: Agent,
    approval_mode: ApprovalMode,
    scrollback: Scrollback,
    pub composer: Composer,
    pub purpose: Purpose,
    /// What was typed before the prompt line got another purpose.
    draft: String,
    pub completion: Option<Completion>,
    pub focus: Focus,
    approvals: Approvals,
    queue: Queued,
    side: Side,
    has_side: bool,
    notice: Option<Notice>,
    own: Vec<Own>,
    /// The files outside of the directory that the user chose with `/attach`.
    chosen: Vec<String>,
    /// The turn in progress.
    turn: Option<TurnId>,
    /// The limit at which the last turn ended.
    limit: Option<LimitKind>,
    /// The limits of the agent, once they are known.
    limits: Option<Box<Limits>>,
    /// The text of the last complete message.
    last_answer: Option<String>,
    is_lost: bool,
    wanted: Wanted,
    loads_older: bool,
    /// The user wants to see the beginning, which is being loaded.
    goes_to_top: bool,
    /// When a key for the prompt was last pressed.
    last_key: Timestamp,
    /// The last key of the user was for a call, not for the prompt.
    answers: bool,
    /// A call began to wait and has not had the keys.
    wants_keys: bool,
    last_ctrl_c: Option<Timestamp>,
    now: Timestamp,
    layout: Layout,
    shown: Vec<Line>,
    effects: Vec<Effect>,
}

impl App {
    pub fn new(begin: Begin, now: Timestamp) -> Self {
        let mut composer = Composer::default();
        let (mut last_answer, mut limit) = (None, None);
        for event in &begin.newest.events {
            seen::prompts(event).for_each(|prompt| composer.past.add(&prompt));
            last_answer = seen::answer(event).or(last_answer);
            limit = seen::limit(event, limit);
        }
        let mut app = Self {
            turn: begin.agent.turn,
            agent: begin.agent,
            approval_mode: ApprovalMode::default(),
            scrollback: Scrollback::new(begin.options, begin.numbers, begin.newest),
            composer,
            purpose: Purpose::Prompt,
            draft: String::new(),
            completion: None,
            focus: Focus::Prompt,
            approvals: Approvals::default(),
            queue: Queued::default(),
            side: Side::default(),
            has_side: false,
            notice: None,
            own: begin.own,
            chosen: Vec::new(),
            limit,
            limits: None,
            last_answer,
            is_lost: false,
            wanted: Wanted::all(),
            loads_older: false,
            goes_to_top: false,
            last_key: Timestamp::default(),
            answers: false,
            wants_keys: false,
            last_ctrl_c: None,
            now,
            layout: Layout::default(),
            shown: Vec::new(),
            effects: vec![Effect::LoadCommands],
        };
        app.take_agent();
        app
    }

    pub fn update(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
        self.now = now;
        match input {
            Input::Key(key) => self.key(key),
            Input::Paste(text) => self.paste(&text),
            Input::Seen(seen) => self.seen(seen),
            Input::Answer(answer) => self.answer(answer),
            Input::Tick => self.tick(),
        }
        self.ask();
        std::mem::take(&mut self.effects)
    }

    fn tick(&mut self) {
        let now = self.now;
        let _expired = self.notice.take_if(|notice| notice.until < now);
        self.take_keys();
    }

    fn tell(&mut self, text: &str) {
        self.notice = Some(Notice {
            lines: Line::of_painted(text),
            until: self.now.plus(SHOWN_MS),
        });
    }

    fn fail(&mut self, error: &impl ToString) {
        self.notice = Some(Notice {
            lines: Line::of_painted(&error.to_string()),
            until: self.now.plus(ERROR_MS),
        });
    }

    /// Fits everything into the screen. Afterwards it can be drawn.
    pub fn prepare(&mut self, size: Size, now: Timestamp) {
        self.now = now;
        let (width, height) = (usize::from(size.width), usize::from(size.height));
        let beside = self.sign().len();
        let room = width.saturating_sub(beside).max(1);
        let needs = Needs {
            notice: self.notice_rows(width).len(),
            approval: self.approval_rows(size).len(),
            plan: self.plan_rows(size).len(),
            queue: self.queue_rows(size).len(),
            prompt: self.composer.height(room, (height / 3).clamp(1, 12)),
            side: self.has_side,
        };
        self.layout = layout(size, needs);
        let history = self.layout.history;
        if history.width > 0 && history.height > 0 {
            self.scrollback.set_width(usize::from(history.width));
        }
        self.shown = self.scrollback.shown(usize::from(history.height));
        let page = self.layout.main.height.saturating_sub(1);
        if let Focus::Pager(pager) = &mut self.focus {
            pager.fit(usize::from(size.width), usize::from(page));
        }
    }

    /// What stands before the prompt line. It differs for a command that runs without the model.
    pub fn sign(&self) -> &'static str {
        match self.purpose {
            Purpose::Prompt if self.composer.begins_with('!') => "$ ",
            _ => self.purpose.sign(),
        }
    }

    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The rows of the history on the screen.
    pub fn history(&self) -> &[Line] {
        &self.shown
    }

    pub fn notice_rows(&self, width: usize) -> Vec<Line> {
        let lines = self.notice.iter().flat_map(|notice| &notice.lines);
        let none = Line::default();
        let rows = lines.flat_map(|line| line.wrapped(width, &none, &none));
        rows.take(8).collect()
    }

    pub fn approval_rows(&self, size: Size) -> Vec<Line> {
        let most = usize::from(size.height / 2);
        let keys = match (&self.focus, &self.purpose) {
            (Focus::Approval, _) => approvals::Keys::Answer,
            (Focus::Pager(pager), _) if pager.call.is_some() => approvals::Keys::Viewed,
            (Focus::Prompt, Purpose::Deny { .. }) => approvals::Keys::Reason,
            (Focus::Prompt, Purpose::Answer { .. }) => approvals::Keys::Fields,
            _ => approvals::Keys::Elsewhere,
        };
        self.approvals.rows(usize::from(size.width), most, keys)
    }

    /// The agent's plan, until it is finished.
    pub fn plan_rows(&self, size: Size) -> Vec<Line> {
        let most = usize::from(size.height / 4).min(PLAN_ROWS);
        let rows = |plan| plan::panel(plan, most, usize::from(size.width));
        self.agent.plan.as_ref().map(rows).unwrap_or_default()
    }

    pub fn queue_rows(&self, size: Size) -> Vec<Line> {
        let focused = Focused::if_so(matches!(self.focus, Focus::Queue));
        let most = usize::from(size.height / 3);
        self.queue.rows(usize::from(size.width), most, focused)
    }

    pub fn side_rows(&self, width: usize, height: usize) -> Vec<Line> {
        let focused = Focused::if_so(matches!(self.focus, Focus::Side));
        self.side.rows(width, height, focused, self.now)
    }

    /// `coder · some-model · ~/src · conversation 3`.
    pub fn header(&self, home: Option<&str>) -> Line {
        let agent = &self.agent;
        let mut line = Line::painted(crate::terminal::HEADING, &agent.name);
        let model = agent.model.clone();
        let cwd = agent.cwd.as_deref().map(|cwd| render::directory(cwd, home));
        let conversation = agent.conversation.as_ref();
        let conversation = conversation.map(|it| format!("conversation {}", it.ordinal));
        for part in [model, cwd, conversation].into_iter().flatten() {
            line.push(Some(QUIET), &format!(" · {part}"));
        }
        line
    }

    /// What the agent does, or what it waits for.
    pub fn status(&self, width: usize) -> Option<Line> {
        if self.is_lost {
            let text = "connection to the daemon lost: connecting again…";
            return Some(Line::painted(BAD, text).truncated(width));
        }
        if let Some(status) = self.scrollback.view().status(self.now, width) {
            return Some(status);
        }
        if let Some(why) = render::agent::held_back(&self.agent) {
            return Some(Line::painted(BAD, why).truncated(width));
        }
        let line = match self.agent.phase {
            Phase::Stopped | Phase::Failed => {
                format!("{}: /start starts it", render::agent::line(&self.agent))
            }
            Phase::Waiting => format!(
                "{}: /continue continues it",
                render::agent::line(&self.agent)
            ),
            Phase::Resetting => "resetting".to_owned(),
            _ => {
                let limit = self.limit?;
                let (what, key) = render::limit::meaning(limit);
                let limits = self.limits.as_deref();
                let value = limits.and_then(|it| render::limit::value(limit, it));
                let value = value.map_or_else(String::new, |value| format!(" ({value})"));
                let name = self.name();
                format!(
                    "limit reached{value}: /continue goes on after `agentd set {name} {key}=…` ({what})"
                )
            }
        };
        Some(Line::painted(BAD, line).truncated(width))
    }

    /// The approval mode, what runs beside, and the most important keys.
    pub fn footer(&self) -> Line {
        let mode = render::word(self.approval_mode);
        let mut parts = vec![format!("approval: {mode} (Shift-Tab)")];
        match self.side.running() {
            0 => {}
            n => parts.push(format!("{} (Ctrl-T)", render::count(n as u64, "task"))),
        }
        if !self.scrollback.is_at_end() {
            parts.push("scrolled back (Ctrl-End)".to_owned());
        }
        parts.extend(self.hint().map(str::to_owned));
        Line::painted(QUIET, parts.join(" · "))
    }

    /// What the most important keys do. Lists and pages show their own keys.
    fn hint(&self) -> Option<&'static str> {
        if !matches!(self.focus, Focus::Prompt) {
            return None;
        }
        Some(match (&self.purpose, self.turn) {
            _ if self.composer.search.is_some() => "Enter takes it · Ctrl-R older · Esc back",
            _ if self.completion.is_some() => "Tab completes · Enter chooses · Esc closes the list",
            (Purpose::EditQueued { .. }, _) => "Enter saves · Esc cancels",
            (Purpose::Deny { .. }, _) => "Enter denies · Esc cancels",
            (Purpose::Answer { .. }, _) => "Enter answers · Esc cancels",
            (Purpose::Prompt, Some(_)) => "Enter steers · Alt-Enter queues · Esc interrupts",
            (Purpose::Prompt, None) if self.scrollback.view().runs_command() => {
                "Esc ends the command · /help · Ctrl-D leaves"
            }
            (Purpose::Prompt, None) => "Enter sends · /help · Ctrl-D leaves",
        })
    }

    pub fn name(&self) -> &str {
        &self.agent.name
    }
}
