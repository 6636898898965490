//! The child's own calls. The child runs them; here they are approved, and their ends are waited for.

use crate::driver::{ToolNews, ToolQuestion, Tools};
use crate::outer::{Next, Outer};
use agentd_core::event::{TaskExit, ToolStarted};
use agentd_core::id::{ApprovalId, BootId, CallId, TaskId};
use agentd_core::mcp::{Question, QuestionReply};
use agentd_core::message::{Block, CallOutcome, ToolCall};
use agentd_core::outer::{ChildEvent, NOT_RECORDED, ruled};
use agentd_core::recover::CallFact;
use agentd_core::spec::{ApprovalMode, Decision};
use agentd_core::state::StartedCall;
use agentd_core::turn::{Consent, Finished, Prepared};
use agentd_core::window::SeenFiles;
use async_trait::async_trait;
use std::sync::{Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

pub struct OuterTools {
    outer: Outer,
    asks: mpsc::UnboundedSender<ToolNews>,
    /// Taken by the driver.
    news: Mutex<Option<mpsc::UnboundedReceiver<ToolNews>>>,
}

impl OuterTools {
    pub fn new(outer: Outer) -> Self {
        let (asks, news) = mpsc::unbounded_channel();
        Self {
            outer,
            asks,
            news: Mutex::new(Some(news)),
        }
    }

    /// Asks the user what the program wants to know. The question is durable before the user sees it, and goes with the
    /// call: with the program, or with the turn.
    async fn elicit(
        &self,
        call: CallId,
        (elicitation, question): (String, Question),
        mut cancelled: watch::Receiver<bool>,
    ) -> Finished {
        let (reply, replied) = oneshot::channel();
        let asks = ToolQuestion {
            approval: ApprovalId::new(Uuid::now_v7()),
            call,
            question,
            reply,
        };
        // Without a driver the reply is dropped, and the question declined.
        let _gone = self.asks.send(ToolNews::Asks(asks));
        let reply = tokio::select! {
            reply = replied => reply.unwrap_or(QuestionReply::Decline),
            () = self.outer.talk().until_over() => {
                let text = "The agent's program did not wait for the answer.";
                return said(CallOutcome::Error, text);
            }
            () = until_cancelled(&mut cancelled) => {
                self.outer.cancel(self.outer.newest_turn()).await;
                return said(CallOutcome::Interrupted, "The turn was interrupted before you answered.");
            }
        };
        let text = match &reply {
            QuestionReply::Accept(_) => "The question was answered.",
            QuestionReply::Decline => "The question was declined.",
        };
        self.outer.reply(&elicitation, reply).await;
        said(CallOutcome::Ok, text)
    }

    /// What the rules say about a question, and then the approval mode; `None` if the call may run. With `approval: never`
    /// the sandbox alone decides. A rule that refuses counts with any consent.
    fn rule(&self, call: &ToolCall, consent: Consent) -> Option<Prepared> {
        if call.arguments.to_object().contains_key(NOT_RECORDED) {
            let text = "The arguments of this call are too long to be recorded, so neither rules nor a user can judge it; \
                        nothing was run.";
            return Some(refused(text.to_owned()));
        }
        let permissions = self.outer.permissions();
        let mode = permissions.approval;
        match (ruled(&permissions.rules, call), consent) {
            (Some((Decision::Deny, why)), _) => {
                Some(refused(format!("The rules refuse this call: {why}.")))
            }
            (Some((Decision::Ask, why)), _) if mode == ApprovalMode::Never => {
                Some(refused(format!("The rules refuse this call: {why}.")))
            }
            (Some((Decision::Ask, why)), Consent::NotAsked) => Some(Prepared::Ask(why)),
            (None, Consent::NotAsked) if mode != ApprovalMode::Never => {
                let why = "the agent's program asks for permission";
                Some(Prepared::Ask(why.to_owned()))
            }
            (Some((Decision::Allow | Decision::Ask, _)) | None, _) => None,
        }
    }
}

fn refused(text: String) -> Prepared {
    Prepared::Refuse {
        outcome: CallOutcome::Denied,
        blocks: vec![Block::text(text)],
    }
}

#[async_trait]
impl Tools for OuterTools {
    /// The program asks about it, and waits. A call that it does not ask about runs already.
    fn awaits_decision(&self, _call: &ToolCall) -> bool {
        let talk = self.outer.talk();
        talk.has_question() && talk.is_in_turn()
    }

    /// The program runs the call, with the arguments that it has.
    fn takes_other_input(&self) -> bool {
        false
    }

    fn never_asks(&self) -> bool {
        self.outer.permissions().approval == ApprovalMode::Never
    }

    async fn prepare(&self, call: &ToolCall, consent: Consent, _seen: &SeenFiles) -> Prepared {
        // A question that comes later is asked as a call of its own.
        if self.awaits_decision(call)
            && let Some(prepared) = self.rule(call, consent)
        {
            return prepared;
        }
        let started = ToolStarted::new(call.id.clone(), call.name.clone());
        Prepared::Run(started, Vec::new())
    }

    async fn run(
        &self,
        call: ToolCall,
        _started: StartedCall,
        mut cancelled: watch::Receiver<bool>,
    ) -> Finished {
        if let Some(elicited) = self.outer.talk().take_elicited() {
            return self.elicit(call.id, elicited, cancelled).await;
        }
        self.outer.allow().await;
        let next = tokio::select! {
            next = self.outer.talk().call_ended() => next,
            () = until_cancelled(&mut cancelled) => {
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
                "The call has not ended; the agent's program has a question meanwhile. See the next call.",
            ),
            Next::Full => said(
                CallOutcome::Ok,
                "The call has not ended; the agent's program goes on meanwhile. See what follows.",
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

    fn news(&self) -> Option<mpsc::UnboundedReceiver<ToolNews>> {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        news.take()
    }

    async fn close(&self) {
        self.outer.close().await;
    }
}

async fn until_cancelled(cancelled: &mut watch::Receiver<bool>) {
    // If the driver is gone, so is the turn.
    drop(cancelled.wait_for(|cancelled| *cancelled).await);
}

fn said(outcome: CallOutcome, text: &str) -> Finished {
    Finished::new(outcome, vec![Block::text(text)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outer::fixture::in_turn;
    use agentd_core::message::Arguments;
    use agentd_core::spec::{AgentSpec, Rule};
    use serde_json::{Value, json};

    fn rule(pattern: &str, decision: Decision) -> Rule {
        Rule {
            tool: "execute".to_owned(),
            pattern: Some(pattern.to_owned()),
            decision,
            needs: Vec::new(),
        }
    }

    fn execute(arguments: &Value) -> ToolCall {
        ToolCall {
            id: CallId::new("c"),
            name: "execute".to_owned(),
            arguments: Arguments::Object(arguments.as_object().unwrap().clone()),
            signature: None,
        }
    }

    /// What becomes of a call that the program asks about.
    async fn prepared(outer: &Outer, call: &ToolCall, consent: Consent) -> &'static str {
        let tools = OuterTools::new(outer.clone());
        match tools.prepare(call, consent, &SeenFiles::default()).await {
            Prepared::Run(..) => "run",
            Prepared::Ask(_) => "ask",
            Prepared::Refuse { outcome, .. } => {
                assert_eq!(outcome, CallOutcome::Denied);
                "refuse"
            }
        }
    }

    /// A hook that allows, or a user who saw the call before the rules changed, does not overrule a rule that refuses.
    #[tokio::test]
    async fn a_rule_that_refuses_counts_with_any_consent() {
        let rules = [rule("rm *", Decision::Deny), rule("mv *", Decision::Ask)];
        let outer = in_turn(&rules, ApprovalMode::OnRequest, Some("q"));
        for (line, not_asked, given) in [
            ("rm -r x", "refuse", "refuse"),
            ("mv a b", "ask", "run"),
            ("ls", "ask", "run"),
        ] {
            let call = execute(&json!({"command": line}));
            assert_eq!(prepared(&outer, &call, Consent::NotAsked).await, not_asked);
            assert_eq!(prepared(&outer, &call, Consent::Given).await, given);
        }
        let never = in_turn(&rules, ApprovalMode::Never, Some("q"));
        for (line, expected) in [("rm -r x", "refuse"), ("mv a b", "refuse"), ("ls", "run")] {
            let call = execute(&json!({"command": line}));
            assert_eq!(prepared(&never, &call, Consent::NotAsked).await, expected);
        }
    }

    #[tokio::test]
    async fn a_call_whose_arguments_were_not_recorded_is_refused() {
        let long = json!({NOT_RECORDED: "300000 bytes", "title": "ls"});
        for approval in [ApprovalMode::Never, ApprovalMode::OnRequest] {
            let outer = in_turn(&[], approval, Some("q"));
            for consent in [Consent::NotAsked, Consent::Given] {
                let call = execute(&long);
                assert_eq!(prepared(&outer, &call, consent).await, "refuse");
            }
        }
    }

    #[tokio::test]
    async fn a_call_that_the_program_does_not_ask_about_is_only_recorded() {
        let rules = [rule("rm *", Decision::Deny)];
        let outer = in_turn(&rules, ApprovalMode::OnRequest, None);
        let call = execute(&json!({"command": "rm -r x"}));
        let tools = OuterTools::new(outer.clone());
        assert!(!tools.awaits_decision(&call));
        assert_eq!(prepared(&outer, &call, Consent::NotAsked).await, "run");
    }

    #[tokio::test]
    async fn rules_that_are_added_in_the_middle_of_a_turn_apply_at_once() {
        let outer = in_turn(
            &[rule("mv *", Decision::Ask)],
            ApprovalMode::Never,
            Some("q"),
        );
        let spec = AgentSpec {
            permissions: vec![rule("rm *", Decision::Deny), rule("ls", Decision::Allow)],
            ..AgentSpec::default()
        };
        outer.follow(&spec);
        for (line, expected) in [
            ("rm -r x", "refuse"),
            ("ls", "run"),
            ("mv a b", "ask"),
            ("cat x", "ask"),
        ] {
            let call = execute(&json!({"command": line}));
            assert_eq!(prepared(&outer, &call, Consent::NotAsked).await, expected);
        }
    }

    #[tokio::test]
    async fn a_rule_that_allows_ends_when_it_is_removed_in_the_middle_of_a_turn() {
        let rules = [
            rule("*", Decision::Allow),
            rule("ls", Decision::Allow),
            rule("rm *", Decision::Deny),
        ];
        let outer = in_turn(&rules, ApprovalMode::OnRequest, Some("q"));
        let cat = execute(&json!({"command": "cat x"}));
        assert_eq!(prepared(&outer, &cat, Consent::NotAsked).await, "run");
        let spec = AgentSpec {
            permissions: vec![rule("ls", Decision::Allow)],
            ..AgentSpec::default()
        };
        outer.follow(&spec);
        for (line, expected) in [("cat x", "ask"), ("ls", "run"), ("rm -r x", "refuse")] {
            let call = execute(&json!({"command": line}));
            assert_eq!(prepared(&outer, &call, Consent::NotAsked).await, expected);
        }
    }

    /// The program that asked is not there any more: the question goes with the call.
    #[tokio::test]
    async fn what_the_program_wants_to_know_ends_with_its_turn() {
        let outer = in_turn(&[], ApprovalMode::Never, None);
        let question = Question {
            server: "goose".to_owned(),
            message: "Who are you?".to_owned(),
            form: None,
            url: None,
        };
        outer.talk().open_elicitation("c", question.clone());
        let elicited = outer.talk().take_elicited().unwrap();
        assert_eq!(outer.talk().take_elicited(), None, "once");
        let tools = OuterTools::new(outer.clone());
        let mut news = tools.news().unwrap();
        let (_cancel, cancelled) = watch::channel(false);
        let program = async {
            let Some(ToolNews::Asks(asks)) = news.recv().await else {
                panic!("no question")
            };
            assert_eq!(asks.question, question);
            outer.talk().end_turn();
            // Not declined by a driver that drops it.
            asks
        };
        let call = tools.elicit(CallId::new("c"), elicited, cancelled);
        let (finished, _asks) = tokio::join!(call, program);
        assert_eq!(finished.outcome, CallOutcome::Error);
    }
}
