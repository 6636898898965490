//! An event as one or more lines of the demo's output.

use crate::render::Detail;
use crate::render::call::{self, shortened};
use agentd_core::event::{Body, Event};
use agentd_core::message::Block;

/// How many lines of an answer are shown; of a longer answer, the beginning and the end.
const LINES: usize = 8;

/// Empty for internal events.
pub fn shown(event: &Event) -> Vec<String> {
    match &event.body {
        Body::MessageAdded(message) => {
            let texts = message.blocks.iter().filter_map(text);
            let said = texts.flat_map(|text| text.trim_end().lines());
            let mut lines = abridged(&said.collect::<Vec<_>>());
            for call in message.blocks.iter().filter_map(Block::as_call) {
                let title = call::title(&call.name, &call.arguments.to_object(), Detail::Brief);
                lines.push(shortened(&format!("· {title}")));
            }
            lines
        }
        Body::Notice(notice) => vec![shortened(&format!("[{}]", notice.text))],
        _ => Vec::new(),
    }
}

fn abridged(lines: &[&str]) -> Vec<String> {
    let all = || lines.iter().map(|line| format!("| {line}"));
    if lines.len() <= LINES {
        return all().collect();
    }
    let left_out = lines.len() - LINES + 1;
    let begin = all().take(LINES - 2);
    let more = [format!("| … {left_out} lines …")];
    begin.chain(more).chain(all().next_back()).collect()
}

pub fn text(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_is_shown_with_its_beginning_and_its_end() {
        let lines: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let shown = abridged(&lines);
        assert_eq!(shown.len(), LINES);
        assert_eq!(shown[5..], ["| 6", "| … 33 lines …", "| 40"]);
        assert_eq!(abridged(&lines[..LINES]).len(), LINES);
        assert_eq!(abridged(&lines[..LINES])[7], "| 8");
    }
}
