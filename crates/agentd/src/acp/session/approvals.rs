//! Calls that wait for approval. Every client that shows the agent asks its user; the first answer counts, and the other
//! questions are withdrawn.

use super::elicitation::{self, Reply};
use super::{Done, Session, log};
use crate::acp::problem;
use crate::acp::translate::of_approval;
use crate::error::{Error, Exit};
use crate::{keys, render};
use agent_client_protocol::Error as ProtocolError;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SessionInfoUpdate, SessionUpdate,
};
use agentd_client::api::{Agent, AnswerQuestion, Approval, Approve, Call, Deny, OnceOnly};
use agentd_client::{Client, Error as ClientError, Kind};
use agentd_core::id::ApprovalId;
use futures_util::future::{AbortHandle, abortable};
use std::collections::BTreeMap;

const ALLOW: &str = "allow";
const ALWAYS: &str = "allow-always";
const REJECT: &str = "reject";

/// How often a question is asked whose answer is not accepted: an editor may answer without its user.
const MOST_FAILURES: u32 = 3;

/// The questions that the editor shows.
#[derive(Default)]
pub struct Questions(BTreeMap<ApprovalId, Question>);

struct Question {
    /// Tells it from an earlier question about the same call.
    number: u64,
    /// The digest of the call that the user sees.
    hash: Option<String>,
    /// How often an answer was not accepted.
    failures: u32,
    asked: Asked,
}

enum Asked {
    Now(AbortHandle),
    /// The editor has answered, or has closed the question. It is not asked again.
    Before,
    /// The answer was not accepted. It is asked again if the call still waits.
    Failed,
}

impl Question {
    fn withdraw(self) {
        if let Asked::Now(abort) = self.asked {
            abort.abort();
        }
    }
}

/// A question that was asked.
#[derive(Clone, Copy)]
pub struct Which {
    approval: ApprovalId,
    number: u64,
}

impl Questions {
    /// How often an answer about this call was not accepted; none if it is not to be asked now. A call that differs from
    /// the one that the user sees, because the settings differ, or that could not be read, is asked about anew.
    fn due(&self, approval: &Approval) -> Option<u32> {
        let Some(question) = self.0.get(&approval.id) else {
            return Some(0);
        };
        let hash = approval.what.as_ref().map(|what| &what.hash);
        if hash.is_some() && hash != question.hash.as_ref() {
            return Some(0);
        }
        let is_failed = matches!(question.asked, Asked::Failed);
        (is_failed && question.failures < MOST_FAILURES).then_some(question.failures)
    }

    /// The question, unless it was withdrawn or asked anew.
    fn get(&mut self, which: Which) -> Option<&mut Question> {
        let question = self.0.get_mut(&which.approval);
        question.filter(|question| question.number == which.number)
    }

    fn insert(&mut self, approval: ApprovalId, question: Question) {
        if let Some(before) = self.0.insert(approval, question) {
            before.withdraw();
        }
    }

    /// Withdraws the questions that are not among these.
    fn keep(&mut self, approvals: &[Approval]) {
        let is_asked = |id: &ApprovalId| approvals.iter().any(|approval| approval.id == *id);
        for (_, question) in self.0.extract_if(.., |id, _| !is_asked(id)) {
            question.withdraw();
        }
    }

    pub fn withdraw_all(&mut self) {
        self.keep(&[]);
    }
}

impl Session {
    /// Asks what is not asked yet, and withdraws what no longer waits.
    pub(super) fn looked_at(&mut self, agent: &Agent) {
        self.has_subagents = agent.children.iter().any(|child| child.outcome.is_none());
        if self.title != agent.title && agent.title.is_some() {
            self.title.clone_from(&agent.title);
            let info = SessionInfoUpdate::new().title(agent.title.clone());
            self.update([SessionUpdate::SessionInfoUpdate(info)]);
        }
        if self.is_left {
            return self.questions.withdraw_all();
        }
        self.questions.keep(&agent.approvals);
        for approval in &agent.approvals {
            if let Some(failures) = self.questions.due(approval) {
                self.ask(approval, failures);
            }
        }
    }

