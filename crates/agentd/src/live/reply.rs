//! The text of a reply as it streams. Blocks of Markdown that no further text can change are finished lines; the block
//! that is still growing is shown below them until it is finished.

use super::code::Highlighter;
use super::line::Line;
use super::markdown;
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
use std::ops::Range;

/// A block that grows past this is finished in parts, so that showing it again and again stays cheap.
const LONGEST: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Paragraph,
    Heading,
    Fence,
    List,
    Other,
}

#[derive(Default)]
pub struct Reply {
    /// The text that is not finished yet.
    text: String,
    /// The code block that it is in.
    fence: Option<Fence>,
    /// Lines were finished before.
    has_lines: bool,
    /// The text begins with another item of the list whose items were finished last.
    in_list: bool,
    /// The number of that item.
    number: Option<u64>,
}

struct Fence {
    code: Highlighter,
    mark: char,
    length: usize,
}

impl Fence {
    fn is_closed_by(&self, line: &str) -> bool {
        let marks = line.trim();
        marks.chars().all(|c| c == self.mark) && marks.chars().count() >= self.length
    }
}

/// A block at the top level.
struct Block {
    kind: Kind,
    range: Range<usize>,
    /// For a list: where its items begin.
    items: Vec<usize>,
    /// For a list: its first number.
    first: Option<u64>,
    /// For a fence: the language.
    language: String,
}

impl Reply {
    /// Adds text, and returns the lines that are finished with it.
    pub fn push(&mut self, text: &str, width: usize) -> Vec<Line> {
        self.text.push_str(text);
        let mut lines = Vec::new();
        // Only complete lines are finished, except those of a block that is too long.
        let is_too_long = self.fence.is_none() && self.text.len() > LONGEST;
        if !text.contains('\n') && !is_too_long {
            return lines;
        }
        while self.advance(width, &mut lines) {}
        lines
    }

    /// The rows of the block that is still growing.
    pub fn growing(&self, width: usize) -> Vec<Line> {
        if self.fence.is_some() {
            // Only its beginning fits: the line may be very long, and is shown again with each piece.
            let begin: String = self.text.chars().take(width).collect();
            let line = Line::plain("  ").and(None, begin);
            return (!self.text.is_empty())
                .then_some(line)
                .into_iter()
                .collect();
        }
        if self.text.trim().is_empty() {
            return Vec::new();
        }
        let mut lines: Vec<Line> = self.gap().into_iter().collect();
        lines.extend(markdown::lines(&self.text, width, self.number));
        lines
    }

    /// The rest of its lines: no more text comes.
    pub fn finish(&mut self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        // A code block whose lines are all complete gets no empty one.
        if self.fence.is_none() || !self.text.is_empty() {
            lines = self.push("\n", width);
        }
        lines.extend(self.growing(width));
        *self = Self::default();
        lines
    }

    /// Finishes one more block, or more lines of code. False if there are none.
    fn advance(&mut self, width: usize, lines: &mut Vec<Line>) -> bool {
        if self.fence.is_some() {
            return self.code_lines(lines);
        }
        // Only complete lines decide: the beginning of a line may look like another block than the whole line.
        let complete = self.text.rfind('\n').map_or(0, |end| end + 1);
        let lines_so_far = self.text.get(..complete).unwrap_or_default();
        if complete > 0 && lines_so_far.trim().is_empty() {
            self.text.drain(..complete);
            return true;
        }
        let blocks = blocks(lines_so_far);
        let Some(last) = blocks.last() else {
            return self.text.len() > LONGEST && self.cut_long(width, lines);
        };
        if blocks.len() > 1 {
            let end = last.range.start;
            self.put(end, &blocks, width, lines);
            return true;
        }
        match last.kind {
            Kind::Fence => self.open(last, lines),
            Kind::List if last.items.len() > 1 => {
                let end = last.items.last().copied().unwrap_or_default();
                self.put(end, &blocks, width, lines);
                true
            }
            Kind::Heading | Kind::Paragraph if is_ended(lines_so_far, last.kind) => {
                self.put(complete, &blocks, width, lines);
                true
            }
            _ => self.text.len() > LONGEST && self.cut_long(width, lines),
        }
    }

