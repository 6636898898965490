//! The prefix theorem, as checks that tests call: for every prefix of every journal there is nothing
//! to send, or a request that every provider accepts, with every word in it or accounted for.

use crate::journal::{Journals, context};
use crate::oracle::{self, Verdict};
use crate::predicate::{awaits_answer, unanswered_words};
use agentd_core::event::{Context, Kind};
use agentd_core::id::AgentId;
use agentd_core::message::{Block, Wire};
use agentd_core::repair::{Repair, repair};
use agentd_core::request::{Request, answer};
use agentd_core::state::{AgentState, Applied};
use agentd_core::window::{Entry, Window};
use agentd_core::wire;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The beginnings of texts that stand for an attached file.
const ATTACHED: [&str; 2] = ["[attached: ", "<attached_file name="];

/// Statistics of the checks.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub prefixes: u64,
    pub requests: u64,
    /// How often each repair was made.
    pub repairs: BTreeMap<&'static str, u64>,
}

/// Checks every prefix of one agent's journal.
pub fn check_prefixes(journals: &Journals, agent: AgentId, seen: &mut Seen) -> Result<(), String> {
    let mut state = AgentState::new(agent);
    let mut window = Window::new();
    for event in journals.of(agent) {
        seen.prefixes += 1;
        let before = window.clone();
        let moved = state.apply(event) == Applied::PointerMoved;
        let Some(current) = state.tree.current() else {
            continue;
        };
        if moved {
            window = journals.window(agent, &state, current, state.head);
        } else if event.conversation == current {
            window.apply(event);
        }
        if window == before && !moved {
            continue;
        }
        let lineage = journals.lineage(agent, &state, current, state.head);
        let expected = awaits_answer(&lineage);
        // Without a summary the window holds all words anyway, which is checked as well.
        let is_compacted = lineage.iter().any(|event| event.kind() == Kind::Summary);
        let unanswered = match is_compacted {
            true => unanswered_words(&lineage),
            false => Vec::new(),
        };
        check_window(&window, expected, &unanswered, seen)
            .map_err(|what| format!("after event {}: {what}", event.seq))?;
    }
    Ok(())
}

/// Checks one window in all four formats. `unanswered` are words that no compaction may have removed.
pub fn check_window(
    window: &Window,
    awaits: bool,
    unanswered: &[String],
    seen: &mut Seen,
) -> Result<(), String> {
    for wire in Wire::ALL {
        let context = context_for(window, wire);
        match answer(window, &context) {
            None if awaits => return Err("something awaits an answer, and nothing is sent".into()),
            Some(_) if !awaits => {
                return Err("nothing awaits an answer, and something is sent".into());
            }
            None => {}
            Some(request) => {
                seen.requests += 1;
                for repair in &request.repairs {
                    *seen.repairs.entry(repair.name()).or_default() += 1;
                }
                check_request(window, &request, unanswered)
                    .map_err(|what| format!("{wire:?}: {what}"))?;
            }
        }
    }
    Ok(())
}

fn context_for(window: &Window, wire: Wire) -> Context {
    let mut context = context(wire);
    if window.context().is_some_and(|known| known.tools.is_empty()) {
        context.tools.clear();
    }
    context
}

/// Checks that the provider accepts the request, that a second repair changes nothing, and that no word is lost.
pub fn check_request(
    window: &Window,
    request: &Request,
    unanswered: &[String],
) -> Result<(), String> {
    let body = wire::encode(request);
    judge(request.context.wire, &body)
        .map_err(|violations| format!("refused: {violations:?}\n{body:#}"))?;
    let (again, more) = repair(request.messages.clone());
    if again != request.messages || !more.is_empty() {
        return Err(format!("a second repair changes more: {more:?}"));
    }
    account_for_words(window, request, &body)?;
    account_for(unanswered, request, &body).map_err(|what| format!("unanswered: {what}"))
}

pub fn judge(wire: Wire, body: &Value) -> Verdict {
    match wire {
        Wire::AnthropicMessages => oracle::anthropic::check(body),
        Wire::OpenaiChat => oracle::openai_chat::check(body),
        Wire::OpenaiResponses => oracle::openai_responses::check(body),
        Wire::Gemini => oracle::gemini::check(body),
    }
}

/// Every word of the window is in the body, or named by an omission or a repair.
fn account_for_words(window: &Window, request: &Request, body: &Value) -> Result<(), String> {
    let mut words = Vec::new();
    for item in window.items() {
        match &item.entry {
            Entry::Prompt(blocks) | Entry::Reply { blocks, .. } => collect(blocks, &mut words),
            Entry::Result(result) => collect(&result.blocks, &mut words),
            Entry::Notice(text) | Entry::Summary(text) => words.push(text.clone()),
        }
    }
    account_for(&words, request, body)
}

fn account_for(words: &[String], request: &Request, body: &Value) -> Result<(), String> {
    let body = body.to_string();
    let mut accounted: BTreeSet<&str> = BTreeSet::new();
    for omission in &request.omissions {
        accounted.extend(omission.words().iter().map(String::as_str));
    }
    for repair in &request.repairs {
        accounted.extend(repair.words().iter().map(String::as_str));
        if let Repair::CleanedToolName { from, .. } = repair {
            accounted.insert(from);
        }
    }
    for word in words.iter().filter(|word| !word.trim().is_empty()) {
        let escaped = Value::String(word.clone()).to_string();
        let inner = escaped.trim_matches('"');
        if !is_accounted(&accounted, word) && !body.contains(inner) {
            // Arguments travel as a string inside a string in some formats.
            let twice = Value::String(inner.to_owned()).to_string();
            if !body.contains(twice.trim_matches('"')) {
                return Err(format!("the words {word:?} are gone without a trace"));
            }
        }
    }
    Ok(())
}

/// Whether a text is among what was left out: as a whole, or as part of the text that stands for an attached file, which
/// contains the file's name.
fn is_accounted(accounted: &BTreeSet<&str>, word: &str) -> bool {
    let is_of_file = |text: &&&str| ATTACHED.iter().any(|mark| text.starts_with(mark));
    let mut of_files = accounted.iter().filter(is_of_file);
    accounted.contains(word) || of_files.any(|text| text.contains(word))
}

fn collect(blocks: &[Block], words: &mut Vec<String>) {
    blocks.iter().for_each(|block| block.words(words));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_omitted_text_does_not_account_for_a_lost_word() {
        let omitted = BTreeSet::from([
            "I think we should use tabs",
            "[attached: a.png, 3 bytes image]",
        ]);
        assert!(is_accounted(&omitted, "I think we should use tabs"));
        assert!(is_accounted(&omitted, "a.png"));
        assert!(!is_accounted(&omitted, "we should use"));
        assert!(!is_accounted(&omitted, "b.png"));
    }
}
