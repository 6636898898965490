//! Calls and tasks in progress.

use super::{Driver, Happening, ToolNews, ToolQuestion, hooks};
use agentd_core::event::Scan;
use agentd_core::hook::{HookInput, HookInvocation};
use agentd_core::id::{ApprovalId, BootId, CallId, TaskId, TurnId};
use agentd_core::mcp::{QuestionReply, Seen};
use agentd_core::message::{Block, CallOutcome, ToolCall};
use agentd_core::recover;
use agentd_core::state::{ScanSince, StartedCall};
use agentd_core::system_prompt::{Present, ToldFiles};
use agentd_core::turn::{Consent, Finished, Input};
use agentd_failpoint as failpoint;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;

impl Driver {
    pub(super) fn prepare_tool(&mut self, call: ToolCall, consent: Consent) {
        self.preparing += 1;
        if let Some(outer) = self.provider.as_outer() {
            outer.follow(&self.machine.agent().spec);
        }
        let (tools, happened) = (Arc::clone(&self.tools), self.happened.clone());
        let around = self.around();
        let seen = self.machine.window().seen_files().clone();
        tokio::spawn(async move {
            let id = call.id.clone();
            let (prepared, halt) = hooks::prepare(&*tools, around, call, consent, &seen).await;
            // If the driver is gone, so is the turn.
            let _gone = happened.send(Happening::Prepared(id, prepared));
            if let Some(reason) = halt {
                let _gone = happened.send(Happening::Halt(reason));
            }
        });
    }

    pub(super) fn run_tool(&mut self, call: ToolCall, started: StartedCall) {
        let (tools, happened) = (Arc::clone(&self.tools), self.happened.clone());
        let agent = self.machine.agent();
        if let Some(turn) = &agent.turn {
            tools.in_turn(agent.tree.current(), turn.id);
        }
        let cancelled = self.cancelled(&call.id);
        let around = self.around();
        tokio::spawn(async move {
            let (begin, known) = (Instant::now(), call.clone());
            let finished = tools.run(call, started, cancelled.clone()).await;
            hooks::finish(around, known, finished, Some(begin), cancelled, &happened).await;
        });
    }

    /// Waits for a call that an earlier process started.
    pub(super) fn resume_tool(&mut self, call: ToolCall, started: StartedCall) {
        let (tools, happened) = (Arc::clone(&self.tools), self.happened.clone());
        let cancelled = self.cancelled(&call.id);
        let around = self.around();
        tokio::spawn(async move {
            let (begin, known) = (Instant::now(), call.clone());
            let finished = tools.resume(call, started, cancelled.clone()).await;
            hooks::finish(around, known, finished, Some(begin), cancelled, &happened).await;
        });
    }

    /// Passes on the result of a call that ended while no runtime was running; the hooks get it first.
    pub(super) fn found_tool(&mut self, call: ToolCall, finished: Finished) {
        let happened = self.happened.clone();
        let cancelled = self.cancelled(&call.id);
        let around = self.around();
        tokio::spawn(async move {
            hooks::finish(around, call, finished, None, cancelled, &happened).await;
        });
    }

    /// Invokes the hooks for a call whose outcome is unknown. That is already in the journal, so the driver does not wait
    /// for the hooks.
    pub(super) fn lost_tool(&self, call: &ToolCall) {
        let Some((hooks, turn)) = self.around() else {
            return;
        };
        let blocks = [Block::text(recover::UNKNOWN)];
        let hook_input = HookInput::after_call(call, CallOutcome::Unknown, &blocks, None);
        let invocation = HookInvocation::of_call(turn, &call.id, hook_input);
        tokio::spawn(async move { hooks.invoke(invocation).await });
    }

    pub(super) fn cancel_tool(&self, call: &CallId) {
        if let Some(cancel) = self.calls.get(call) {
            let _ended = cancel.send(true);
        }
    }

