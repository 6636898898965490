//! Gemini 3 and later: the calls of the current turn must come back with their signatures.
//! Apart from the main check, as the model's name stands in the URL and not in the body.

use serde_json::Value;

use super::super::shape::{given, has_text, list_at, text_at};
use super::super::violation::{Report, Verdict};

/// Judges only the rule `call_without_signature`: since the user last said something, the first
/// function call of every model content must carry a `thoughtSignature`. Parallel calls after
/// the first one have none of their own.
pub fn check_signatures(body: &Value) -> Verdict {
    let mut report = Report::default();
    let contents = list_at(body, "contents");
    let start = contents.iter().rposition(says).unwrap_or_default();
    for (index, content) in contents.iter().enumerate().skip(start) {
        let mut parts = list_at(content, "parts").iter().enumerate();
        let first = parts.find(|(_, part)| given(part, "functionCall").is_some());
        if let Some((place, part)) = first {
            report.require(
                has_text(part, "thoughtSignature"),
                "call_without_signature",
                format!("contents[{index}].parts[{place}]"),
                "the first call of a step must carry its thoughtSignature",
            );
        }
    }
    report.verdict()
}

/// Whether the user says something here, other than handing in results.
fn says(content: &Value) -> bool {
    text_at(content, "role") == Some("user")
        && list_at(content, "parts")
            .iter()
            .any(|part| given(part, "functionResponse").is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn body(first: Value, second: Value) -> Value {
        let call = json!({"functionCall": {"name": "read", "args": {}}});
        let result = json!({"role": "user", "parts": [
            {"functionResponse": {"name": "read", "response": {}}}]});
        let signed = |signature: Value| {
            let mut call = call.clone();
            call["thoughtSignature"] = signature;
            call
        };
        json!({"contents": [
            {"role": "user", "parts": [{"text": "Old"}]},
            {"role": "model", "parts": [call]},
            result,
            {"role": "model", "parts": [{"text": "Done."}]},
            {"role": "user", "parts": [{"text": "New"}]},
            {"role": "model", "parts": [signed(first), call]},
            result,
            {"role": "model", "parts": [signed(second)]},
            result,
        ]})
    }

    #[test]
    fn only_the_turn_under_way_needs_signatures() {
        assert_eq!(
            check_signatures(&body(json!("c2ln"), json!("c2ln"))),
            Ok(())
        );
        assert_eq!(check_signatures(&json!([])), Ok(()));
    }

    #[test]
    fn every_step_of_the_turn_needs_one() {
        let found = check_signatures(&body(json!("c2ln"), json!(null))).expect_err("one missing");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rule, "call_without_signature");
        assert_eq!(found[0].path, "contents[7].parts[0]");
        let found = check_signatures(&body(json!(""), json!("c2ln"))).expect_err("one empty");
        assert_eq!(found[0].path, "contents[5].parts[0]");
    }
}
