//! Everything that the agent did, as rows of the screen. Events are kept in chunks; the rows of a chunk are made when they
//! are looked at, once for each width, and those far away are dropped again. So a long history costs nothing until the user
//! scrolls there, and a key press never waits for it.

mod rows;
#[cfg(test)]
mod tests;

use super::effect::Older;
use crate::live::{Line, Moment, Options, View};
use crate::render::event::begins;
use agentd_client::api::Delta;
use agentd_core::event::{Body, Event};
use agentd_core::id::{ConversationId, Seq, TurnId};
use agentd_core::mcp::CallProgress;
use agentd_core::time::Timestamp;
use std::collections::{BTreeMap, VecDeque};

/// Chunks on each side of the screen whose rows are kept.
const KEPT: i64 = 6;
/// Events after which the newest chunk is closed, at the end of a turn.
const CHUNK: usize = 200;

/// A row: those of a chunk are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    chunk: i64,
    row: usize,
}

#[derive(Default)]
struct Chunk {
    /// Earlier events of the turn in which it begins.
    context: Vec<Event>,
    events: Vec<Event>,
    /// The turn that ended before it. Events of its background tasks may follow: it does not run because of them.
    ended: Option<TurnId>,
    rows: Option<Rows>,
}

struct Rows {
    width: usize,
    lines: Vec<Line>,
}

/// The numbers of the conversations, which the user sees instead of ids.
pub type Numbers = BTreeMap<ConversationId, u32>;

pub struct Scrollback {
    options: Options,
    numbers: Numbers,
    /// The chunks that are complete, oldest first.
    chunks: VecDeque<Chunk>,
    /// The number of the oldest chunk. It becomes smaller when older events are loaded, so that a position stays the same.
    first: i64,
    /// The newest chunk, which grows.
    open: Chunk,
    /// The view that has seen the newest chunk.
    view: View,
    /// The pieces of the reply that is streaming.
    deltas: Vec<(Delta, Timestamp)>,
    width: usize,
    /// The row below the screen; none at the end, where the screen follows new rows.
    below: Option<Position>,
    /// All older events are loaded.
    is_whole: bool,
}

impl Scrollback {
    pub fn new(options: Options, numbers: Numbers, newest: Older) -> Self {
        let mut scrollback = Self {
            options,
            numbers,
            chunks: VecDeque::new(),
            first: 0,
            open: Chunk {
                context: newest.context,
                events: newest.events,
                ended: None,
                rows: None,
            },
            view: View::new(options),
            deltas: Vec::new(),
            width: 0,
            below: None,
            is_whole: newest.is_first,
        };
        scrollback.set_width(80);
        scrollback
    }

    /// The view of what happens now.
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// The context window of the model, from the turn in progress on.
    pub const fn set_window(&mut self, window: Option<u64>) {
        self.options.window = window;
        self.view.set_window(window);
    }

    /// The first event that is loaded, if there are older ones.
    pub fn oldest(&self) -> Option<Seq> {
        if self.is_whole {
            return None;
        }
        let chunks = self.chunks.iter().chain([&self.open]);
        let mut events = chunks.flat_map(|chunk| chunk.events.first());
        events.next().map(|event| event.seq)
    }

    /// Adds older events.
    pub fn prepend(&mut self, older: Older) {
        self.is_whole = older.is_first;
        if older.events.is_empty() {
            return;
        }
        self.first -= 1;
        self.chunks.push_front(Chunk {
            context: older.context,
            events: older.events,
            ended: None,
            rows: None,
        });
    }

    /// Adds what was just seen.
    pub fn event(&mut self, event: Event, now: Timestamp) {
        self.number(&event);
        if matches!(
            event.body,
            Body::MessageAdded(_) | Body::RequestSent(_) | Body::RequestEnded(_)
        ) {
            self.deltas.clear();
        }
        let number = number(&self.numbers, &event);
        let width = self.width;
        let shown = self.view.event(&event, number, Moment { now, width });
        let shown = rows::of(&event, shown, width);
        self.grow(shown);
        let is_end = matches!(event.body, Body::TurnEnded(_));
        self.open.events.push(event);
        if is_end && self.open.events.len() >= CHUNK && !self.view.has_waiting() {
            let chunk = std::mem::take(&mut self.open);
            self.chunks.push_back(chunk);
            let lines = Vec::new();
            self.open.rows = Some(Rows { width, lines });
            self.open.ended = self.view.ended();
        }
    }

    pub fn delta(&mut self, delta: Delta, now: Timestamp) {
        let width = self.width;
        let shown = self.view.delta(&delta, Moment { now, width });
        self.grow(rows::fitted(shown, width));
        self.deltas.push((delta, now));
    }

    /// Shown in the status line only.
    pub fn progress(&mut self, progress: &CallProgress) {
        self.view.progress(progress);
    }

    /// Forgets what is shown: the log begins here.
    pub fn clear(&mut self) {
        self.first = self.newest();
        self.chunks.clear();
        self.open.context.clear();
        self.open.events.clear();
        self.open.ended = self.view.ended();
        self.open.rows = Some(Rows {
            width: self.width,
            lines: Vec::new(),
        });
        self.below = None;
        self.is_whole = true;
    }

    /// The log begins earlier again: what it has before the first event is to be loaded.
    pub const fn reopen(&mut self) {
        self.is_whole = false;
    }

    fn grow(&mut self, lines: Vec<Line>) {
        if let Some(rows) = &mut self.open.rows {
            rows.lines.extend(lines);
        }
    }

