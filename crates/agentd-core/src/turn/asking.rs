//! What the user is asked about calls: whether one may start, and what its MCP server wants to know while it runs.

use super::live::Asking;
use super::{Effect, LiveCall, Machine};
use crate::event::{
    ApprovalAnswered, ApprovalRequested, ApprovalWithdrawn, Asks, Decision, QuestionAsked,
};
use crate::id::{ApprovalId, CallId};
use crate::mcp::{Question, QuestionReply};

impl Machine {
    /// Writes down what the user is asked. An approval gets its id here.
    pub(super) fn ask(&mut self, new_id: &mut dyn FnMut() -> uuid::Uuid) {
        for (call, asking) in std::mem::take(&mut self.live.ask) {
            let asked = match asking {
                Asking::Approval(why) => {
                    let mut asked = ApprovalRequested::new(ApprovalId::new(new_id()), call);
                    asked.why = (!why.is_empty()).then_some(why);
                    asked
                }
                Asking::Question(approval, question) => {
                    let mut asked = ApprovalRequested::new(approval, call);
                    asked.asks = Asks::Input;
                    let question = QuestionAsked { approval, question };
                    self.live.outbox.backlog.push(question.into());
                    asked
                }
            };
            self.live.outbox.backlog.push(asked.into());
        }
    }

    /// A call that ends, or has ended, asks nothing.
    pub(super) fn tool_asks(&mut self, approval: ApprovalId, call: CallId, question: Question) {
        if self.live.calls.get(&call) == Some(&LiveCall::Running) {
            self.live.questions.insert(approval, call.clone());
            let asking = Asking::Question(approval, question);
            self.live.ask.push((call, asking));
        }
    }

    /// The question is withdrawn in the journal, unless it is not on its way there, or went with its call.
    pub(super) fn tool_withdraws(&mut self, approval: ApprovalId) {
        if self.live.questions.remove(&approval).is_none() {
            return;
        }
        let asked = self.live.ask.len();
        let is_it = |asking: &Asking| matches!(asking, Asking::Question(id, _) if *id == approval);
        self.live.ask.retain(|(_, asking)| !is_it(asking));
        if self.live.ask.len() == asked {
            let withdrawn = ApprovalWithdrawn { approval };
            self.live.outbox.backlog.push(withdrawn.into());
        }
    }

    /// The first answer to a question goes to the call that asked it.
    pub(super) fn question_answered(&mut self, answered: &ApprovalAnswered) {
        let content = self.live.content.take();
        let approval = answered.approval;
        let asked = self.agent.approvals.get(approval);
        let Some(asked) = asked.filter(|asked| asked.asks == Asks::Input) else {
            return;
        };
        let reply = match answered.decision {
            Decision::Allow => {
                let content = content.filter(|(of, _)| *of == approval);
                QuestionReply::Accept(content.map(|(_, content)| content).unwrap_or_default())
            }
            Decision::Deny => QuestionReply::Decline,
        };
        let call = asked.call.clone();
        if self.live.questions.remove(&approval).is_some() {
            self.live.replies.push((approval, call, reply));
        }
    }

    /// The replies for calls that still run.
    pub(super) fn replies(&mut self) -> Vec<Effect> {
        let replies = std::mem::take(&mut self.live.replies).into_iter();
        let calls = &self.live.calls;
        let replies = replies.filter(|(_, call, _)| calls.get(call) == Some(&LiveCall::Running));
        let effects = replies.map(|(approval, call, reply)| Effect::AnswerTool {
            approval,
            call,
            reply,
        });
        effects.collect()
    }
}
