//! Agents whose program runs their turns: it sends no request to the lab's model, and a turn of it ends with its process.

use super::Found;
use super::evidence::ModelRequest;
use super::story::{Story, Turn};

/// The names in the context that such an agent's journal has in place of a provider.
const NAMES: [&str; 2] = ["acp", "command"];
/// What the conversation is told about a turn that its program could not finish.
const NOT_AGAIN: &str = "The prompt was not sent again";

/// Whether a program of its own runs all of the agent's turns.
pub fn is_outer(story: &Story<'_>) -> bool {
    let contexts = story.events.iter().filter(|event| event.is("context"));
    let mut names = contexts.map(|event| event.text("provider")).peekable();
    names.peek().is_some() && names.all(|name| NAMES.contains(&name))
}

/// In place of what P3 says about requests to the model: there are none, and after a request that was not completed the
/// program gets no other one in the same turn, because it would be the same prompt again.
pub fn requests(
    promise: &'static str,
    story: &Story<'_>,
    got: &[&ModelRequest],
    found: &mut Found,
) {
    if let Some(request) = got.first() {
        let what = format!(
            "request {} to the model is of an agent that has a program",
            request.n
        );
        found.add(promise, story.agent, what, &[]);
    }
    for (at, request) in story.requests.iter().enumerate() {
        let is_completed = |it: &(u64, &str)| it.1 == "completed";
        let next = story.requests[at + 1..].iter();
        let next = next
            .filter(|next| next.turn == request.turn)
            .min_by_key(|next| next.sent);
        if let Some(next) = next
            && !request.ended.iter().any(is_completed)
        {
            let what = format!(
                "the prompt of turn {} was given to the program again",
                request.turn
            );
            found.add(promise, story.agent, what, &[request.sent, next.sent]);
        }
    }
}

/// Whether the turn ended because its program could not finish it, and the conversation was told so. The program had been
/// given the prompt; and after a crash another process runs the agent.
pub fn ended_with_its_program(story: &Story<'_>, turn: &Turn<'_>) -> bool {
    let first = story
        .requests
        .iter()
        .find(|request| request.turn == turn.id);
    let Some(first) = first.filter(|_| is_outer(story)) else {
        return false;
    };
    let own = story.events.iter();
    let own = own.filter(|event| event.turn.as_deref() == Some(turn.id));
    let mut notices = own.filter(|event| event.is("notice"));
    notices.any(|notice| {
        let is_told = notice.text("text").contains(NOT_AGAIN);
        let mut begun = story.incarnations.iter();
        let is_other = begun.any(|(seq, _, _)| (first.sent..notice.seq).contains(seq));
        match notice.text("cause") {
            "crashed" => is_told && is_other,
            // The process ended in order, and said so itself.
            "restarted" => is_told,
            _ => false,
        }
    })
}
