//! A Markdown table as lines: aligned if it fits, otherwise a row after the other.

use super::line::Line;
use crate::terminal::{HEADING, QUIET};

const BETWEEN: &str = "  ";

/// The first row is the head.
pub fn lines(rows: &[Vec<Line>], width: usize) -> Vec<Line> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(Line::width).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let between = BETWEEN.len() * columns.saturating_sub(1);
    let fits = widths.iter().sum::<usize>() + between <= width;
    let mut lines = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        match fits {
            true => lines.push(aligned(row, &widths, n == 0)),
            false => lines.push(joined(row, n == 0)),
        }
        if n == 0 && fits {
            let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            lines.push(Line::painted(QUIET, rules.join(BETWEEN)));
        }
    }
    lines
}

fn aligned(row: &[Line], widths: &[usize], is_head: bool) -> Line {
    let mut line = Line::default();
    for (n, cell) in row.iter().enumerate() {
        add(&mut line, cell, is_head);
        let width = widths.get(n).copied().unwrap_or(0);
        if n + 1 < row.len() {
            line.push(None, &" ".repeat(width.saturating_sub(cell.width())));
            line.push(None, BETWEEN);
        }
    }
    line
}

fn joined(row: &[Line], is_head: bool) -> Line {
    let mut line = Line::default();
    for (n, cell) in row.iter().enumerate() {
        if n > 0 {
            line.push(Some(QUIET), " │ ");
        }
        add(&mut line, cell, is_head);
    }
    line
}

fn add(line: &mut Line, cell: &Line, is_head: bool) {
    for span in cell.spans() {
        let paint = if is_head { Some(HEADING) } else { span.paint };
        line.push(paint, &span.text);
    }
}
