//! The chat as a screen.

use super::app::{App, Focus};
use super::completion::Completion;
use super::layout::Size;
use super::pager::Pager;
use super::picker::Picker;
use super::style::Colours;
use crate::live::Line;
use crate::terminal::{CODE, HEADING, QUIET};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Clear, Paragraph};

/// Rows of the list of completions.
const COMPLETIONS: usize = 8;

/// How the screen looks.
pub struct Look {
    pub colours: Colours,
    /// The user's home directory, which is shown as `~`.
    pub home: Option<String>,
}

/// Draws everything. The chat was fitted into the screen before.
pub fn draw(app: &App, look: &Look, frame: &mut Frame<'_>) {
    let area = frame.area();
    let layout = app.layout();
    let width = usize::from(area.width);
    let size = Size {
        width: area.width,
        height: area.height,
    };
    let header = app.header(look.home.as_deref()).truncated(width);
    put(frame, look, layout.header, &[header]);
    match &app.focus {
        Focus::Pager(pager) => page(frame, look, layout.main, pager),
        Focus::Picker(picker) => choices(frame, look, layout.main, picker),
        _ => {
            put(frame, look, layout.history, app.history());
            if let Some(side) = layout.side {
                let rows = app.side_rows(usize::from(side.width), usize::from(side.height));
                put(frame, look, side, &rows);
            }
        }
    }
    put(frame, look, layout.notice, &app.notice_rows(width));
    put(frame, look, layout.approval, &app.approval_rows(size));
    put(frame, look, layout.plan, &app.plan_rows(size));
    put(frame, look, layout.queue, &app.queue_rows(size));
    let status: Vec<Line> = app.status(width).into_iter().collect();
    put(frame, look, layout.status, &status);
    prompt(frame, look, layout.prompt, app);
    let footer = app.footer().truncated(width);
    put(frame, look, layout.footer, &[footer]);
    if let Some(completion) = &app.completion {
        completions(frame, look, layout.prompt, completion);
    }
}

fn put(frame: &mut Frame<'_>, look: &Look, area: Rect, lines: &[Line]) {
    if area.is_empty() {
        return;
    }
    let lines = lines.iter().take(usize::from(area.height));
    let lines: Vec<_> = lines.map(|line| look.colours.line(line)).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn prompt(frame: &mut Frame<'_>, look: &Look, area: Rect, app: &App) {
    if area.is_empty() {
        return;
    }
    let sign = app.sign();
    let beside = u16::try_from(sign.len()).unwrap_or_default();
    let has_keys = matches!(app.focus, Focus::Prompt);
    if let Some(search) = &app.composer.search {
        let found = search.found.as_ref().map(|(_, prompt)| prompt.as_str());
        let found = found.and_then(|prompt| prompt.lines().next());
        let mut line = Line::painted(CODE, "search: ").and(None, &search.words);
        let cursor = u16::try_from(line.width()).unwrap_or(u16::MAX);
        line.push(Some(QUIET), &format!("  {}", found.unwrap_or_default()));
        put(
            frame,
            look,
            area,
            &[line.truncated(usize::from(area.width))],
        );
        let x = area.x + cursor.min(area.width - 1);
        return frame.set_cursor_position((x, area.y));
    }
    let paint = if has_keys { CODE } else { QUIET };
    put(frame, look, area, &[Line::painted(paint, sign)]);
    let text = Rect {
        x: area.x + beside.min(area.width),
        width: area.width.saturating_sub(beside),
        ..area
    };
    if text.is_empty() {
        return;
    }
    let composer = app.composer.area();
    frame.render_widget(composer, text);
    if has_keys {
        let cursor = composer.screen_cursor();
        let (top, left) = composer.scroll_offset();
        let offset = |at: usize, from: u16, most: u16| {
            let at = u16::try_from(at).unwrap_or(u16::MAX);
            at.saturating_sub(from).min(most - 1)
        };
        let x = text.x + offset(cursor.col, left, text.width);
        let y = text.y + offset(cursor.row, top, text.height);
        frame.set_cursor_position((x, y));
    }
}

/// The list above the prompt line.
fn completions(frame: &mut Frame<'_>, look: &Look, prompt: Rect, completion: &Completion) {
    let most = COMPLETIONS.min(usize::from(prompt.y));
    let first = (completion.selected + 1).saturating_sub(most);
    let width = usize::from(prompt.width);
    let texts = completion.items.iter().map(|item| item.text.trim_end());
    let longest = texts.map(|text| text.chars().count()).max();
    let column = longest.unwrap_or_default().min(30);
    let items = completion.items.iter().enumerate();
    let rows = items.skip(first).take(most).map(|(n, item)| {
        let (mark, paint) = match n == completion.selected {
            true => ("> ", Some(HEADING)),
            false => ("  ", None),
        };
        let text = format!("{:<column$}", item.text.trim_end());
        let line = Line::plain(mark).and(paint, text);
        let help = format!("  {}", item.help);
        line.and(Some(QUIET), help).truncated(width)
    });
    let rows: Vec<Line> = rows.collect();
    let height = u16::try_from(rows.len()).unwrap_or_default();
    let area = Rect {
        y: prompt.y - height,
        height,
        ..prompt
    };
    frame.render_widget(Clear, area);
    put(frame, look, area, &rows);
}

fn page(frame: &mut Frame<'_>, look: &Look, area: Rect, pager: &Pager) {
    let more = if pager.has_more() {
        " · PageDown: more"
    } else {
        ""
    };
    let title = Line::painted(HEADING, &pager.title);
    let answers = if pager.call.is_some() {
        " · y, n and a answer it"
    } else {
        ""
    };
    let title = title.and(Some(QUIET), format!("{answers} · Esc closes{more}"));
    let mut rows = vec![title.truncated(usize::from(area.width))];
    rows.extend(pager.shown().iter().cloned());
    put(frame, look, area, &rows);
}

fn choices(frame: &mut Frame<'_>, look: &Look, area: Rect, picker: &Picker) {
    let width = usize::from(area.width);
    let room = usize::from(area.height).saturating_sub(1);
    let title = Line::painted(HEADING, &picker.title);
    let title = title.and(Some(QUIET), " · Enter chooses · Esc closes");
    let mut rows = vec![title.truncated(width)];
    // The choices stay visible.
    let most = room.saturating_sub(picker.choices.len().min(room));
    let about = picker.about.iter().flat_map(|line| Line::of_painted(line));
    let about: Vec<Line> = about.map(|line| line.truncated(width)).collect();
    let shown = match about.len() > most {
        true => most.saturating_sub(1),
        false => about.len(),
    };
    rows.extend(about.iter().take(shown).cloned());
    if shown < about.len() && most > 0 {
        let left = format!("  … {} more: /diff shows what changed", about.len() - shown);
        rows.push(Line::painted(QUIET, left).truncated(width));
    }
    let room = (room + 1).saturating_sub(rows.len());
    let first = (picker.selected + 1).saturating_sub(room.max(1));
    for (n, choice) in picker.choices.iter().enumerate().skip(first).take(room) {
        let (mark, paint) = match n == picker.selected {
            true => ("> ", Some(HEADING)),
            false => ("  ", None),
        };
        let line = Line::plain(mark).and(paint, &choice.label);
        rows.push(line.truncated(width));
    }
    put(frame, look, area, &rows);
}