    fn ask(&mut self, approval: &Approval, failures: u32) {
        let elicitation = elicitation::request(&self.id, self.shared.can, approval);
        let call = of_approval(&self.translator.calls, approval);
        let request =
            RequestPermissionRequest::new(self.id.clone(), call, options(approval, failures));
        let peer = self.shared.peer.clone();
        let (asked, abort) = abortable(async move {
            match elicitation {
                Some(form) => Ok(elicitation::reply(peer.elicit(form).await?)),
                None => Ok(match peer.ask(request).await? {
                    RequestPermissionOutcome::Selected(selected) => {
                        Some(Reply::Option(selected.option_id.0.to_string()))
                    }
                    _ => None,
                }),
            }
        });
        self.asked += 1;
        let which = Which {
            approval: approval.id,
            number: self.asked,
        };
        let question = Question {
            number: which.number,
            hash: approval.what.as_ref().map(|what| what.hash.clone()),
            failures,
            asked: Asked::Now(abort),
        };
        self.questions.insert(approval.id, question);
        self.start(async move {
            let asked: Result<Result<_, ProtocolError>, _> = asked.await;
            let reply = match asked {
                Ok(Ok(reply)) => reply,
                // The editor cannot ask: others may answer.
                Ok(Err(error)) => {
                    let text = format!("the editor did not answer about an approval: {error}");
                    log(&Error::new(Exit::Failed, text));
                    None
                }
                // It was withdrawn.
                Err(_) => None,
            };
            Done::Answered(which, reply)
        });
    }

    pub(super) fn answered(&mut self, which: Which, reply: Option<Reply>) {
        let Some(question) = self.questions.get(which) else {
            return;
        };
        question.asked = Asked::Before;
        let hash = question.hash.clone();
        let Some(reply) = reply else {
            return;
        };
        let (client, name) = (self.shared.client.clone(), self.target.id.clone());
        self.start(async move {
            match answer(&client, &name, (which.approval, hash), reply).await {
                Ok(()) => Done::Nothing,
                Err(error) => Done::Failed(which, error),
            }
        });
    }

    /// An answer was not accepted. If the call still waits, it is asked about again.
    pub(super) fn failed(&mut self, which: Which, failed: Failed) {
        let Some(question) = self.questions.get(which) else {
            return;
        };
        question.asked = Asked::Failed;
        question.failures += 1;
        let is_last = question.failures >= MOST_FAILURES;
        if let Failed::Told(error) = failed {
            let mut text = problem::message(&error);
            if is_last {
                text.push_str("\nThe question is not asked again here; `agentd approve` or `agentd deny` answers it.");
            }
            self.tell(&text);
        }
        self.look_at_agent();
    }
}