    /// Passes on what running calls have to say, as long as they do.
    pub(super) fn watch_news(&self) {
        let Some(mut news) = self.tools.news() else {
            return;
        };
        let happened = self.happened.clone();
        tokio::spawn(async move {
            while let Some(news) = news.recv().await {
                if happened.send(Happening::News(news)).is_err() {
                    return;
                }
            }
        });
    }

    pub(super) fn tool_news(&mut self, news: ToolNews) {
        match news {
            ToolNews::Asks(asks) => self.tool_asks(asks),
            ToolNews::Withdraws(approval) => {
                self.asked.remove(&approval);
                self.step(Input::ToolWithdraws { approval });
            }
            ToolNews::Progress(progress) => {
                if self.calls.contains_key(&progress.call) {
                    self.journal.show(progress);
                }
            }
        }
    }

    /// A question whose call does not run is declined: its sender is dropped.
    fn tool_asks(&mut self, asks: ToolQuestion) {
        let ToolQuestion {
            approval,
            call,
            question,
            reply,
        } = asks;
        if self.calls.contains_key(&call) {
            self.asked.insert(approval, (call.clone(), reply));
            self.step(Input::ToolAsks {
                approval,
                call,
                question,
            });
        }
    }

    /// If the question was withdrawn, its reply is for no other one.
    pub(super) fn answer_tool(&mut self, approval: ApprovalId, reply: QuestionReply) {
        if let Some((_, asked)) = self.asked.remove(&approval) {
            let _ended = asked.send(reply);
        }
    }

    pub(super) fn finished(&mut self, call: CallId, finished: Finished) {
        self.calls.remove(&call);
        self.asked.retain(|_, (asking, _)| *asking != call);
        if let Some(task) = &finished.background {
            self.watch_task(task.task, task.boot);
        }
        self.step(Input::ToolFinished { call, finished });
    }

    pub(super) fn watch_task(&self, task: TaskId, boot: BootId) {
        let (tools, happened) = (Arc::clone(&self.tools), self.happened.clone());
        tokio::spawn(async move {
            let (exit, text) = tools.task_ended(task, boot).await;
            let _gone = happened.send(Happening::TaskEnded(task, exit, text));
        });
    }

    fn cancelled(&mut self, call: &CallId) -> watch::Receiver<bool> {
        let (cancel, cancelled) = watch::channel(false);
        self.calls.insert(call.clone(), cancel);
        cancelled
    }

    pub(super) fn read_instructions(&mut self, told: ToldFiles) {
        self.is_reading = true;
        let (tools, happened) = (Arc::clone(&self.tools), self.happened.clone());
        tokio::spawn(async move {
            let present = tools.instructions(told).await;
            let _gone = happened.send(Happening::InstructionsRead(present));
        });
    }

    pub(super) fn instructions_read(&mut self, present: Option<Present>) {
        self.is_reading = false;
        self.step(Input::InstructionsRead(present));
    }

    pub(super) fn list_mcp(&mut self, look: u64, unknown: Vec<String>) {
        failpoint::hit("before", "mcp.list");
        self.listing += 1;
        let (tools, happened) = (Arc::clone(&self.tools), self.happened.clone());
        tokio::spawn(async move {
            let seen = tools.list_mcp(unknown).await;
            let _gone = happened.send(Happening::McpSeen(look, seen));
        });
    }

    pub(super) fn mcp_seen(&mut self, look: u64, seen: Vec<Seen>) {
        self.listing -= 1;
        self.step(Input::McpSeen { look, seen });
    }

    pub(super) fn scan_files(&mut self, turn: TurnId, since: ScanSince) {
        failpoint::hit("before", "scan");
        self.is_scanning = true;
        let (tools, happened) = (Arc::clone(&self.tools), self.happened.clone());
        tokio::spawn(async move {
            let found = tools.scan(since).await;
            let _gone = happened.send(Happening::FilesScanned(turn, found));
        });
    }

    pub(super) fn files_scanned(&mut self, turn: TurnId, found: Scan) {
        self.is_scanning = false;
        self.step(Input::FilesScanned { turn, found });
    }
}
