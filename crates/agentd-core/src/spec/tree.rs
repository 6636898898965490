//! The front matter as a tree whose nodes know their line numbers.
//!
//! Words keep their spelling: the type of the field decides whether `1.10` is a number or a text.

use super::path::{Path, Step};
use super::{Error, MAX_BYTES};
use serde_saphyr::granit_parser::{
    self, ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag,
};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// How deeply lists and mappings may be nested. Reading them uses the stack.
const MAX_DEPTH: usize = 64;
/// The cost of one node besides its text: about its size in memory relative to its spelling.
const NODE_COST: usize = 8;
/// The maximum cost of a whole tree. A plain file can hardly reach it; aliases that multiply quickly do.
const MAX_COST: usize = 4 * MAX_BYTES;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub line: usize,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// `plain` means that the word is unquoted, so it may be a number or null.
    Word {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub line: usize,
    pub value: Node,
}

impl Node {
    /// The line of the key at `path`, or of the last key on the way that exists.
    pub fn line_of(&self, path: &Path) -> usize {
        let mut node = self;
        let mut line = self.line;
        for step in &path.0 {
            match (step, &node.kind) {
                (Step::Key(key), Kind::Map(entries)) => {
                    let Some(entry) = entries.iter().find(|entry| entry.key == *key) else {
                        break;
                    };
                    (node, line) = (&entry.value, entry.line);
                }
                (Step::Index(index), Kind::List(items)) => {
                    let Some(item) = items.get(*index) else {
                        break;
                    };
                    (node, line) = (item, item.line);
                }
                _ => break,
            }
        }
        line
    }
}

/// Reads one YAML document; `None` if it contains only whitespace and comments.
pub(super) fn read(yaml: &str, lines_before: usize) -> Result<Option<Node>, Error> {
    let options = granit_parser::options! {
        disallow_directives: true,
        // Another crate may enable the parser's comments; they are not nodes.
        emit_comments: false,
        // YAML's own limit of 1024 would reject a long name that agentd itself wrote.
        simple_key_max_lookahead: MAX_BYTES,
    };
    let mut reader = Reader {
        yaml,
        parser: Parser::new_from_str_with_options(yaml, options),
        lines_before,
        anchors: HashMap::new(),
        cost: 0,
        path: Path::default(),
    };
    let mut root = None;
    while let Some((event, span)) = reader.next()? {
        match event {
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            Event::StreamEnd => break,
            _ if root.is_some() => return Err(reader.refuse(&span, "a second document begins")),
            event => root = Some(reader.node(event, &span, 0)?),
        }
    }
    Ok(root)
}

