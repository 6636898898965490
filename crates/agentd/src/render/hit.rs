//! What a search has found: where it was said, and the words around it.

use super::{named, time, word};
use crate::terminal::{HEADING, QUIET};
use agentd_client::api::Hit;
use agentd_core::time::Timestamp;

pub fn lines(hit: &Hit, now: Timestamp) -> [String; 2] {
    [
        format!("{QUIET}{}{QUIET:#}", place(hit, now)),
        format!("  {}", marked(hit)),
    ]
}

/// `coder · conversation 2 · turn 3 · user · event 41 · 3m ago`.
fn place(hit: &Hit, now: Timestamp) -> String {
    let mut parts = vec![named(&hit.agent)];
    let conversation = hit.ordinal.map(|n| n.to_string());
    let conversation = conversation.unwrap_or_else(|| hit.conversation.to_string());
    parts.push(format!("conversation {conversation}"));
    parts.extend(hit.number.map(|n| format!("turn {n}")));
    parts.push(word(hit.role));
    parts.push(format!("event {}", hit.seq));
    parts.push(time::ago(hit.at, now));
    parts.join(" · ")
}

/// The snippet with its matches highlighted.
fn marked(hit: &Hit) -> String {
    let mut text = String::new();
    for (n, c) in hit.snippet.chars().enumerate() {
        if hit.matches.iter().any(|at| at.end == n) {
            text.push_str(&format!("{HEADING:#}"));
        }
        if hit.matches.iter().any(|at| at.start == n) {
            text.push_str(&HEADING.to_string());
        }
        text.push(c);
    }
    let length = hit.snippet.chars().count();
    if hit.matches.iter().any(|at| at.end == length) {
        text.push_str(&format!("{HEADING:#}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::{AgentRef, Role};
    use agentd_core::id::{AgentId, ConversationId, Seq};
    use uuid::Uuid;

    #[test]
    fn a_hit_says_where_it_is_and_marks_the_words() {
        let hit = Hit {
            agent: AgentRef {
                id: AgentId::new(Uuid::nil()),
                name: Some("coder".to_owned()),
            },
            conversation: ConversationId::new(Uuid::nil()),
            ordinal: Some(2),
            turn: None,
            number: Some(3),
            seq: Seq(41),
            at: Timestamp::from_millis(0),
            role: Role::User,
            snippet: "fix the tests".to_owned(),
            matches: vec![0..3, 8..13],
        };
        let now = Timestamp::from_millis(180_000);
        let expected = "coder · conversation 2 · turn 3 · user · event 41 · 3m ago";
        assert_eq!(place(&hit, now), expected);
        let expected = format!("{HEADING}fix{HEADING:#} the {HEADING}tests{HEADING:#}");
        assert_eq!(marked(&hit), expected);
    }
}
