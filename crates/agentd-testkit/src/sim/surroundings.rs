//! The runtime's environment: a model that answers, tools that end.

use super::runtime::{RuntimeProcess, Streaming, done};
use super::{Sim, Task};
use agentd_core::draft::{self, Change, Delta};
use agentd_core::event::{FailureClass, Scan, StopReason, ToolStarted};
use agentd_core::id::{CallId, TaskId};
use agentd_core::link::Draft;
use agentd_core::message::{Block, CallOutcome};
use agentd_core::turn::{Finished, Input, Prepared};
use std::collections::VecDeque;

impl Sim {
    pub(super) fn streaming(&mut self) -> Option<&mut Streaming> {
        self.runtime.as_mut()?.streaming.as_mut()
    }

    pub(super) fn stream(&mut self) {
        let Some(streaming) = self.streaming().filter(|streaming| !streaming.is_drafting) else {
            return;
        };
        let delta = Delta {
            part: 0,
            change: Change::Text {
                text: "word ".into(),
            },
        };
        let bytes = draft::encode(std::slice::from_ref(&delta)).expect("a delta can be written");
        let text = String::from_utf8(bytes).expect("JSON is text");
        let (request, offset) = (streaming.request, streaming.kept);
        streaming.kept += text.len() as u64;
        streaming.is_drafting = true;
        streaming.reply.apply(delta);
        let piece = Draft {
            request,
            offset,
            text,
        };
        if let Some(runtime) = &mut self.runtime {
            let did = runtime.link.draft(piece);
            self.runtime_did(did);
        }
    }

    /// While a chunk of a draft is in transit, the driver waits for it.
    fn take_stream(&mut self) -> Option<Streaming> {
        let runtime = self.runtime.as_mut()?;
        runtime
            .streaming
            .take_if(|streaming| !streaming.is_drafting)
    }

    pub(super) fn reply(&mut self, calls: u8) {
        let Some(Streaming {
            request, mut reply, ..
        }) = self.take_stream()
        else {
            return;
        };
        let text = format!("this is what I say, {}", self.new_id());
        reply.apply(Delta {
            part: 0,
            change: Change::Text { text },
        });
        for call in 0..usize::from(calls) {
            let (id, name) = (CallId::new(format!("call_{call}")), "shell".to_owned());
            let part = call + 1;
            let change = Change::Call { id, name };
            reply.apply(Delta { part, change });
        }
        let stop = match calls {
            0 => StopReason::EndTurn,
            _ => StopReason::ToolUse,
        };
        self.input(Input::Replied {
            request,
            reply,
            stop,
            usage: None,
            provider_request: None,
        });
    }

    pub(super) fn model_fails(&mut self) {
        let Some(Streaming { request, reply, .. }) = self.take_stream() else {
            return;
        };
        self.input(Input::RequestFailed {
            request,
            class: FailureClass::Overloaded,
            status: Some(529),
            retry_after_ms: None,
            detail: "it is busy".to_owned(),
            partial: reply,
        });
    }

    fn next_preparing(&mut self) -> Option<CallId> {
        let preparing = self.runtime.as_mut().map(|runtime| &mut runtime.preparing);
        preparing.and_then(VecDeque::pop_front)
    }

    /// The user must approve first.
    pub(super) fn tool_asks(&mut self) {
        if let Some(call) = self.next_preparing() {
            let prepared = Prepared::Ask(String::new());
            self.input(Input::Prepared { call, prepared });
        }
    }

    pub(super) fn tool_prepared(&mut self) {
        let Some(call) = self.next_preparing() else {
            return;
        };
        let prepared = Prepared::Run(
            ToolStarted {
                call: call.clone(),
                tool: "shell".into(),
                task: Some(TaskId::new(uuid::Uuid::from_u128(1))),
                boot: None,
                change: None,
                patched: Vec::new(),
                may_change_files: false,
            },
            Vec::new(),
        );
        self.input(Input::Prepared { call, prepared });
    }

    /// A tool's process that was not told to end ends by itself.
    pub(super) fn end_running(&mut self) -> Option<CallId> {
        let mut tasks = self.tasks.iter_mut();
        let (call, task) = tasks.find(|(_, task)| **task == Task::Running)?;
        *task = Task::Ended;
        Some(call.clone())
    }

    /// A tool's process ends, whether or not a call waits for it.
    pub(super) fn tool_ends(&mut self) {
        let mut tasks = self.tasks.iter_mut();
        let Some((call, task)) = tasks.find(|(_, task)| task.is_alive()) else {
            return;
        };
        let was = std::mem::replace(task, Task::Ended);
        let call = call.clone();
        let finished = match was {
            Task::Cancelled => Finished::new(CallOutcome::Interrupted, vec![Block::text("cut")]),
            _ => done(&call),
        };
        self.input(Input::ToolFinished { call, finished });
    }

    pub(super) fn scan_ends(&mut self) {
        let scanning = |runtime: &mut RuntimeProcess| runtime.scanning.take();
        if let Some(turn) = self.runtime.as_mut().and_then(scanning) {
            let (files, more) = (Vec::new(), 0);
            let found = Scan::Known { files, more };
            self.input(Input::FilesScanned { turn, found });
        }
    }

    pub(super) fn backoff_over(&mut self) {
        let waits = |runtime: &mut RuntimeProcess| std::mem::take(&mut runtime.is_backing_off);
        if self.runtime.as_mut().is_some_and(waits) {
            self.input(Input::BackoffOver);
        }
    }

    /// One more pending answer of the model or a tool. False if none is pending.
    pub(super) fn let_work(&mut self) -> bool {
        let Some(runtime) = &self.runtime else {
            return false;
        };
        if runtime.is_backing_off {
            self.backoff_over();
        } else if runtime.scanning.is_some() {
            self.scan_ends();
        } else if !runtime.preparing.is_empty() {
            self.tool_prepared();
        } else if self.tasks.values().any(|task| task.is_alive()) {
            self.tool_ends();
        } else if runtime.streaming.is_some() {
            self.reply(0);
        } else {
            return false;
        }
        true
    }
}
