//! The answers of the model and of the tools.

use super::JournalDriver;
use crate::journal::ops::{PrepareOp, ReplyOp, Signed};
use agentd_core::draft::{Change, Delta, Reply};
use agentd_core::event::*;
use agentd_core::id::{BootId, CallId, TaskId};
use agentd_core::message::{Block, CallOutcome};
use agentd_core::turn::{Finished, Input, Prepared};

impl JournalDriver {
    /// A reply that is assembled from deltas, as a driver does.
    pub(super) fn stream(&mut self, op: &ReplyOp) -> Reply {
        let mut deltas = Vec::new();
        let mut part = 0;
        let mut push = |change: Change, next: bool| {
            deltas.push(Delta { part, change });
            part += usize::from(next);
        };
        if let Some(signed) = op.thinking {
            let text = self.source.word();
            push(Change::Thinking { text }, matches!(signed, Signed::No));
            if let Signed::Yes = signed {
                let signature = self.source.signature(self.wire);
                push(Change::Signature { signature }, true);
            }
        }
        for _ in 0..op.texts {
            let text = self.source.word();
            push(Change::Text { text }, false);
            push(
                Change::Text {
                    text: " and".into(),
                },
                true,
            );
        }
        if op.blank {
            push(Change::Text { text: " \n".into() }, true);
        }
        if op.native {
            let block = self.source.native(self.wire);
            push(Change::Whole { block }, true);
        }
        for id in &op.calls {
            let call = self.source.call(id);
            let json = match op.malformed {
                true => format!("{{\"command\": \"{}", self.source.word()),
                false => serde_json::Value::Object(call.arguments.to_object()).to_string(),
            };
            push(
                Change::Call {
                    id: call.id,
                    name: call.name,
                },
                false,
            );
            push(Change::Arguments { json }, true);
        }
        if op.trailing_text {
            let text = self.source.word();
            push(Change::Text { text }, true);
        }
        let mut reply = Reply::default();
        deltas.into_iter().for_each(|delta| reply.apply(delta));
        reply
    }

    pub(super) fn reply(&mut self, op: &ReplyOp) {
        let Some(request) = self.in_flight.take() else {
            return;
        };
        let reply = self.stream(op);
        let stop = StopReason::EndTurn;
        let (usage, provider_request) = (None, None);
        self.step(Input::Replied {
            request,
            reply,
            stop,
            usage,
            provider_request,
        });
    }

    pub(super) fn fail(&mut self, class: FailureClass, partial: &ReplyOp) {
        let Some(request) = self.in_flight.take() else {
            return;
        };
        let partial = self.stream(partial);
        let (status, retry_after_ms) = (None, None);
        let detail = "it failed".to_owned();
        self.step(Input::RequestFailed {
            request,
            class,
            status,
            retry_after_ms,
            detail,
            partial,
        });
    }

    pub(super) fn prepare(&mut self, how: PrepareOp) {
        let Some(call) = self.preparing.pop_front() else {
            return;
        };
        let prepared = match how {
            PrepareOp::Run => self.run_prepared(&call),
            PrepareOp::Ask => Prepared::Ask(String::new()),
            PrepareOp::Refuse => Prepared::Refuse {
                outcome: CallOutcome::Denied,
                blocks: vec![self.source.text()],
            },
        };
        self.step(Input::Prepared { call, prepared });
    }

    /// Every other call runs a command, and the others change a file.
    fn run_prepared(&mut self, call: &CallId) -> Prepared {
        let id = self.source.uuid();
        let runs_command = id.as_u128().is_multiple_of(2);
        let kept = match runs_command {
            true => Vec::new(),
            false => vec![self.file_kept(call)],
        };
        let change = kept.first().map(|kept| FileChange {
            file: None,
            before: None,
            after: String::new(),
            kept_bytes: kept.counted_bytes(),
            is_private: false,
        });
        let started = ToolStarted {
            call: call.clone(),
            tool: "shell".into(),
            task: runs_command.then(|| TaskId::new(id)),
            boot: None,
            change,
            patched: Vec::new(),
            may_change_files: false,
        };
        Prepared::Run(started, kept)
    }

    fn file_kept(&mut self, call: &CallId) -> FileKept {
        let text = self.source.word();
        FileKept {
            by: KeptBy::Call { call: call.clone() },
            path: format!("/{}", self.source.word()),
            before: FileBefore::File {
                mode: 0o644,
                size: text.len() as u64,
                hash: String::new(),
                content: KeptContent::Text { text },
            },
            part: 0,
            parts: 1,
        }
    }

    pub(super) fn scan(&mut self) -> Scan {
        let path = format!("/{}", self.source.word());
        let file = ScannedFile {
            link: false,
            path,
            change: ScannedChange::Added,
            head: None,
            index: None,
            mode: 0,
            after: None,
            mode_before: None,
            unsure: false,
            git_before: None,
        };
        Scan::Known {
            files: vec![file],
            more: 0,
        }
    }

    pub(super) fn finish(&mut self, which: usize, outcome: CallOutcome, empty: bool) {
        if self.running.is_empty() {
            return;
        }
        let call = self.running.remove(which % self.running.len());
        let blocks = match empty {
            true => vec![Block::text("")],
            false => vec![self.source.text()],
        };
        let finished = Finished::new(outcome, blocks);
        self.step(Input::ToolFinished { call, finished });
    }

    pub(super) fn leave_running(&mut self, which: usize) {
        if self.running.is_empty() {
            return;
        }
        let call = self.running.remove(which % self.running.len());
        let background = Some(TaskStarted {
            task: TaskId::new(self.source.uuid()),
            call: call.clone(),
            tool: "shell".into(),
            boot: BootId::new(self.source.uuid()),
        });
        let blocks = vec![self.source.text()];
        let seen = vec![FileSeen {
            file: self.source.word(),
            content: self.source.word(),
        }];
        let plan = PlanSet {
            steps: vec![PlanStep {
                step: self.source.word(),
                state: StepState::InProgress,
            }],
            explanation: None,
        };
        let finished = Finished {
            background,
            seen,
            also: vec![plan.into()],
            ..Finished::new(CallOutcome::Ok, blocks)
        };
        self.step(Input::ToolFinished { call, finished });
    }

    pub(super) fn end_task(&mut self) {
        let oldest = self.machine.agent().tasks.running().next();
        let Some(task) = oldest.map(|(task, _)| *task) else {
            return;
        };
        let (exit, text) = (TaskExit::Code { code: 0 }, self.source.word());
        self.step(Input::TaskEnded { task, exit, text });
    }
}
