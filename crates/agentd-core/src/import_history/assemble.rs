//! Puts prompts, replies and results together into the events of a journal: turns, calls with their results, and a
//! window that is bounded.

use super::bound::Bound;
use super::fit::Room;
use super::reply::Reply;
use super::{Left, Program, Report};
use crate::begin::INIT;
use crate::digest::uuid_of;
use crate::event::{
    AgentCreated, BeginSource, Body, CheckpointSet, Compacted, ConversationBegan, Event,
    MessageAdded, MessageStatus, Mode, NewEvent, Note, Notice, NoticeCause, Position, Prompt,
    PromptMode, PromptQueued, PromptsTaken, ResultAdded, SpecSet, StopReason, Summary, ToolEnded,
    ToolStarted, TurnEnded, TurnStarted, TurnStatus,
};
use crate::id::{AgentId, CallId, ConversationId, PromptId, Seq, TurnId};
use crate::message::{Block, CallOutcome};
use crate::recover::session_latest;
use crate::spec::AgentSpec;
use crate::time::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use uuid::Uuid;

/// How many messages wait for the results of earlier ones. A result that comes later is left out.
const WAITING: usize = 8;

pub(super) struct Assembler {
    program: Program,
    agent: AgentId,
    conversation: ConversationId,
    seq: Seq,
    at: Timestamp,
    turn: Option<OpenTurn>,
    ids: u64,
    /// Messages in order. Those after the first wait until the calls of the first have their results.
    waiting: VecDeque<Waiting>,
    bound: Bound,
    events: Vec<Event>,
    report: Report,
}

struct OpenTurn {
    id: TurnId,
    /// How it would end now.
    status: TurnStatus,
    has_reply: bool,
}

enum Waiting {
    Prompt(Timestamp, Vec<Block>),
    Reply(Box<Reply>),
}

impl Assembler {
    pub(super) fn new(program: Program, agent: AgentId, at: Timestamp) -> Self {
        let conversation = uuid_of(&[agent.as_bytes(), b"conversation"]);
        Self {
            program,
            agent,
            conversation: ConversationId::new(conversation),
            seq: Seq::ZERO,
            at,
            turn: None,
            ids: 0,
            waiting: VecDeque::new(),
            bound: Bound::default(),
            events: Vec::new(),
            report: Report::default(),
        }
    }

    pub(super) fn begin(&mut self, name: &str, spec: &AgentSpec, session: &str) {
        let (name, mode) = (name.to_owned(), Mode::Persistent);
        self.push(AgentCreated { name, mode });
        let spec = Box::new(spec.clone());
        self.push(SpecSet { spec });
        let (parent, from, op) = (None, None, None);
        let source = BeginSource::Import;
        self.push(ConversationBegan {
            source,
            parent,
            from,
            op,
        });
        let (label, at) = (INIT.to_owned(), None);
        self.push(CheckpointSet { label, at });
        let text = format!("Imported from {}, session {session}", self.program);
        self.push(Note { about: None, text });
    }

    /// The events since the last call.
    pub(super) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn skip(&mut self, reason: Left, record: u64) {
        self.report.skip(reason, record);
    }

    /// The time of what follows.
    pub(super) fn at(&mut self, at: Option<Timestamp>) {
        self.at = at.unwrap_or(self.at);
    }

    pub(super) fn prompt(&mut self, record: u64, blocks: Vec<Block>) {
        let mut room = Room::new();
        let mut kept = Vec::new();
        for block in blocks {
            let (block, left) = room.fit(block);
            kept.extend(block.filter(|block| !block.is_blank()));
            if let Some(left) = left {
                self.skip(left, record);
            }
        }
        if kept.is_empty() {
            return;
        }
        self.waiting.push_back(Waiting::Prompt(self.at, kept));
        self.write_complete();
    }

