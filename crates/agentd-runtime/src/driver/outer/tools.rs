//! The child's own calls. The child runs them; here they are approved, and their ends are waited for.

use crate::driver::Tools;
use crate::outer::{Next, Outer};
use agentd_core::event::{TaskExit, ToolStarted};
use agentd_core::id::{BootId, TaskId};
use agentd_core::message::{Block, CallOutcome, ToolCall};
use agentd_core::outer::ChildEvent;
use agentd_core::permission::{Subject, verdict};
use agentd_core::recover::CallFact;
use agentd_core::spec::{ApprovalMode, Decision};
use agentd_core::state::StartedCall;
use agentd_core::turn::{Consent, Finished, Prepared};
use agentd_core::window::SeenFiles;
use async_trait::async_trait;
use std::time::Duration;
use tokio::sync::watch;

/// How long to wait for a child's question about a call that it has just reported.
const QUESTION: Duration = Duration::from_millis(300);

pub struct OuterTools {
    outer: Outer,
}

impl OuterTools {
    pub const fn new(outer: Outer) -> Self {
        Self { outer }
    }

    /// What the rules say about a question, and then the approval mode; `None` if the call may run. With `approval: never`
    /// the sandbox alone decides.
    fn rule(&self, call: &ToolCall) -> Option<Prepared> {
        let subject = subject(call);
        let ruled = verdict(self.outer.rules(), &call.name, &subject);
        let mode = self.outer.approval();
        match ruled.map(|ruled| (ruled.decision, ruled.because.to_string())) {
            Some((Decision::Allow, _)) => None,
            Some((Decision::Ask, why)) if mode != ApprovalMode::Never => Some(Prepared::Ask(why)),
            Some((Decision::Deny | Decision::Ask, why)) => Some(Prepared::Refuse {
                outcome: CallOutcome::Denied,
                blocks: vec![Block::text(format!("The rules refuse this call: {why}."))],
            }),
            None if mode == ApprovalMode::Never => None,
            None => {
                let why = "the agent's program asks for permission";
                Some(Prepared::Ask(why.to_owned()))
            }
        }
    }
}

/// A command line if the call has one, otherwise its arguments as text.
fn subject(call: &ToolCall) -> Subject {
    let arguments = call.arguments.to_object();
    match arguments.get("command").and_then(serde_json::Value::as_str) {
        Some(line) => Subject::Command(line.to_owned()),
        None => {
            let texts = arguments.values().filter_map(serde_json::Value::as_str);
            Subject::Names(texts.map(str::to_owned).collect())
        }
    }
}

#[async_trait]
impl Tools for OuterTools {
    async fn prepare(&self, call: &ToolCall, consent: Consent, _seen: &SeenFiles) -> Prepared {
        let talk = self.outer.talk();
        if !talk.has_question() {
            // A question that comes later is asked as a call of its own.
            let _unknown = tokio::time::timeout(QUESTION, talk.until_known()).await;
        }
        if consent == Consent::NotAsked
            && talk.has_question()
            && talk.is_in_turn()
            && let Some(prepared) = self.rule(call)
        {
            return prepared;
        }
        let started = ToolStarted {
            call: call.id.clone(),
            tool: call.name.clone(),
            task: None,
            boot: None,
            change: None,
            patched: Vec::new(),
        };
        Prepared::Run(started, Vec::new())
    }

    async fn run(
        &self,
        _call: ToolCall,
        _started: StartedCall,
        mut cancelled: watch::Receiver<bool>,
    ) -> Finished {
        self.outer.allow().await;
        let is_cancelled = async {
            // If the driver is gone, so is the turn.
            drop(cancelled.wait_for(|cancelled| *cancelled).await);
        };
        let next = tokio::select! {
            next = self.outer.talk().call_ended() => next,
            () = is_cancelled => {
                self.outer.cancel(self.outer.newest_turn()).await;
                let text = "The turn was interrupted while this call ran; it may have had an effect.";
                return said(CallOutcome::Interrupted, text);
            }
        };
        match next {
            Next::Ended(ChildEvent::CallEnded {
                outcome, blocks, ..
            }) => Finished::new(outcome, blocks),
            Next::Ended(_) | Next::Over => said(
                CallOutcome::Unknown,
                "Outcome unknown: the agent's program did not report the end of this call.",
            ),
            Next::Question => said(
                CallOutcome::Ok,
                "The call goes on; the agent's program asks about the next one meanwhile.",
            ),
        }
    }

    async fn find(&self, _call: &ToolCall, _started: &StartedCall) -> CallFact {
        CallFact::Unknown
    }

    async fn resume(
        &self,
        _call: ToolCall,
        _started: StartedCall,
        _cancelled: watch::Receiver<bool>,
    ) -> Finished {
        said(CallOutcome::Unknown, "The outcome of this call is unknown.")
    }

    async fn task_ended(&self, _task: TaskId, _boot: BootId) -> (TaskExit, String) {
        // It has no tasks of its own. One of an earlier runtime is not waited for.
        std::future::pending().await
    }

    async fn close(&self) {
        self.outer.close().await;
    }
}

fn said(outcome: CallOutcome, text: &str) -> Finished {
    Finished::new(outcome, vec![Block::text(text)])
}
