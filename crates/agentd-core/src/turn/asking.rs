//! What the user is asked about calls: whether one may start, and what its MCP server wants to know while it runs.

use super::live::Asking;
use super::{Effect, LiveCall, Machine};
use crate::event::{ApprovalAnswered, ApprovalRequested, Asks, Decision, QuestionAsked};
use crate::id::{ApprovalId, CallId};
use crate::mcp::{Question, QuestionReply};

impl Machine {
    /// Assigns ids to what the user is asked.
    pub(super) fn ask(&mut self, new_id: &mut dyn FnMut() -> uuid::Uuid) {
        for (call, asking) in std::mem::take(&mut self.live.ask) {
            let approval = ApprovalId::new(new_id());
            let mut asked = ApprovalRequested::new(approval, call);
            match asking {
                Asking::Approval(why) => asked.why = (!why.is_empty()).then_some(why),
                Asking::Question(question) => {
                    asked.asks = Asks::Input;
                    let question = QuestionAsked { approval, question };
                    self.live.outbox.backlog.push(question.into());
                }
            }
            self.live.outbox.backlog.push(asked.into());
        }
    }

    /// A call that ends, or has ended, asks nothing.
    pub(super) fn tool_asks(&mut self, call: CallId, question: Question) {
        if self.live.calls.get(&call) == Some(&LiveCall::Running) {
            self.live.ask.push((call, Asking::Question(question)));
        }
    }

    /// The first answer to a question goes to the call that asked it.
    pub(super) fn question_answered(&mut self, answered: &ApprovalAnswered) {
        let content = self.live.content.take();
        let asked = self.agent.approvals.get(answered.approval);
        let Some(asked) = asked.filter(|asked| asked.asks == Asks::Input) else {
            return;
        };
        let reply = match answered.decision {
            Decision::Allow => {
                let content = content.filter(|(approval, _)| *approval == answered.approval);
                QuestionReply::Accept(content.map(|(_, content)| content).unwrap_or_default())
            }
            Decision::Deny => QuestionReply::Decline,
        };
        self.live.replies.push((asked.call.clone(), reply));
    }

    /// The replies for calls that still run.
    pub(super) fn replies(&mut self) -> Vec<Effect> {
        let replies = std::mem::take(&mut self.live.replies).into_iter();
        let calls = &self.live.calls;
        let replies = replies.filter(|(call, _)| calls.get(call) == Some(&LiveCall::Running));
        replies
            .map(|(call, reply)| Effect::AnswerTool { call, reply })
            .collect()
    }
}
