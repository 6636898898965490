//! `elicitation/create`: an agent wants to know something from the user.

use crate::plain::only_plain;
use crate::question::{Question, QuestionReply};
use serde_json::{Map, Value, json};

/// The method.
pub const ELICITATION: &str = "elicitation/create";
/// The name of the call that records a question.
pub const ELICITATION_CALL: &str = "elicitation";
/// The largest form, and the longest URL, in bytes.
const FORM_BYTES: usize = 16 * 1024;
const URL_BYTES: usize = 2000;

/// The question to the user. `None` if it is too large, or of a mode that agentd does not know.
pub fn question(program: &str, request: &Value) -> Option<Question> {
    let asked = Question {
        server: program.to_owned(),
        message: only_plain(request["message"].as_str()?),
        form: None,
        url: None,
    };
    match request["mode"].as_str()? {
        "form" => {
            let form = &request["requestedSchema"];
            let fits = form.is_object() && form.to_string().len() <= FORM_BYTES;
            fits.then(|| Question {
                form: Some(form.clone()),
                ..asked
            })
        }
        "url" => {
            let url = request["url"].as_str()?;
            let is_page = url.starts_with("https://") || url.starts_with("http://");
            (is_page && url.len() <= URL_BYTES).then(|| Question {
                url: Some(only_plain(url)),
                ..asked
            })
        }
        _ => None,
    }
}

/// What the call that records a question says.
pub fn question_arguments(question: &Question) -> Map<String, Value> {
    let mut arguments = Map::from_iter([("message".to_owned(), json!(question.message))]);
    if let Some(url) = &question.url {
        arguments.insert("url".to_owned(), json!(url));
    }
    arguments
}

/// The answer to the request.
pub fn question_reply(reply: &QuestionReply) -> Value {
    match reply {
        QuestionReply::Accept(content) if content.is_empty() => json!({"action": "accept"}),
        QuestionReply::Accept(content) => json!({"action": "accept", "content": content}),
        QuestionReply::Decline => json!({"action": "decline"}),
    }
}

/// The answer to a request that the user does not decide about.
pub fn question_cancelled() -> Value {
    json!({"action": "cancel"})
}

#[cfg(test)]
mod tests {
    use super::super::Offer;
    use super::*;

    fn asked(request: &Value) -> Option<Question> {
        question("goose", request)
    }

    #[test]
    fn a_form_or_a_page_is_a_question() {
        let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let request = json!({
            "sessionId": "s", "mode": "form", "message": "Who\u{1b} are you?", "requestedSchema": form,
        });
        let question = asked(&request).unwrap();
        assert_eq!(
            (&*question.server, &*question.message),
            ("goose", "Who are you?")
        );
        assert_eq!(question.fields()[0].name, "name");
        let url = "https://example.com/login";
        let request = json!({"sessionId": "s", "mode": "url", "elicitationId": "e", "message": "Log in", "url": url});
        let question = asked(&request).unwrap();
        assert_eq!(question.url.as_deref(), Some(url));
        assert_eq!(question_arguments(&question)["url"], url);
    }

    #[test]
    fn only_an_agent_that_is_served_is_told_that_it_may_ask() {
        let told = |offer| {
            let hello = super::super::initialize("1", offer);
            hello["clientCapabilities"].clone()
        };
        let (all, nothing) = (told(Offer::All), told(Offer::Nothing));
        assert_eq!(all["elicitation"], json!({"form": {}, "url": {}}));
        assert_eq!(nothing["elicitation"], Value::Null);
        let files =
            |is_served: bool| json!({"readTextFile": is_served, "writeTextFile": is_served});
        assert_eq!((&all["fs"], &all["terminal"]), (&files(true), &json!(true)));
        let refused = (&nothing["fs"], &nothing["terminal"]);
        assert_eq!(refused, (&files(false), &json!(false)));
    }

    #[test]
    fn what_is_odd_or_too_large_is_no_question() {
        let long = "x".repeat(FORM_BYTES);
        for request in [
            json!({"mode": "form", "requestedSchema": {}}),
            json!({"mode": "form", "message": "m"}),
            json!({"mode": "form", "message": "m", "requestedSchema": {"title": long}}),
            json!({"mode": "url", "message": "m", "url": "file:///etc/passwd"}),
            json!({"mode": "url", "message": "m", "url": format!("https://{long}")}),
            json!({"mode": "voice", "message": "m"}),
            json!({"message": "m", "requestedSchema": {}}),
        ] {
            assert_eq!(asked(&request), None, "{request}");
        }
    }

    #[test]
    fn a_reply_has_the_content_that_the_user_gave() {
        let content = Map::from_iter([("name".to_owned(), json!("Ann"))]);
        let accepted = question_reply(&QuestionReply::Accept(content));
        assert_eq!(
            accepted,
            json!({"action": "accept", "content": {"name": "Ann"}})
        );
        let accepted = question_reply(&QuestionReply::Accept(Map::new()));
        assert_eq!(accepted, json!({"action": "accept"}));
        let declined = question_reply(&QuestionReply::Decline);
        assert_eq!(declined, json!({"action": "decline"}));
    }
}
