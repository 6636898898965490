//! One agent's journal, sorted by subject: prompts, turns, requests, calls, questions, tasks,
//! conversations, resets. It records what happened and where, twice if it happened twice.

use super::evidence::Event;
use super::words;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Story<'a> {
    pub agent: &'a str,
    pub events: &'a [Event],
    pub prompts: BTreeMap<&'a str, Prompt<'a>>,
    pub turns: Vec<Turn<'a>>,
    pub requests: Vec<Request<'a>>,
    pub calls: BTreeMap<&'a str, Call<'a>>,
    pub approvals: BTreeMap<&'a str, Approval<'a>>,
    pub tasks: BTreeMap<&'a str, Task<'a>>,
    /// Hooks that have not ended.
    pub hooks: Vec<&'a str>,
    pub resets: Vec<Reset<'a>>,
    pub incarnations: Vec<(u64, u64, &'a str)>,
    /// Which conversation became the current one, and where.
    pub pointer: Vec<(u64, &'a str)>,
    pub stopped: bool,
    pub failed: bool,
    pub archived: bool,
}

#[derive(Debug, Default)]
pub struct Prompt<'a> {
    pub key: Option<&'a str>,
    pub words: Vec<String>,
    pub files: Vec<(String, String)>,
    pub queued: Vec<(u64, &'a str)>,
    pub taken: Vec<(u64, &'a str)>,
    pub aside: Vec<u64>,
    pub requeued: Vec<u64>,
    pub removed: Vec<u64>,
    pub status: PromptStatus,
}

/// The final state of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptStatus {
    #[default]
    Waiting,
    Taken,
    Aside,
    Removed,
}

#[derive(Debug, Default)]
pub struct Turn<'a> {
    pub id: &'a str,
    pub conversation: &'a str,
    pub started: Vec<u64>,
    pub ended: Vec<(u64, &'a str)>,
    /// It waits until a user continues it.
    pub paused: bool,
}

#[derive(Debug)]
pub struct Request<'a> {
    pub id: String,
    pub sent: u64,
    pub turn: &'a str,
    pub conversation: &'a str,
    pub purpose: &'a str,
    /// The incarnation that ran the agent when it was sent.
    pub incarnation: u64,
    pub ended: Vec<(u64, &'a str)>,
}

#[derive(Debug, Default)]
pub struct Call<'a> {
    /// The message that made it.
    pub made: Vec<u64>,
    pub turn: &'a str,
    pub conversation: &'a str,
    pub tool: &'a str,
    pub started: Vec<u64>,
    pub task: Option<&'a str>,
    pub ended: Vec<(u64, &'a str)>,
    pub results: Vec<(u64, &'a str, &'a str)>,
}

#[derive(Debug, Default)]
pub struct Approval<'a> {
    pub call: &'a str,
    pub turn: &'a str,
    pub asked: Vec<u64>,
    pub answers: Vec<(u64, &'a str)>,
    pub withdrawn: Vec<u64>,
}

#[derive(Debug, Default)]
pub struct Task<'a> {
    pub started: Vec<u64>,
    pub ended: Vec<u64>,
    pub call: &'a str,
}