    /// Finishes the text up to this byte.
    fn put(&mut self, end: usize, blocks: &[Block], width: usize, lines: &mut Vec<Line>) {
        let rest = self.text.split_off(end);
        let done = std::mem::replace(&mut self.text, rest);
        lines.extend(self.gap());
        lines.extend(markdown::lines(&done, width, self.number));
        let list = match blocks {
            [list] if list.items.last() == Some(&end) => Some(list),
            _ => None,
        };
        self.in_list = list.is_some();
        self.number = list.and_then(|list| {
            let first = list.first.map(|first| self.number.unwrap_or(first));
            let finished = list.items.len().saturating_sub(1);
            first.map(|first| first.saturating_add(finished as u64))
        });
        self.has_lines = true;
    }

    /// A blank line between two blocks, but not between two items of a list.
    fn gap(&self) -> Option<Line> {
        (self.has_lines && !self.in_list).then(Line::default)
    }

    /// Enters a code block whose first line is complete.
    fn open(&mut self, block: &Block, lines: &mut Vec<Line>) -> bool {
        let from = block.range.start;
        let Some(end) = self.text.get(from..).and_then(|text| text.find('\n')) else {
            return false;
        };
        let opening = self
            .text
            .get(from..from + end)
            .unwrap_or_default()
            .trim_start();
        let Some(mark) = opening.chars().next() else {
            return false;
        };
        let length = opening.chars().take_while(|c| *c == mark).count();
        lines.extend(self.gap());
        self.text.drain(..=from + end);
        self.fence = Some(Fence {
            code: Highlighter::new(&block.language),
            mark,
            length,
        });
        (self.has_lines, self.in_list, self.number) = (true, false, None);
        true
    }

    /// Finishes the complete lines of the code block, up to its end.
    fn code_lines(&mut self, lines: &mut Vec<Line>) -> bool {
        let Some(fence) = &mut self.fence else {
            return false;
        };
        let (mut finished, mut is_closed) = (0, false);
        for line in self.text.split_inclusive('\n') {
            let Some(text) = line.strip_suffix('\n') else {
                break;
            };
            finished += line.len();
            is_closed = fence.is_closed_by(text);
            if is_closed {
                break;
            }
            lines.push(markdown::code_line(&mut fence.code, text));
        }
        self.text.drain(..finished);
        if is_closed {
            self.fence = None;
        }
        finished > 0
    }

    /// Finishes most of a block that is too long.
    fn cut_long(&mut self, width: usize, lines: &mut Vec<Line>) -> bool {
        let end = self.text.rfind(['\n', ' ']).filter(|end| *end > 0);
        let end = end.map_or(self.text.len(), |end| end + 1);
        let blocks = blocks(&self.text);
        self.put(end, &blocks, width, lines);
        // What follows belongs to the same paragraph.
        self.has_lines = false;
        false
    }
}

