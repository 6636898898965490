//! Questions with a form or a page, as the editor shows them.

use crate::acp::translate::Can;
use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationFormMode,
    ElicitationId, ElicitationMode, ElicitationScope, ElicitationSessionScope, ElicitationUrlMode,
    SessionId,
};
use agentd_client::api::Approval;
use serde_json::{Map, Value};

/// What the user has chosen about a call that waits.
#[derive(Debug, PartialEq)]
pub enum Reply {
    /// One of the options of a permission request, by its id.
    Option(String),
    /// The fields of a form.
    Filled(Map<String, Value>),
    Declined,
}

/// The question as the editor can show it; none if it is a call that waits for approval, or if the editor cannot show it.
pub fn request(
    session: &SessionId,
    can: Can,
    approval: &Approval,
) -> Option<CreateElicitationRequest> {
    let question = approval.question.as_ref()?;
    let scope = ElicitationScope::Session(ElicitationSessionScope::new(session.clone()));
    let mode = match (&question.form, &question.url) {
        (Some(form), None) if can.forms => {
            let form = serde_json::from_value(form.clone()).ok()?;
            ElicitationMode::Form(ElicitationFormMode::new(scope, form))
        }
        (None, Some(url)) if can.pages => {
            let id = ElicitationId::new(approval.id.to_string());
            ElicitationMode::Url(ElicitationUrlMode::new(scope, id, url.clone()))
        }
        _ => return None,
    };
    let message = format!("{}: {}", question.server, question.message);
    Some(CreateElicitationRequest::new(mode, message))
}

/// The user's answer; none if the question stays open.
pub fn reply(response: CreateElicitationResponse) -> Option<Reply> {
    match response.action {
        ElicitationAction::Accept(accepted) => {
            let content = serde_json::to_value(accepted.content.unwrap_or_default()).ok()?;
            match content {
                Value::Object(content) => Some(Reply::Filled(content)),
                _ => None,
            }
        }
        ElicitationAction::Decline => Some(Reply::Declined),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::id::ApprovalId;
    use agentd_core::mcp::Question;
    use agentd_core::time::Timestamp;
    use serde_json::json;

    fn asks(form: Option<Value>, url: Option<&str>) -> Approval {
        let question = Question {
            server: "fs".to_owned(),
            message: "Who?".to_owned(),
            form,
            url: url.map(str::to_owned),
        };
        Approval {
            id: ApprovalId::new(uuid::Uuid::nil()),
            call: "c".to_owned(),
            asked_at: Timestamp::default(),
            agent: None,
            why: None,
            what: None,
            question: Some(question),
        }
    }

    #[test]
    fn a_question_is_asked_as_the_editor_can_show_it() {
        let session = SessionId::new("s");
        let all = Can {
            forms: true,
            pages: true,
            ..Can::default()
        };
        let form = json!({"type": "object", "required": ["name"],
                          "properties": {"name": {"type": "string", "title": "Name"}}});
        let asked = asks(Some(form.clone()), None);
        let shown = request(&session, all, &asked).unwrap();
        let shown = serde_json::to_value(shown).unwrap();
        assert_eq!(
            (&shown["mode"], &shown["sessionId"]),
            (&json!("form"), &json!("s"))
        );
        assert_eq!(shown["message"], "fs: Who?");
        assert_eq!(
            shown["requestedSchema"]["properties"]["name"]["title"],
            "Name"
        );
        assert!(request(&session, Can::default(), &asked).is_none());
        let page = asks(None, Some("https://example.com"));
        let shown = request(&session, all, &page).unwrap();
        let shown = serde_json::to_value(shown).unwrap();
        assert_eq!(
            (&shown["mode"], &shown["url"]),
            (&json!("url"), &json!("https://example.com"))
        );
        let no_form = asks(Some(json!("no form")), None);
        assert!(request(&session, all, &no_form).is_none());
    }

    #[test]
    fn only_an_answer_of_the_user_counts() {
        let of = |response: Value| reply(serde_json::from_value(response).unwrap());
        let filled =
            of(json!({"action": "accept", "content": {"name": "Ann", "n": 3, "sure": true}}));
        let content = json!({"name": "Ann", "n": 3, "sure": true});
        let Value::Object(content) = content else {
            panic!()
        };
        assert_eq!(filled, Some(Reply::Filled(content)));
        assert_eq!(
            of(json!({"action": "accept"})),
            Some(Reply::Filled(Map::new()))
        );
        assert_eq!(of(json!({"action": "decline"})), Some(Reply::Declined));
        assert_eq!(of(json!({"action": "cancel"})), None);
    }
}
