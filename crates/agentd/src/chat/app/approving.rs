//! Calls that wait for approval: when they take the keys, and what their keys do.

use super::{App, Focus, Purpose};
use crate::chat::approvals::Reply;
use crate::chat::effect::Effect;
use crate::chat::pager::Pager;
use agentd_client::api::OnceOnly;
use agentd_core::id::ApprovalId;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A user who pressed a key so recently may be typing: an approval does not take the keys then.
const TYPING_MS: u64 = 1000;

impl App {
    /// Takes over what the agent object says.
    pub fn take_agent(&mut self) {
        self.side.set_children(&self.agent.children);
        let waiting = self.agent.approvals.clone();
        if self.approvals.set(waiting, self.now) {
            self.wants_keys = true;
            self.load_before();
        }
        if self.approvals.is_empty() {
            self.wants_keys = false;
            if matches!(self.focus, Focus::Approval) {
                self.focus = Focus::Prompt;
            }
        }
        self.take_keys();
        self.leave_answered();
    }

    /// Asks for the content of the file that the call would replace.
    fn load_before(&mut self) {
        let shown = self.approvals.shown();
        let call = shown.and_then(|it| Some((it.id, it.what.clone()?)));
        if let Some((approval, call)) = call.filter(|(_, call)| call.tool == "write_file") {
            let call = Box::new(call);
            self.effects.push(Effect::LoadBefore { approval, call });
        }
    }

    /// A call that began to wait while the user was typing takes the keys when the user has stopped.
    pub fn take_keys(&mut self) {
        if matches!(self.focus, Focus::Approval) {
            self.wants_keys = false;
        } else if self.wants_keys && self.may_lose_keys() {
            self.wants_keys = false;
            self.approvals.begin(self.now);
            self.focus = Focus::Approval;
        }
    }

    /// Whether an approval may take the keys from the prompt line: the user is not typing there.
    fn may_lose_keys(&self) -> bool {
        if !matches!(self.focus, Focus::Prompt) || self.purpose != Purpose::Prompt {
            return false;
        }
        let types = self.now.since(self.last_key) < TYPING_MS;
        let is_idle = self.composer.is_empty() && self.composer.search.is_none();
        self.answers || (is_idle && !types)
    }

    /// A key for the prompt was pressed.
    pub const fn typed(&mut self) {
        self.last_key = self.now;
        self.answers = false;
    }

    /// The reason for a denial is no longer needed, and the page of a call is closed, if the call was answered elsewhere.
    fn leave_answered(&mut self) {
        let shown = match (&self.purpose, &self.focus) {
            (Purpose::Deny { approval, .. } | Purpose::Answer { approval }, _) => Some(*approval),
            (_, Focus::Pager(pager)) => pager.call,
            _ => None,
        };
        let waits = |id: ApprovalId| self.agent.approvals.iter().any(|it| it.id == id);
        if shown.is_none_or(waits) {
            return;
        }
        if matches!(self.focus, Focus::Pager(_)) {
            self.leave_page();
        }
        if matches!(self.purpose, Purpose::Deny { .. } | Purpose::Answer { .. }) {
            self.leave_purpose();
        }
        self.tell("the call was answered elsewhere");
    }

    pub fn toggle_approval(&mut self) {
        self.wants_keys = false;
        self.focus = match self.focus {
            Focus::Approval => Focus::Prompt,
            _ if self.approvals.is_empty() => {
                self.tell("no call waits for approval");
                return;
            }
            _ => Focus::Approval,
        };
    }

    pub fn approval_key(&mut self, key: KeyEvent) {
        match self.approvals.key(key, self.now) {
            Reply::Effect(effect) => {
                let answered = self.approvals.shown().map(|it| it.id);
                self.effects.push(effect);
                self.forget_answered(answered);
            }
            Reply::Reason { approval, hash } => {
                self.begin_purpose(Purpose::Deny { approval, hash }, "");
            }
            Reply::Fields { approval } => {
                self.begin_purpose(Purpose::Answer { approval }, "");
            }
            Reply::View => {
                if let Some(shown) = self.approvals.shown() {
                    let pager = Pager::of_call(shown.id, &self.approvals.whole());
                    self.focus = Focus::Pager(pager);
                }
            }
            Reply::Unreadable => {
                let name = self.name().to_owned();
                self.tell(&format!(
                    "the call cannot be shown: deny it, or see `agentd show {name}`"
                ));
            }
            Reply::OnceOnly(OnceOnly::LeavesSandbox) => {
                self.tell(
                    "no rule is made for a call outside the sandbox: y approves this call only",
                );
            }
            Reply::OnceOnly(OnceOnly::InBackground) => {
                let what =
                    "no rule is made for a command in the background that leaves the sandbox";
                self.tell(&format!("{what}: y approves this call only"));
            }
            Reply::OnceOnly(OnceOnly::Wildcard) => {
                let what = "a rule would read the `*` or `?` of this call as a pattern";
                self.tell(&format!("{what}: y approves this call only"));
            }
            Reply::OnceOnly(OnceOnly::OfProgram) => {
                let what = "a rule would allow everything of this kind to the agent's program";
                self.tell(&format!("{what}: y approves this call only"));
            }
            Reply::Type(before) => self.type_on(&before, key),
            Reply::Leave => self.focus = Focus::Prompt,
            Reply::Nothing => {}
        }
    }

    /// The user types a text: it goes to the prompt line, from its first letter on.
    fn type_on(&mut self, before: &str, key: KeyEvent) {
        self.focus = Focus::Prompt;
        self.typed();
        for c in before.chars() {
            self.prompt_key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        }
        self.prompt_key(key);
    }

    /// Whether a key on the page of a call is meant for the call, or for the prompt.
    pub fn is_for_call(&self, call: ApprovalId, key: KeyEvent) -> bool {
        let is_shown = self.approvals.shown().is_some_and(|it| it.id == call);
        is_shown && (self.approvals.confirms() || !Pager::takes(key))
    }

    /// A key on the page of the call that is shown.
    pub fn call_page_key(&mut self, key: KeyEvent) {
        let before = self.approvals.shown().map(|it| it.id);
        self.approval_key(key);
        let is_answered = self.approvals.shown().map(|it| it.id) != before;
        if is_answered && matches!(self.focus, Focus::Pager(_)) {
            self.leave_page();
        }
    }

    /// The call that was just answered is not shown any longer, so that it is not answered twice.
    pub fn forget_answered(&mut self, answered: Option<ApprovalId>) {
        // Answering is not typing: the next call takes the keys.
        self.answers = true;
        let waiting = self.agent.approvals.iter();
        let rest = waiting.filter(|it| Some(it.id) != answered).cloned();
        let rest: Vec<_> = rest.collect();
        if self.approvals.set(rest, self.now) {
            self.load_before();
        }
        if self.approvals.is_empty() {
            self.focus = Focus::Prompt;
        }
    }
}