/// Whether the only block of some complete lines has ended, whatever follows.
fn is_ended(text: &str, kind: Kind) -> bool {
    let is_marked = text.trim_start().starts_with('#');
    if kind == Kind::Heading && is_marked {
        return true;
    }
    text.lines()
        .next_back()
        .is_some_and(|line| line.trim().is_empty())
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(text, markdown::options()).into_offset_iter() {
        match event {
            Event::Start(Tag::Item) if depth == 1 => {
                depth += 1;
                if let Some(block) = blocks.last_mut() {
                    block.items.push(range.start);
                }
            }
            Event::Start(tag) => {
                if depth == 0 {
                    blocks.push(block(&tag, range));
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => blocks.push(other(range)),
            _ => {}
        }
    }
    blocks
}

const fn other(range: Range<usize>) -> Block {
    Block {
        kind: Kind::Other,
        range,
        items: Vec::new(),
        first: None,
        language: String::new(),
    }
}

fn block(tag: &Tag<'_>, range: Range<usize>) -> Block {
    let mut block = other(range);
    block.kind = match tag {
        Tag::Paragraph => Kind::Paragraph,
        Tag::Heading { .. } => Kind::Heading,
        Tag::CodeBlock(CodeBlockKind::Fenced(language)) => {
            block.language = language.to_string();
            Kind::Fence
        }
        Tag::List(first) => {
            block.first = *first;
            Kind::List
        }
        _ => Kind::Other,
    };
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal;

    const TEXT: &str = "# Plan\n\nFirst *this*,\nthen **that**.\n\n1. one\n1. two\n   more\n1. three\n\n```rust\nfn main() {\n\n}\n```\nA [link](https://a.b).\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> said\n\n- x\n\n- y\n\nend";

    fn texts(lines: &[Line]) -> Vec<String> {
        let text = |line: &Line| terminal::uncoloured(&line.to_string());
        lines.iter().map(text).collect()
    }

    fn streamed(text: &str, size: usize) -> Vec<String> {
        let mut reply = Reply::default();
        let mut lines = Vec::new();
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(size) {
            let piece: String = piece.iter().collect();
            lines.extend(reply.push(&piece, 40));
            reply.growing(40);
        }
        lines.extend(reply.finish(40));
        texts(&lines)
    }

    #[test]
    fn the_lines_are_the_same_however_the_text_arrives() {
        let whole = streamed(TEXT, usize::MAX);
        assert_eq!(whole[0], "Plan");
        assert!(whole.contains(&"3. three".to_owned()), "{whole:#?}");
        for size in 1..60 {
            assert_eq!(streamed(TEXT, size), whole, "{size}");
        }
    }

    #[test]
    fn a_block_is_finished_when_the_next_one_begins_and_code_line_by_line() {
        let mut reply = Reply::default();
        assert_eq!(texts(&reply.push("One **bo", 40)), [""; 0]);
        assert_eq!(texts(&reply.growing(40)), ["One **bo"]);
        assert_eq!(texts(&reply.push("ld**\n\nTw", 40)), ["One bold"]);
        assert_eq!(texts(&reply.growing(40)), ["", "Tw"]);
        let lines = reply.push("o\n```sh\nls\npw", 40);
        assert_eq!(texts(&lines), ["", "Two", "", "  ls"]);
        assert_eq!(texts(&reply.growing(40)), ["  pw"]);
        assert_eq!(texts(&reply.push("d\n```\n", 40)), ["  pwd"]);
        assert_eq!(texts(&reply.finish(40)), [""; 0]);
        assert!(!reply.has_lines);
    }

    #[test]
    fn a_fence_that_is_not_closed_ends_with_the_reply() {
        assert_eq!(streamed("```\na\nb", 1), ["  a", "  b"]);
        assert_eq!(streamed("```\na\n", 1), ["  a"]);
        assert_eq!(streamed("", 1), [""; 0]);
        assert_eq!(streamed("\n\n", 1), [""; 0]);
    }

    #[test]
    fn a_very_long_paragraph_is_finished_in_parts() {
        let mut reply = Reply::default();
        let mut lines = Vec::new();
        for _ in 0..4000 {
            lines.extend(reply.push("12345678 ", 40));
            assert!(reply.text.len() <= LONGEST + 20);
        }
        lines.extend(reply.finish(40));
        let words: usize = texts(&lines)
            .iter()
            .map(|row| row.split_whitespace().count())
            .sum();
        assert_eq!(words, 4000);
    }

    #[test]
    fn a_very_long_line_of_code_and_very_many_lines_are_no_problem() {
        let mut reply = Reply::default();
        reply.push("```rust\n", 40);
        for _ in 0..20_000 {
            assert_eq!(reply.push("\\\"01234567", 40), []);
            assert!(reply.growing(40).iter().all(|row| row.width() <= 42));
        }
        assert_eq!(reply.push("\n", 40)[0].width(), 200_002);
        let lines = reply.push(&"let x = \"1\";\n".repeat(100_000), 40);
        assert_eq!(lines.len(), 100_000);
        assert_eq!(reply.finish(40), []);
    }
}
