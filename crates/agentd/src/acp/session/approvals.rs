//! Calls that wait for approval. Every client that shows the agent asks its user; the first answer counts, and the other
//! questions are withdrawn.

use super::{Done, Session, log};
use crate::acp::translate::of_approval;
use crate::keys;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    SessionInfoUpdate, SessionUpdate,
};
use agentd_client::api::{Agent, Approval, Approve, Deny};
use agentd_client::{Error as ClientError, Kind};
use agentd_core::id::ApprovalId;
use futures_util::future::{AbortHandle, abortable};
use std::collections::BTreeMap;

const ALLOW: &str = "allow";
const ALWAYS: &str = "allow-always";
const REJECT: &str = "reject";

/// The questions that the editor shows.
#[derive(Default)]
pub struct Questions(BTreeMap<ApprovalId, Question>);

struct Question {
    /// The digest of the call that the user sees.
    hash: Option<String>,
    asked: Asked,
}

enum Asked {
    Now(AbortHandle),
    /// The editor has answered, or has closed the question. It is not asked again.
    Before,
}

impl Questions {
    /// Withdraws the questions that are not among these.
    fn keep(&mut self, approvals: &[Approval]) {
        let is_asked = |id: &ApprovalId| approvals.iter().any(|approval| approval.id == *id);
        for (_, question) in self.0.extract_if(.., |id, _| !is_asked(id)) {
            if let Asked::Now(abort) = question.asked {
                abort.abort();
            }
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
            if !self.questions.0.contains_key(&approval.id) {
                self.ask(approval);
            }
        }
    }

    fn ask(&mut self, approval: &Approval) {
        let option = |id: &'static str, name: &str, kind| PermissionOption::new(id, name, kind);
        let options = vec![
            option(ALLOW, "Allow", PermissionOptionKind::AllowOnce),
            option(ALWAYS, "Always allow", PermissionOptionKind::AllowAlways),
            option(REJECT, "Reject", PermissionOptionKind::RejectOnce),
        ];
        let call = of_approval(&self.translator.calls, approval);
        let request = RequestPermissionRequest::new(self.id.clone(), call, options);
        let (peer, id) = (self.shared.peer.clone(), approval.id);
        let (asked, abort) = abortable(async move { peer.ask(request).await });
        let question = Question {
            hash: approval.what.as_ref().map(|what| what.hash.clone()),
            asked: Asked::Now(abort),
        };
        self.questions.0.insert(approval.id, question);
        self.start(async move {
            let outcome = match asked.await {
                Ok(Ok(outcome)) => Some(outcome),
                // The editor cannot ask: others may answer.
                Ok(Err(error)) => {
                    let text = format!("the editor did not answer about an approval: {error}");
                    log(&crate::error::Error::new(crate::error::Exit::Failed, text));
                    None
                }
                // It was withdrawn.
                Err(_) => None,
            };
            Done::Answered(id, outcome)
        });
    }

    pub(super) fn answered(&mut self, id: ApprovalId, outcome: Option<RequestPermissionOutcome>) {
        let Some(question) = self.questions.0.get_mut(&id) else {
            return;
        };
        question.asked = Asked::Before;
        let hash = question.hash.clone();
        let Some(RequestPermissionOutcome::Selected(selected)) = outcome else {
            return;
        };
        let option = selected.option_id.0.to_string();
        let (client, name) = (self.shared.client.clone(), self.target.id.clone());
        self.start(async move {
            let answered = async {
                keys::merge_env(&client, &name).await?;
                let answered = match option.as_str() {
                    ALLOW | ALWAYS => {
                        let always = option == ALWAYS;
                        client.approve(&name, id, &Approve { hash, always }).await
                    }
                    _ => {
                        let reason = None;
                        client.deny(&name, id, &Deny { hash, reason }).await
                    }
                };
                match answered {
                    // Another client was first.
                    Err(ClientError::Problem(problem))
                        if matches!(problem.kind, Kind::Conflict | Kind::NotFound) =>
                    {
                        Ok(())
                    }
                    answered => Ok(answered.map(drop)?),
                }
            };
            if let Err(error) = answered.await {
                log(&error);
            }
            Done::Nothing
        });
    }
}
