//! The checks behind the claims. Each returns what it saw, or what is wrong.

use agentd_core::id::{CallId, Seq};
use agentd_core::message::{Block, Message, Role};
use agentd_core::request::Request;

/// A detail worth showing, or what was found instead.
pub type Verdict = Result<String, String>;

/// A claim that either holds or does not.
pub fn is_so(holds: bool, seen: impl Into<String>, otherwise: impl Into<String>) -> Verdict {
    match holds {
        true => Ok(seen.into()),
        false => Err(otherwise.into()),
    }
}

/// The shown events are the journal's events: none is missing, none is duplicated.
pub fn each_once(shown: &[Seq], journal: &[Seq]) -> Verdict {
    let differ = shown.iter().zip(journal).find(|(one, other)| one != other);
    match differ {
        Some((shown, there)) => Err(format!(
            "event {shown} was shown where the journal has {there}"
        )),
        None if shown.len() != journal.len() => Err(format!(
            "{} events were shown, and {} are in the journal",
            shown.len(),
            journal.len()
        )),
        None if shown.is_empty() => Err("there are no events".to_owned()),
        None => Ok(format!("{} events", shown.len())),
    }
}

/// The journal is numbered 1, 2, 3…
pub fn without_gaps(journal: &[Seq]) -> Verdict {
    let mut expected = Seq::ZERO;
    for seq in journal {
        expected = expected.next();
        if *seq != expected {
            return Err(format!("event {seq} is where {expected} should be"));
        }
    }
    is_so(
        expected > Seq::ZERO,
        format!("1 to {expected}"),
        "there are no events",
    )
}

/// Checks that the texts together count from 1, without a gap and without a repetition.
pub fn counts_to(to: u64, parts: &[&str]) -> Verdict {
    let said = parts.iter().flat_map(|part| numbers(part));
    let mut last = 0;
    for number in said {
        if number != last + 1 {
            return Err(format!("{number} follows {last}"));
        }
        last = number;
    }
    is_so(
        last == to,
        format!("1 to {to}"),
        format!("it ends with {last}, not with {to}"),
    )
}

/// Checks what every provider requires of a request, and that no repair was necessary.
pub fn is_valid(request: &Request) -> Verdict {
    if let Some(repair) = request.repairs.first() {
        return Err(format!("it needed a repair: {}", repair.name()));
    }
    let messages = &request.messages;
    let of_user = |message: Option<&Message>| message.is_some_and(|m| m.role == Role::User);
    if !of_user(messages.first()) || !of_user(messages.last()) {
        return Err("the first and the last message are not both the user's".to_owned());
    }
    let mut open: Vec<&CallId> = Vec::new();
    for message in messages {
        for block in &message.blocks {
            match block {
                Block::ToolResult(result) => match open.iter().position(|id| **id == result.call) {
                    Some(at) => drop(open.remove(at)),
                    None => return Err(format!("result {} has no call", result.call)),
                },
                block if block.is_blank() => return Err("there is empty text".to_owned()),
                _ => {}
            }
        }
        if let Some(call) = open.first() {
            return Err(format!("call {call} is not answered in the next message"));
        }
        open.extend(message.calls().map(|call| &call.id));
    }
    match open.first() {
        Some(call) => Err(format!("call {call} is not answered")),
        None => Ok(format!("{} messages", messages.len())),
    }
}

/// The numbers in a text, in order.
fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split_whitespace().filter_map(|word| word.parse().ok())
}

pub fn same_bytes(before: &[u8], after: &[u8]) -> Verdict {
    if before == after {
        return Ok(format!("{} bytes", before.len()));
    }
    let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    Err(format!(
        "{} and {} bytes, different from byte {same} on",
        before.len(),
        after.len()
    ))
}

#[cfg(test)]
mod tests;