    /// A conversation that begins has the next number.
    fn number(&mut self, event: &Event) {
        if let (Body::ConversationBegan(_), Some(id)) = (&event.body, begins(event)) {
            let next = self.numbers.values().max().map_or(1, |last| last + 1);
            self.numbers.entry(id).or_insert(next);
        }
    }

    /// Fits everything into another width.
    pub fn set_width(&mut self, width: usize) {
        if width == self.width {
            return;
        }
        let shown = self.below.map(|below| (below, self.height(below.chunk)));
        self.width = width;
        let (mut view, mut lines) = rows::render(self.options, &self.numbers, &self.open, width);
        for (delta, at) in &self.deltas {
            let shown = view.delta(delta, Moment { now: *at, width });
            lines.extend(rows::fitted(shown, width));
        }
        self.view = view;
        self.open.rows = Some(Rows { width, lines });
        // About the same place: the text has other rows now.
        self.below = shown.map(|(below, before)| {
            let after = self.height(below.chunk);
            let row = below.row * after / before.max(1);
            Position { row, ..below }
        });
    }

    fn newest(&self) -> i64 {
        self.first + i64::try_from(self.chunks.len()).unwrap_or(i64::MAX)
    }

    /// The rows of a chunk, which are made if they are not there.
    fn lines(&mut self, chunk: i64) -> &[Line] {
        let width = self.width;
        let at = usize::try_from(chunk - self.first).unwrap_or_default();
        let chunk = self.chunks.get_mut(at).unwrap_or(&mut self.open);
        if chunk.rows.as_ref().is_none_or(|rows| rows.width != width) {
            let (_, lines) = rows::render(self.options, &self.numbers, chunk, width);
            chunk.rows = Some(Rows { width, lines });
        }
        match &chunk.rows {
            Some(rows) => &rows.lines,
            None => &[],
        }
    }

    fn height(&mut self, chunk: i64) -> usize {
        self.lines(chunk).len()
    }

    fn end(&mut self) -> Position {
        let chunk = self.newest();
        let row = self.height(chunk);
        Position { chunk, row }
    }

    /// So many rows above, or the first row.
    fn above(&mut self, from: Position, rows: usize) -> Position {
        let (mut at, mut left) = (from, rows);
        loop {
            if at.row >= left {
                at.row -= left;
                return at;
            }
            left -= at.row;
            at.row = 0;
            if at.chunk <= self.first {
                return at;
            }
            at.chunk -= 1;
            at.row = self.height(at.chunk);
        }
    }

    /// So many rows below, or the end.
    fn beneath(&mut self, from: Position, rows: usize) -> Position {
        let (mut at, mut left) = (from, rows);
        loop {
            let height = self.height(at.chunk);
            let rest = height.saturating_sub(at.row);
            if left <= rest {
                at.row += left;
                return at;
            }
            left -= rest;
            at.row = height;
            if at.chunk >= self.newest() {
                return at;
            }
            at.chunk += 1;
            at.row = 0;
        }
    }

    /// Whether the screen follows new rows.
    pub const fn is_at_end(&self) -> bool {
        self.below.is_none()
    }

    /// Whether older events are needed soon.
    pub fn is_near_top(&mut self, height: usize) -> bool {
        let below = self.bottom();
        self.above(below, height * 3).chunk <= self.first
    }

    fn bottom(&mut self) -> Position {
        match self.below {
            Some(below) => below,
            None => self.end(),
        }
    }

    pub fn scroll_up(&mut self, rows: usize, height: usize) {
        let below = self.bottom();
        let top = self.above(below, height + rows);
        self.show(top, height);
    }

    pub fn scroll_down(&mut self, rows: usize) {
        let below = self.bottom();
        let below = self.beneath(below, rows);
        self.stop_at(below);
    }

    pub fn go_to_top(&mut self, height: usize) {
        let chunk = self.first;
        self.show(Position { chunk, row: 0 }, height);
    }

    pub const fn go_to_end(&mut self) {
        self.below = None;
    }

    /// Shows this row first.
    fn show(&mut self, top: Position, height: usize) {
        let below = self.beneath(top, height);
        self.stop_at(below);
    }

    fn stop_at(&mut self, below: Position) {
        let end = self.end();
        self.below = Some(below).filter(|below| *below < end);
    }

    /// The rows that are on a screen of this height.
    pub fn shown(&mut self, height: usize) -> Vec<Line> {
        let mut growing = match self.below {
            None => rows::fitted(self.view.growing(self.width), self.width),
            Some(_) => Vec::new(),
        };
        growing.drain(..growing.len().saturating_sub(height));
        let below = self.bottom();
        let top = self.above(below, height - growing.len());
        let mut shown = Vec::with_capacity(height);
        for chunk in top.chunk..=below.chunk {
            let lines = self.lines(chunk);
            let from = if chunk == top.chunk { top.row } else { 0 };
            let to = if chunk == below.chunk {
                below.row
            } else {
                lines.len()
            };
            shown.extend(lines.get(from..to).unwrap_or_default().iter().cloned());
        }
        shown.extend(growing);
        self.drop_far_rows(below.chunk);
        shown
    }

    fn drop_far_rows(&mut self, near: i64) {
        for (number, chunk) in (self.first..).zip(&mut self.chunks) {
            if (number - near).abs() > KEPT {
                chunk.rows = None;
            }
        }
    }
}

/// The number of the conversation that an event begins.
fn number(numbers: &Numbers, event: &Event) -> Option<u32> {
    numbers.get(&begins(event)?).copied()
}