struct Reader<'a> {
    yaml: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    lines_before: usize,
    /// The finished nodes that have an anchor, with their cost.
    anchors: HashMap<usize, (Node, usize)>,
    cost: usize,
    path: Path,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, Error> {
        self.parser.next_event().transpose().map_err(|error| {
            let line = self.lines_before + error_line(self.yaml, &error);
            let reason = error.info();
            Error::Yaml { line, reason }
        })
    }

    /// The next event inside a list or mapping.
    fn inner(&mut self, outer: &Span) -> Result<(Event<'a>, Span), Error> {
        let event = self.next()?;
        event.ok_or_else(|| self.refuse(outer, "it ends unexpectedly"))
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, Error> {
        if depth > MAX_DEPTH {
            return Err(self.refuse(span, "lists and mappings are nested too deeply"));
        }
        let before = self.cost;
        self.spend(NODE_COST, span)?;
        let (kind, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.no_tag(tag.as_ref(), span)?;
                self.spend(text.len(), span)?;
                let plain = style == ScalarStyle::Plain;
                // For an absent value the parser reports `~`.
                let absent = plain && span.start.index() == span.end.index();
                let text = if absent { "".into() } else { text.into_owned() };
                (Kind::Word { text, plain }, anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.no_tag(tag.as_ref(), span)?;
                (Kind::List(self.list(span, depth)?), anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.no_tag(tag.as_ref(), span)?;
                (Kind::Map(self.map(span, depth)?), anchor)
            }
            Event::Alias(anchor) => return self.alias(anchor, span, depth),
            _ => return Err(self.refuse(span, "a value is missing")),
        };
        let line = self.line(span);
        let node = Node { line, kind };
        if anchor != 0 {
            self.anchors
                .insert(anchor, (node.clone(), self.cost - before));
        }
        Ok(node)
    }

    fn list(&mut self, outer: &Span, depth: usize) -> Result<Vec<Node>, Error> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.inner(outer)?;
            if event == Event::SequenceEnd {
                return Ok(items);
            }
            self.path.0.push(Step::Index(items.len()));
            items.push(self.node(event, &span, depth + 1)?);
            self.path.0.pop();
        }
    }

    fn map(&mut self, outer: &Span, depth: usize) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let (event, span) = self.inner(outer)?;
            if event == Event::MappingEnd {
                return Ok(entries);
            }
            let Kind::Word { text: key, .. } = self.node(event, &span, depth + 1)?.kind else {
                return Err(self.refuse(&span, "a key must be a word"));
            };
            let line = self.line(&span);
            self.path.0.push(Step::Key(key.clone()));
            if !seen.insert(key.clone()) {
                let key = self.path.to_string();
                return Err(Error::DuplicateKey { key, line });
            }
            let (event, span) = self.inner(outer)?;
            let value = self.node(event, &span, depth + 1)?;
            self.path.0.pop();
            entries.push(Entry { key, line, value });
        }
    }

    /// A copy of the anchored node. Its inner nodes keep their original lines.
    fn alias(&mut self, anchor: usize, span: &Span, depth: usize) -> Result<Node, Error> {
        // An anchor is known only once its node is finished, so a node cannot contain itself.
        let Some(cost) = self.anchors.get(&anchor).map(|(_, cost)| *cost) else {
            return Err(self.refuse(span, "an alias is inside the node that it names"));
        };
        self.spend(cost, span)?;
        let node = self.anchors.get(&anchor).map(|(node, _)| node.clone());
        let Some(node) = node.filter(|node| depth + height(node) <= MAX_DEPTH) else {
            return Err(self.refuse(span, "lists and mappings are nested too deeply"));
        };
        let line = self.line(span);
        Ok(Node { line, ..node })
    }

    /// Called before the memory is allocated.
    fn spend(&mut self, cost: usize, span: &Span) -> Result<(), Error> {
        self.cost += cost;
        if self.cost > MAX_COST {
            return Err(self.refuse(span, "its aliases make it too large"));
        }
        Ok(())
    }

    fn no_tag(&self, tag: Option<&Cow<'a, Tag>>, span: &Span) -> Result<(), Error> {
        match tag {
            Some(_) => Err(self.refuse(span, "tags (`!name`) have no meaning here")),
            None => Ok(()),
        }
    }

    fn refuse(&self, span: &Span, reason: &str) -> Error {
        Error::Yaml {
            line: self.line(span),
            reason: reason.to_owned(),
        }
    }

    fn line(&self, span: &Span) -> usize {
        self.lines_before + span.start.line()
    }
}

/// For a tab that indents the next line, the parser points at the beginning of the previous word, which to the user
/// is another key.
fn error_line(yaml: &str, error: &ScanError) -> usize {
    let line = error.marker().line();
    let tabbed = |text: &str| {
        let content = text.trim_start();
        !content.is_empty() && text[..text.len() - content.len()].contains('\t')
    };
    match error.kind() {
        ErrorKind::TabInPlainScalar => {
            let mut below = (line + 1..).zip(yaml.lines().skip(line));
            below
                .find(|(_, text)| tabbed(text))
                .map_or(line, |(nth, _)| nth)
        }
        _ => line,
    }
}

/// The nesting depth of lists and mappings below a node.
fn height(node: &Node) -> usize {
    match &node.kind {
        Kind::Word { .. } => 0,
        Kind::List(items) => 1 + items.iter().map(height).max().unwrap_or(0),
        Kind::Map(entries) => 1 + entries.iter().map(|e| height(&e.value)).max().unwrap_or(0),
    }
}