/// Why an answer was not accepted.
pub enum Failed {
    /// Another client was first, or the call is another one now.
    Late,
    Told(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

/// What the user can choose. A call that cannot be read can only be rejected. No rule lets a call leave the sandbox altogether;
/// and if an answer was not accepted, a rule may be the reason.
fn options(approval: &Approval, failures: u32) -> Vec<PermissionOption> {
    let option = |id: &'static str, name: &str, kind| PermissionOption::new(id, name, kind);
    let allow = option(ALLOW, "Allow", PermissionOptionKind::AllowOnce);
    let always = |call: &Call| {
        let name = match call.whole_tool() {
            Some(_) => format!("Always allow {}", render::approval::always(call)),
            None => "Always allow".to_owned(),
        };
        option(ALWAYS, &name, PermissionOptionKind::AllowAlways)
    };
    let reject = option(REJECT, "Reject", PermissionOptionKind::RejectOnce);
    match &approval.what {
        Some(what) if failures == 0 && may_be_always(what) => {
            vec![allow, always(what), reject]
        }
        Some(_) => vec![allow, reject],
        None => vec![reject],
    }
}

fn may_be_always(call: &Call) -> bool {
    use OnceOnly::{InBackground, LeavesSandbox};
    !matches!(call.once_only(), Some(LeavesSandbox | InBackground))
}

/// Gives the user's answer to the daemon.
async fn answer(
    client: &Client,
    name: &str,
    (approval, hash): (ApprovalId, Option<String>),
    reply: Reply,
) -> Result<(), Failed> {
    keys::merge_env(client, name).await?;
    let option = match reply {
        Reply::Option(option) => option,
        Reply::Declined => REJECT.to_owned(),
        Reply::Filled(content) => {
            let answer = AnswerQuestion { content };
            let answered = client.answer_question(name, approval, &answer).await;
            return accepted(answered.map(drop));
        }
    };
    let answered = match option.as_str() {
        ALLOW | ALWAYS if hash.is_none() => {
            let what = "a call that cannot be read cannot be allowed";
            let error = Error::new(Exit::Refused, what);
            return Err(error.next("reject it, or wait until it can be read").into());
        }
        ALLOW | ALWAYS => {
            let always = option == ALWAYS;
            client
                .approve(name, approval, &Approve { hash, always })
                .await
                .map(drop)
        }
        _ => {
            let reason = None;
            client
                .deny(name, approval, &Deny { hash, reason })
                .await
                .map(drop)
        }
    };
    accepted(answered)
}

fn accepted(answered: Result<(), ClientError>) -> Result<(), Failed> {
    match answered {
        Ok(()) => Ok(()),
        Err(ClientError::Problem(problem))
            if matches!(problem.kind, Kind::Conflict | Kind::NotFound) =>
        {
            Err(Failed::Late)
        }
        Err(error) => Err(Failed::Told(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::Call;
    use agentd_core::spec::{Network, Sandbox};
    use agentd_core::time::Timestamp;
    use serde_json::{Value, json};

    fn approval(what: Option<(Value, &str)>) -> Approval {
        Approval {
            id: ApprovalId::new(uuid::Uuid::nil()),
            call: "c".to_owned(),
            asked_at: Timestamp::default(),
            agent: None,
            why: None,
            what: what.map(|(input, hash)| Call {
                tool: "shell".to_owned(),
                input,
                cwd: None,
                sandbox: Sandbox::WorkspaceWrite,
                network: Network::On,
                needs: Vec::new(),
                hash: hash.to_owned(),
            }),
            question: None,
        }
    }

    fn offered(approval: &Approval, failures: u32) -> Vec<String> {
        let options = options(approval, failures).into_iter();
        options.map(|it| it.option_id.0.to_string()).collect()
    }

    #[test]
    fn only_what_can_be_accepted_is_offered() {
        let plain = approval(Some((json!({"command": "a"}), "h")));
        assert_eq!(offered(&plain, 0), [ALLOW, ALWAYS, REJECT]);
        assert_eq!(offered(&plain, 1), [ALLOW, REJECT]);
        let leaves = json!({"command": "a", "escalate": "b"});
        assert_eq!(offered(&approval(Some((leaves, "h"))), 0), [ALLOW, REJECT]);
        assert_eq!(offered(&approval(None), 0), [REJECT]);
    }

    #[test]
    fn a_call_is_asked_about_again_if_it_differs_or_the_answer_failed() {
        let call = |hash| approval(Some((json!({"command": "a"}), hash)));
        let asked = |hash: Option<&str>, failures, asked| {
            let mut questions = Questions::default();
            let question = Question {
                number: 1,
                hash: hash.map(str::to_owned),
                failures,
                asked,
            };
            questions.insert(call("h").id, question);
            questions
        };
        assert_eq!(Questions::default().due(&call("h")), Some(0));
        let answered = asked(Some("h"), 0, Asked::Before);
        assert_eq!(answered.due(&call("h")), None);
        assert_eq!(answered.due(&call("other")), Some(0));
        assert_eq!(answered.due(&approval(None)), None);
        let unread = asked(None, 0, Asked::Before);
        assert_eq!(unread.due(&approval(None)), None);
        assert_eq!(unread.due(&call("h")), Some(0));
        let failed = |failures| asked(Some("h"), failures, Asked::Failed).due(&call("h"));
        assert_eq!(failed(1), Some(1));
        assert_eq!(failed(MOST_FAILURES), None);
    }
}
