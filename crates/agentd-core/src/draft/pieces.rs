//! A reply of any size, in pieces that the journal accepts.

use super::{Change, Delta};

/// The most bytes of a draft that are written at once.
pub const MAX_PIECE: usize = 1024 * 1024;
/// The most bytes of a draft.
pub const MAX_DRAFT: usize = 32 * 1024 * 1024;
/// The most bytes of a reply, in the format of the draft. The message that it becomes is one event, whose limit is that
/// of a draft; the rest is for the other fields of the event.
pub const MAX_REPLY: usize = 30 * 1024 * 1024;
/// How many times as large as its draft a message can be. The number that grows most is one like `1e15`.
pub const MOST_GROWTH: usize = 5;
/// The most text of one delta. A byte of text has at most six bytes in JSON.
const MAX_TEXT: usize = 128 * 1024;

/// The same change in deltas of a bounded size. A block that arrived in one piece stays whole.
pub fn split(delta: Delta) -> Vec<Delta> {
    let Delta { part, change } = delta;
    let (text, of): (String, fn(String) -> Change) = match change {
        Change::Text { text } => (text, |text| Change::Text { text }),
        Change::Thinking { text } => (text, |text| Change::Thinking { text }),
        Change::Arguments { json } => (json, |json| Change::Arguments { json }),
        change => return vec![Delta { part, change }],
    };
    if text.len() <= MAX_TEXT {
        let change = of(text);
        return vec![Delta { part, change }];
    }
    let mut deltas = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(MAX_TEXT));
        let change = of(piece.to_owned());
        deltas.push(Delta { part, change });
        rest = more;
    }
    deltas
}

/// Lines of a draft in pieces that may be written at once. A piece ends with a line, unless the line alone is too long.
pub fn pieces(mut lines: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    while lines.len() > MAX_PIECE {
        let longest = lines.floor_char_boundary(MAX_PIECE);
        let end = lines[..longest].rfind('\n').map_or(longest, |at| at + 1);
        let (piece, more) = lines.split_at(end);
        pieces.push(piece);
        lines = more;
    }
    if !lines.is_empty() {
        pieces.push(lines);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::{Reply, decode, encode};
    use crate::message::Block;

    fn text(text: String) -> Delta {
        let change = Change::Text { text };
        Delta { part: 0, change }
    }

    fn reply(deltas: &[Delta]) -> Reply {
        let mut reply = Reply::default();
        for delta in deltas {
            reply.apply(delta.clone());
        }
        reply
    }

    #[test]
    fn a_large_text_becomes_small_deltas_of_the_same_reply() {
        for whole in [
            "é".repeat(MAX_TEXT),
            "\u{1}".repeat(3 * MAX_TEXT),
            "x".repeat(MAX_TEXT + 1),
        ] {
            let whole = text(whole);
            let deltas = split(whole.clone());
            assert!(deltas.len() > 1);
            assert_eq!(reply(&deltas), reply(&[whole]));
            for delta in deltas {
                assert!(encode(&[delta]).unwrap().len() < MAX_PIECE);
            }
        }
        let small = text("x".repeat(MAX_TEXT));
        assert_eq!(split(small.clone()), [small]);
        assert_eq!(split(text(String::new())), [text(String::new())]);
    }

    #[test]
    fn pieces_end_with_a_line_where_they_can_and_together_are_the_draft() {
        let mut deltas = split(text("word ".repeat(MAX_PIECE)));
        let text = "ü".repeat(MAX_PIECE);
        let block = Block::Text { text };
        let change = Change::Whole { block };
        deltas.push(Delta { part: 1, change });
        let lines = String::from_utf8(encode(&deltas).unwrap()).unwrap();
        let pieces = pieces(&lines);
        assert!(pieces.iter().all(|piece| piece.len() <= MAX_PIECE));
        assert!(pieces[..4].iter().all(|piece| piece.ends_with('\n')));
        assert_eq!(pieces.concat(), lines);
        assert_eq!(decode(lines.as_bytes()).unwrap(), reply(&deltas));
        assert!(super::pieces("").is_empty());
    }
}