    /// A part of a reply. The ids of its calls are those of the file.
    pub(super) fn reply(&mut self, record: u64, id: Option<&str>, block: Block) {
        let is_blank = match &block {
            Block::Thinking { text, .. } => text.trim().is_empty(),
            block => block.is_blank(),
        };
        if is_blank {
            return;
        }
        let continues =
            |item: &Waiting| matches!(item, Waiting::Reply(reply) if reply.continues_with(id));
        let index = match id {
            Some(_) => self.waiting.iter().rposition(continues),
            None => {
                let last = self.waiting.len().checked_sub(1);
                last.filter(|last| self.waiting.get(*last).is_some_and(continues))
            }
        };
        if index.is_none() {
            let reply = Reply::new(id.map(str::to_owned), self.at, record);
            self.waiting.push_back(Waiting::Reply(Box::new(reply)));
        }
        let index = index.unwrap_or(self.waiting.len().saturating_sub(1));
        let Some(Waiting::Reply(reply)) = self.waiting.get_mut(index) else {
            return;
        };
        let ids = &mut self.ids;
        let mut new_call = || {
            *ids += 1;
            CallId::new(format!("imported_{ids}"))
        };
        if let Some(left) = reply.add(block, &mut new_call) {
            self.report.skip(left, record);
        }
        self.write_complete();
    }

    pub(super) fn result(
        &mut self,
        record: u64,
        call: &str,
        outcome: CallOutcome,
        blocks: Vec<Block>,
    ) {
        let at = self.at;
        let of_call = self.waiting.iter_mut().find_map(|item| match item {
            Waiting::Reply(reply) if reply.awaits(call) => Some(reply),
            _ => None,
        });
        let Some(reply) = of_call else {
            self.skip(Left::ResultWithoutCall, record);
            return;
        };
        for left in reply.answer(call, at, outcome, blocks) {
            self.report.skip(left, record);
        }
        self.write_complete();
    }

    /// The user stopped the reply or the call that came last.
    pub(super) fn interrupted(&mut self) {
        if let Some(Waiting::Reply(reply)) = self.waiting.back_mut() {
            reply.is_interrupted = true;
        } else if let Some(turn) = &mut self.turn {
            turn.status = TurnStatus::Interrupted;
        }
    }

    /// The program summarised everything before.
    pub(super) fn summary(&mut self, text: &str) {
        self.write_all_waiting();
        let is_answered = |turn: &OpenTurn| turn.status == TurnStatus::Completed;
        if self.turn.as_ref().is_some_and(is_answered) {
            self.end_turn();
        }
        if text.trim().is_empty() {
            return;
        }
        let mut room = Room::new();
        if let (Some(Block::Text { text }), _) = room.fit(Block::text(text)) {
            self.bound.summarised();
            self.bound.add(&[Block::text("")]);
            self.summarise(self.seq, text);
        }
    }

    fn summarise(&mut self, through: Seq, text: String) {
        let (agent, seq) = (self.agent, through);
        let through = Position { agent, seq };
        self.push(Compacted { through });
        self.push(Summary { through, text });
    }

    /// Ends everything.
    pub(super) fn finish(&mut self) -> Report {
        self.write_all_waiting();
        self.end_turn();
        let lines = self.report.skipped().filter(|it| !it.reason.is_routine());
        let lines: Vec<String> = lines.map(|it| it.reason.counted(it.count)).collect();
        if !lines.is_empty() {
            let text = format!("Not imported as it was: {}", lines.join("; "));
            self.push(Note { about: None, text });
        }
        let text = format!(
            "The conversation up to here took place in another program, {}, with other tools. Use the tools that you \
             have now, whatever the calls above are named. Files may have changed since.",
            self.program
        );
        let cause = NoticeCause::Imported;
        self.push(Notice { cause, text });
        self.push(session_latest());
        self.report.events = self.seq.0;
        std::mem::take(&mut self.report)
    }

    /// Writes the messages that are complete.
    fn write_complete(&mut self) {
        loop {
            let is_last = self.waiting.len() == 1;
            let is_full = self.waiting.len() > WAITING;
            let is_ready = match self.waiting.front() {
                Some(Waiting::Prompt(..)) => true,
                // The last one may still get parts.
                Some(Waiting::Reply(reply)) => is_full || (!is_last && reply.is_complete()),
                None => false,
            };
            if !is_ready {
                return;
            }
            self.write_front();
        }
    }

    fn write_all_waiting(&mut self) {
        while !self.waiting.is_empty() {
            self.write_front();
        }
    }