#[derive(Debug, Default)]
pub struct Reset<'a> {
    pub op: &'a str,
    pub began: Vec<u64>,
    pub steps: Vec<(u64, &'a str)>,
    pub withdrawn: Vec<(u64, &'a str)>,
    pub ended: Vec<(u64, &'a str, &'a str)>,
    /// The conversation that was current when it began.
    pub from: Option<&'a str>,
}

impl<'a> Story<'a> {
    pub fn of(agent: &'a str, events: &'a [Event]) -> Self {
        let mut story = Self {
            agent,
            events,
            ..Self::default()
        };
        for event in events {
            story.prompts(event);
            story.turns(event);
            story.tools(event);
            story.tree(event);
        }
        story
    }

    /// The same agent as it was after event `head`.
    pub fn up_to(&self, head: u64) -> Self {
        let end = self.events.partition_point(|event| event.seq <= head);
        Self::of(self.agent, &self.events[..end])
    }

    pub fn event(&self, seq: u64) -> Option<&'a Event> {
        self.events.iter().find(|event| event.seq == seq)
    }

    pub fn turn(&self, id: &str) -> Option<&Turn<'a>> {
        self.turns.iter().find(|turn| turn.id == id)
    }

    /// The turn that has not ended.
    pub fn open_turn(&self) -> Option<&Turn<'a>> {
        self.turns.iter().rev().find(|turn| turn.ended.is_empty())
    }

    /// The conversation that is current right after event `seq`.
    pub fn current_at(&self, seq: u64) -> Option<&'a str> {
        let before = self.pointer.iter().rev().find(|(at, _)| *at <= seq);
        before.map(|(_, conversation)| *conversation)
    }

    pub fn current(&self) -> Option<&'a str> {
        self.pointer.last().map(|(_, conversation)| *conversation)
    }

    /// Questions that are not answered and not withdrawn.
    pub fn pending_approvals(&self) -> impl Iterator<Item = (&&'a str, &Approval<'a>)> {
        self.approvals.iter().filter(|(_, approval)| {
            let turn_is_open = self
                .turn(approval.turn)
                .is_none_or(|turn| turn.ended.is_empty());
            let call = self.calls.get(approval.call);
            let is_open = call.is_none_or(|call| call.ended.is_empty());
            approval.answers.is_empty() && approval.withdrawn.is_empty() && turn_is_open && is_open
        })
    }

    /// Whether the agent rightly waits for a user.
    pub fn waits_for_user(&self) -> bool {
        let paused = self.open_turn().is_some_and(|turn| turn.paused);
        let asks = self.pending_approvals().next().is_some();
        self.stopped || self.failed || self.archived || paused || asks
    }

    /// Tasks that may have a process: of calls that have no result, and background ones.
    pub fn running_tasks(&self) -> Vec<&'a str> {
        let calls = self.calls.values().filter(|call| call.ended.is_empty());
        let mut running: Vec<&str> = calls.filter_map(|call| call.task).collect();
        let background = self.tasks.iter().filter(|(_, task)| task.ended.is_empty());
        running.extend(background.map(|(id, _)| *id));
        running.extend(&self.hooks);
        running
    }

    fn prompts(&mut self, event: &'a Event) {
        let mut each = |status: PromptStatus, note: &dyn Fn(&mut Prompt<'a>)| {
            for id in event.list("prompts") {
                let prompt = self.prompts.entry(id).or_default();
                note(prompt);
                prompt.status = status;
            }
        };
        match event.kind.as_str() {
            "prompt_queued" => {
                let prompt = self.prompts.entry(event.text("prompt")).or_default();
                prompt.queued.push((event.seq, &event.conversation));
                prompt.key = prompt.key.or(event.body["key"].as_str());
                prompt.status = PromptStatus::Waiting;
            }
            "prompt" => {
                let prompt = self.prompts.entry(event.text("prompt")).or_default();
                prompt.words = words::texts(&event.body["blocks"]);
                prompt.files = words::files(&event.body["blocks"]);
            }
            "prompts_taken" => {
                let turn = event.turn.as_deref().unwrap_or_default();
                for id in event.list("prompts") {
                    let prompt = self.prompts.entry(id).or_default();
                    if prompt.status != PromptStatus::Removed {
                        prompt.taken.push((event.seq, turn));
                        prompt.status = PromptStatus::Taken;
                    }
                }
            }
            // A hook denied it: its turn says so.
            "prompt_blocked" => {
                let turn = event.turn.as_deref().unwrap_or_default();
                let prompt = self.prompts.entry(event.text("prompt")).or_default();
                if prompt.status != PromptStatus::Removed {
                    prompt.taken.push((event.seq, turn));
                    prompt.status = PromptStatus::Taken;
                }
            }
            "prompts_set_aside" => each(PromptStatus::Aside, &|it| it.aside.push(event.seq)),
            "prompts_removed" => each(PromptStatus::Removed, &|it| it.removed.push(event.seq)),
            "prompts_requeued" => each(PromptStatus::Waiting, &|it| it.requeued.push(event.seq)),
            _ => {}
        }
    }

    fn turns(&mut self, event: &'a Event) {
        let id = event.turn.as_deref().unwrap_or_default();
        match event.kind.as_str() {
            "turn_started" => match self.turns.iter_mut().find(|turn| turn.id == id) {
                Some(turn) => turn.started.push(event.seq),
                None => self.turns.push(Turn {
                    id,
                    conversation: &event.conversation,
                    started: vec![event.seq],
                    ..Turn::default()
                }),
            },
            "turn_ended" => match self.turns.iter_mut().find(|turn| turn.id == id) {
                Some(turn) => turn.ended.push((event.seq, event.text("status"))),
                None => self.turns.push(Turn {
                    id,
                    conversation: &event.conversation,
                    ended: vec![(event.seq, event.text("status"))],
                    ..Turn::default()
                }),
            },
            "turn_paused" | "turn_continued" => {
                if let Some(turn) = self.turns.iter_mut().find(|turn| turn.id == id) {
                    turn.paused = event.is("turn_paused");
                }
            }
            "request_sent" => self.requests.push(Request {
                id: event.request().unwrap_or_default(),
                sent: event.seq,
                turn: id,
                conversation: &event.conversation,
                purpose: event.text("purpose"),
                incarnation: self.incarnations.last().map_or(0, |(_, n, _)| *n),
                ended: Vec::new(),
            }),
            "request_ended" => {
                let of = event.request().unwrap_or_default();
                let request = self.requests.iter_mut().rev().find(|known| known.id == of);
                if let Some(request) = request {
                    let outcome = event.body["outcome"]["type"].as_str().unwrap_or_default();
                    request.ended.push((event.seq, outcome));
                }
            }
            "incarnation_began" => {
                let n = event.body["incarnation"].as_u64().unwrap_or_default();
                self.incarnations.push((event.seq, n, event.text("after")));
            }
            "agent_stopped" => self.stopped = true,
            "agent_failed" => self.failed = true,
            "agent_started" => (self.stopped, self.failed) = (false, false),
            "agent_archived" => self.archived = true,
            "agent_restored" => self.archived = false,
            _ => {}
        }
    }

    fn tools(&mut self, event: &'a Event) {
        let turn = event.turn.as_deref().unwrap_or_default();
        let conversation = event.conversation.as_str();
        match event.kind.as_str() {
            "message" if event.text("status") == "complete" => {
                let blocks = event.body["blocks"].as_array().into_iter().flatten();
                for block in blocks.filter(|block| block["type"] == "tool_call") {
                    let call = self.calls.entry(block["id"].as_str().unwrap_or_default());
                    let call = call.or_default();
                    call.made.push(event.seq);
                    (call.turn, call.conversation) = (turn, conversation);
                    call.tool = block["name"].as_str().unwrap_or_default();
                }
            }
            "tool_started" => {
                let call = self.calls.entry(event.text("call")).or_default();
                call.started.push(event.seq);
                call.task = event.body["task"].as_str();
            }
            "tool_ended" => {
                let call = self.calls.entry(event.text("call")).or_default();
                call.ended.push((event.seq, event.text("outcome")));
            }
            "result" => {
                let call = self.calls.entry(event.text("call")).or_default();
                call.results
                    .push((event.seq, event.text("outcome"), conversation));
            }
            "task_started" => {
                let task = self.tasks.entry(event.text("task")).or_default();
                task.started.push(event.seq);
                task.call = event.text("call");
            }
            "task_ended" => {
                let task = self.tasks.entry(event.text("task")).or_default();
                task.ended.push(event.seq);
            }
            "hook_started" => self.hooks.push(event.text("hook")),
            "hook_ended" => self.hooks.retain(|hook| *hook != event.text("hook")),
            "approval_requested" => {
                let approval = self.approvals.entry(event.text("approval")).or_default();
                approval.asked.push(event.seq);
                (approval.call, approval.turn) = (event.text("call"), turn);
            }
            "approval_answered" => {
                let approval = self.approvals.entry(event.text("approval")).or_default();
                approval.answers.push((event.seq, event.text("decision")));
            }
            "approval_withdrawn" => {
                let approval = self.approvals.entry(event.text("approval")).or_default();
                approval.withdrawn.push(event.seq);
            }
            _ => {}
        }
    }

    fn tree(&mut self, event: &'a Event) {
        match event.kind.as_str() {
            "conversation_began" => self.pointer.push((event.seq, &event.conversation)),
            "pointer_moved" => self.pointer.push((event.seq, event.text("to"))),
            "reset_began" => {
                let from = self.current();
                let reset = self.reset(event);
                reset.began.push(event.seq);
                reset.from = reset.from.or(from);
            }
            "reset_stepped" => {
                let step = (event.seq, event.text("step"));
                self.reset(event).steps.push(step);
            }
            "reset_withdrawn" => {
                let why = (event.seq, event.text("why"));
                self.reset(event).withdrawn.push(why);
            }
            "reset_ended" => {
                let ended = (event.seq, event.text("old"), event.text("new"));
                self.reset(event).ended.push(ended);
            }
            _ => {}
        }
    }

    fn reset(&mut self, event: &'a Event) -> &mut Reset<'a> {
        let op = event.text("op");
        let at = self.resets.iter().position(|reset| reset.op == op);
        let at = at.unwrap_or_else(|| {
            let from = None;
            self.resets.push(Reset {
                op,
                from,
                ..Reset::default()
            });
            self.resets.len() - 1
        });
        &mut self.resets[at]
    }
}

/// Whether a scenario declared this for its run: true, or a list that contains `item`.
pub fn expects(expects: &Value, key: &str, item: &str) -> bool {
    match &expects[key] {
        Value::Bool(is) => *is,
        Value::Array(items) => items.iter().any(|known| known.as_str() == Some(item)),
        _ => false,
    }
}
