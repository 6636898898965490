//! The rows of some events.

use super::{Chunk, Numbers, number};
use crate::live::{Line, Moment, Options, View};
use crate::render::count;
use crate::terminal::QUIET;
use agentd_core::event::{Body, Event};

/// The rows of a prompt that are shown: it may be a whole file.
const PROMPT: usize = 20;
/// The rows of its end, of those: what the user typed often follows what was pasted.
const END: usize = 6;

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

/// The beginning and the end of a prompt.
fn prompt(lines: &[Line], width: usize) -> Vec<Line> {
    let most = match lines {
        [_] => PROMPT,
        // A row between them says how much is left out.
        _ => PROMPT - END - 1,
    };
    let fits = |line: &Line, rows: usize| {
        let most = width.saturating_mul(rows);
        fitted(vec![line.truncated(most)], width)
    };
    let mut rows = Vec::new();
    let mut rest = lines.iter();
    while rows.len() < most
        && let Some(line) = rest.next()
    {
        rows.extend(fits(line, most - rows.len()));
    }
    // From the last row up.
    let mut end = Vec::new();
    while end.len() < END
        && let Some(line) = rest.next_back()
    {
        end.extend(fits(line, END - end.len()).into_iter().rev());
    }
    match rest.len() {
        0 => {}
        // It takes no more room than the row that would count it.
        1 => rows.extend(rest.flat_map(|line| fits(line, 1))),
        left => {
            let left = count(left as u64, "line");
            rows.push(Line::painted(QUIET, format!("… {left}")));
        }
    }
    rows.extend(end.into_iter().rev());
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(count: usize) -> Vec<String> {
        let lines: Vec<Line> = (1..=count).map(|n| Line::plain(n.to_string())).collect();
        let rows = prompt(&lines, 40);
        assert!(rows.len() <= PROMPT, "{count}: {}", rows.len());
        let text = |row: &Line| crate::terminal::uncoloured(&row.to_string());
        rows.iter().map(text).collect()
    }

    #[test]
    fn a_long_prompt_shows_its_beginning_and_its_end() {
        let rows = shown(100);
        assert_eq!(rows[0], "1");
        assert_eq!(rows[13], "… 81 lines");
        assert_eq!(rows[14..], ["95", "96", "97", "98", "99", "100"]);
        let all: Vec<String> = (1..=20).map(|n| n.to_string()).collect();
        assert_eq!(shown(20), all);
        assert_eq!(shown(1), ["1"]);
    }

    #[test]
    fn a_prompt_of_one_long_line_is_cut_at_its_end() {
        let line = Line::plain("x".repeat(4000));
        assert_eq!(prompt(&[line], 40).len(), PROMPT);
    }
}