    fn write_front(&mut self) {
        match self.waiting.pop_front() {
            Some(Waiting::Prompt(at, blocks)) => self.write_prompt(at, blocks),
            Some(Waiting::Reply(reply)) => self.write_reply(*reply),
            None => {}
        }
        if let Some(through) = self.bound.cut() {
            self.report.cuts += 1;
            let text = format!(
                "The beginning of this conversation is not shown, because it is too long. It was imported from {}.",
                self.program
            );
            self.summarise(through, text);
        }
    }

    fn write_prompt(&mut self, at: Timestamp, blocks: Vec<Block>) {
        let now = std::mem::replace(&mut self.at, at);
        // Prompts that were not answered one by one belong to one turn.
        if self.turn.as_ref().is_some_and(|turn| turn.has_reply) {
            self.end_turn();
        }
        let prompt = PromptId::new(self.new_id("prompt"));
        let (key, mode) = (None, PromptMode::Queue);
        self.bound.add(&blocks);
        self.push(PromptQueued { prompt, key, mode });
        self.push(Prompt { prompt, blocks });
        self.open_turn();
        let prompts = vec![prompt];
        self.push(PromptsTaken { prompts });
        self.report.prompts += 1;
        self.at = now;
    }

    fn write_reply(&mut self, mut reply: Reply) {
        if reply.blocks.is_empty() {
            return;
        }
        let now = std::mem::replace(&mut self.at, reply.at);
        for _ in 0..reply.close() {
            self.skip(Left::CallWithoutResult, reply.record);
        }
        self.open_turn();
        let calls = reply.calls();
        let tools: BTreeMap<CallId, String> = reply
            .blocks
            .iter()
            .filter_map(Block::as_call)
            .map(|call| (call.id.clone(), call.name.clone()))
            .collect();
        let ends = calls == 0 && !reply.is_interrupted;
        if let Some(turn) = &mut self.turn {
            turn.has_reply = true;
            turn.status = match ends {
                true => TurnStatus::Completed,
                false => TurnStatus::Interrupted,
            };
        }
        self.bound.add(&reply.blocks);
        self.push(MessageAdded {
            request: None,
            status: match reply.is_interrupted && calls == 0 {
                true => MessageStatus::Interrupted,
                false => MessageStatus::Complete,
            },
            stop: match (reply.is_interrupted, calls) {
                (true, _) => None,
                (false, 0) => Some(StopReason::EndTurn),
                (false, _) => Some(StopReason::ToolUse),
            },
            blocks: reply.blocks,
        });
        for (at, result) in reply.results {
            let tool = tools.get(&result.call).cloned().unwrap_or_default();
            self.write_result(at, tool, result);
        }
        self.report.replies += 1;
        self.report.calls += calls as u64;
        self.bound.mark(self.seq);
        self.at = now;
    }

    fn write_result(&mut self, at: Timestamp, tool: String, result: ResultAdded) {
        self.at = at;
        let (call, outcome) = (result.call.clone(), result.outcome);
        self.push(ToolStarted::new(call.clone(), tool));
        self.push(ToolEnded::new(call, outcome));
        self.bound.add_result(&result);
        self.push(result);
    }

    fn open_turn(&mut self) {
        if self.turn.is_some() {
            return;
        }
        let id = TurnId::new(self.new_id("turn"));
        let (status, has_reply) = (TurnStatus::Interrupted, false);
        self.turn = Some(OpenTurn {
            id,
            status,
            has_reply,
        });
        self.push(TurnStarted::default());
    }

    fn end_turn(&mut self) {
        let Some(status) = self.turn.as_ref().map(|turn| turn.status) else {
            return;
        };
        self.push(TurnEnded::with(status));
        self.turn = None;
    }

    fn new_id(&mut self, what: &str) -> Uuid {
        self.ids += 1;
        let number = self.ids.to_le_bytes();
        uuid_of(&[self.agent.as_bytes(), what.as_bytes(), &number])
    }

    fn push(&mut self, body: impl Into<Body>) {
        self.seq = self.seq.next();
        let event = NewEvent {
            at: self.at,
            conversation: self.conversation,
            turn: self.turn.as_ref().map(|turn| turn.id),
            body: body.into(),
        };
        self.events.push(event.placed(self.agent, self.seq));
    }
}
