//! Markdown as lines: headings, lists, quotations, code and tables. Pure: from text and a width to lines.

#[cfg(test)]
mod tests;

use super::code::Highlighter;
use super::line::Line;
use super::table;
use crate::terminal::{CODE, EMPHASIS, HEADING, Paint, QUIET};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// How far code is indented.
const CODE_INDENT: &str = "  ";

/// The columns that are left for text. Marks and bars of blocks that are nested too deeply are left out.
const LEAST: usize = 8;

pub fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// The lines of a text. If it begins with a list that continues an earlier one, `number` is its first number.
pub fn lines(text: &str, width: usize, number: Option<u64>) -> Vec<Line> {
    let mut writer = Writer::new(width, number);
    let parser = Parser::new_ext(text, options());
    let definitions = parser.reference_definitions().iter();
    let mut definitions: Vec<(usize, String)> = definitions
        .map(|(label, it)| (it.span.start, format!("[{label}]: {}", it.dest)))
        .collect();
    definitions.sort();
    for event in parser {
        writer.event(event);
    }
    writer.end_row();
    // The text that refers to them may have been shown before.
    let definitions = definitions.into_iter();
    let definitions = definitions.map(|(_, text)| Line::painted(QUIET, text));
    writer.lines.extend(definitions);
    writer.lines
}

/// One line of code, as it stands in a code block.
pub fn code_line(code: &mut Highlighter, text: &str) -> Line {
    if text.is_empty() {
        return Line::default();
    }
    let mut line = Line::plain(CODE_INDENT);
    line.append(&code.line(text));
    line
}

/// What precedes each row of a block: a list item's mark, or the bar of a quotation.
struct Indent {
    /// Before the first row only.
    first: Option<Line>,
    more: Line,
}

/// A link or an image that has begun.
struct Link {
    url: String,
    text: String,
}

struct Writer {
    width: usize,
    lines: Vec<Line>,
    indents: Vec<Indent>,
    /// The text of the row so far.
    row: Line,
    paints: Vec<Paint>,
    /// The next number of each list that is open; none for a list without numbers.
    lists: Vec<Option<u64>>,
    number: Option<u64>,
    /// A blank line is due before the next block.
    gap: bool,
    code: Option<(Highlighter, String)>,
    links: Vec<Link>,
    table: Option<Vec<Vec<Line>>>,
}

impl Writer {
    const fn new(width: usize, number: Option<u64>) -> Self {
        Self {
            width,
            lines: Vec::new(),
            indents: Vec::new(),
            row: Line { spans: Vec::new() },
            paints: Vec::new(),
            lists: Vec::new(),
            number,
            gap: false,
            code: None,
            links: Vec::new(),
            table: None,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text),
            },
            Event::Code(text) => self.push(Some(CODE), &text),
            Event::Html(text) | Event::InlineHtml(text) => self.html(&text),
            Event::SoftBreak | Event::HardBreak => match &mut self.table {
                Some(_) => self.row.push(None, " "),
                // Models break lines on purpose.
                None => self.end_row(),
            },
            Event::Rule => {
                self.begin_block();
                let length = self.width.min(40);
                self.lines.push(Line::painted(QUIET, "─".repeat(length)));
                self.gap = true;
            }
            Event::TaskListMarker(is_done) => {
                let mark = if is_done { "☑ " } else { "☐ " };
                self.row.push(None, mark);
            }
            // Not enabled in the options.
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.begin_block(),
            Tag::Heading { .. } => {
                self.begin_block();
                self.paints.push(HEADING);
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                let bar = Line::painted(QUIET, "│ ");
                self.indents.push(Indent {
                    first: None,
                    more: bar,
                });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((Highlighter::new(&language), String::new()));
            }
            Tag::List(first) => {
                self.end_row();
                if self.lists.is_empty() {
                    self.begin_block();
                }
                let continued = first.and_then(|_| self.number.take());
                self.lists.push(continued.or(first));
            }
            Tag::Item => self.begin_item(),
            Tag::Emphasis => self.paints.push(EMPHASIS),
            Tag::Strong => self.paints.push(HEADING),
            Tag::Strikethrough => self.paints.push(QUIET),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(Link {
                    url: dest_url.to_string(),
                    text: String::new(),
                });
            }
            Tag::Table(_) => {
                self.begin_block();
                self.table = Some(Vec::new());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(rows) = &mut self.table {
                    rows.push(Vec::new());
                }
            }
            Tag::HtmlBlock => self.begin_block(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.paints.pop();
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.end_row();
                self.indents.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_row();
                // An item without text still has its mark.
                if self
                    .indents
                    .last()
                    .is_some_and(|indent| indent.first.is_some())
                {
                    self.put(&Line::default());
                }
                self.indents.pop();
                self.gap = false;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.paints.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.row);
                if let Some(row) = self.table.as_mut().and_then(|rows| rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let rows = self.table.take().unwrap_or_default();
                for line in table::lines(&rows, self.width) {
                    self.put(&line);
                }
                self.gap = true;
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.push(self.paints.last().copied(), text);
    }

    fn push(&mut self, paint: Option<Paint>, text: &str) {
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(text);
        }
        self.row.push(paint, text);
    }

    fn html(&mut self, text: &str) {
        for (n, part) in text.split('\n').enumerate() {
            if n > 0 {
                self.end_row();
            }
            self.text(part);
        }
    }

    fn begin_block(&mut self) {
        self.end_row();
        let is_after_mark = self.indents.last().is_some_and(|it| it.first.is_some());
        if std::mem::take(&mut self.gap) && !is_after_mark {
            let (indent, _) = self.indent();
            let is_blank = indent
                .spans()
                .iter()
                .all(|span| span.text.trim().is_empty());
            self.lines
                .push(if is_blank { Line::default() } else { indent });
        }
    }

    fn end_block(&mut self) {
        self.end_row();
        self.gap = true;
    }

    fn begin_item(&mut self) {
        self.end_row();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "• ".to_owned(),
        };
        let mark = Line::plain(mark);
        let more = Line::plain(" ".repeat(mark.width()));
        self.indents.push(Indent {
            first: Some(mark),
            more,
        });
    }

    fn end_code(&mut self) {
        let Some((mut code, text)) = self.code.take() else {
            return;
        };
        for text in text.lines() {
            let line = code_line(&mut code, text);
            self.put_unwrapped(&line);
        }
        self.gap = true;
    }

    /// The address follows the text of a link, unless it is that text.
    fn end_link(&mut self) {
        let Some(Link { url, text }) = self.links.pop() else {
            return;
        };
        if text != url && !url.is_empty() {
            self.row.push(Some(QUIET), &format!(" ({url})"));
        }
    }

    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if !row.is_empty() {
            self.put(&row);
        }
    }

    fn put(&mut self, row: &Line) {
        let (first, more) = self.indent();
        self.lines.extend(row.wrapped(self.width, &first, &more));
    }

    fn put_unwrapped(&mut self, row: &Line) {
        let (mut line, _) = self.indent();
        line.append(row);
        self.lines.push(line);
    }

    /// What precedes the next row, and the rows after it.
    fn indent(&mut self) -> (Line, Line) {
        let (mut first, mut more) = (Line::default(), Line::default());
        let mut room = self.width.saturating_sub(LEAST);
        for indent in &mut self.indents {
            let mark = indent.first.take();
            let Some(left) = room.checked_sub(indent.more.width()) else {
                continue;
            };
            room = left;
            first.append(mark.as_ref().unwrap_or(&indent.more));
            more.append(&indent.more);
        }
        (first, more)
    }
}
