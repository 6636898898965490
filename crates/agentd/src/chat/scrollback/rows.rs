//! The rows of some events.

use super::{Chunk, Numbers, number};
use crate::live::{Line, Moment, Options, View};
use crate::render::count;
use crate::terminal::QUIET;
use agentd_core::event::{Body, Event};

/// The rows of a prompt that are shown: it may be a whole file.
const PROMPT: usize = 20;

/// The rows of a chunk, and the view that has seen it.
pub fn render(
    options: Options,
    numbers: &Numbers,
    chunk: &Chunk,
    width: usize,
) -> (View, Vec<Line>) {
    let (context, events) = (&chunk.context, &chunk.events);
    let mut view = View::new(options);
    view.set_ended(chunk.ended);
    let moment = |event: &Event| Moment {
        now: event.at,
        width,
    };
    for event in context {
        view.prime(event, moment(event));
    }
    let mut lines = Vec::new();
    for event in events {
        let shown = view.event(event, number(numbers, event), moment(event));
        lines.extend(of(event, shown, width));
    }
    // Between turns there is a blank line.
    if context.is_empty() && !lines.is_empty() {
        lines.insert(0, Line::default());
    }
    (view, lines)
}

/// The rows of one event, from what the view shows of it.
pub fn of(event: &Event, shown: Vec<Line>, width: usize) -> Vec<Line> {
    match event.body {
        Body::Prompt(_) | Body::PromptsTaken(_) => prompt(&shown, width),
        _ => fitted(shown, width),
    }
}

/// Lines that are too long are continued on the next row.
pub fn fitted(lines: Vec<Line>, width: usize) -> Vec<Line> {
    let none = Line::default();
    let rows = lines
        .into_iter()
        .flat_map(|line| match line.width() > width {
            true => line.wrapped(width, &none, &none),
            false => vec![line],
        });
    rows.collect()
}

fn prompt(lines: &[Line], width: usize) -> Vec<Line> {
    let mut rows = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        if rows.len() >= PROMPT {
            let left = count((lines.len() - n) as u64, "line");
            rows.push(Line::painted(QUIET, format!("… {left}")));
            break;
        }
        let most = width.saturating_mul(PROMPT - rows.len());
        rows.extend(fitted(vec![line.truncated(most)], width));
    }
    rows
}
