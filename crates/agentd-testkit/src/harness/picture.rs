//! A screen with its colours, as text or as an SVG image.

use std::fmt::Write as _;
use vt100::{Cell, Color, Screen};

/// The size of a cell in an image, in pixels.
const CELL: (u32, u32) = (9, 20);
/// The margin around the cells.
const MARGIN: u32 = 16;
/// The part of a cell above the baseline.
const BASELINE: u32 = 15;
const BACKGROUND: &str = "#1c1f26";
const FOREGROUND: &str = "#d7dae0";
/// The first eight colours of a terminal, and their bright variants.
const COLOURS: [&str; 16] = [
    "#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0",
    "#5c6370", "#ff7b86", "#b5e08f", "#ffd68a", "#7cc4ff", "#de91f5", "#6fd3df", "#ffffff",
];

/// How a cell looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    colour: Color,
    is_bold: bool,
    is_dim: bool,
    is_italic: bool,
}

const PLAIN: Look = Look {
    colour: Color::Default,
    is_bold: false,
    is_dim: false,
    is_italic: false,
};

/// Neighbouring cells that look the same.
struct Run {
    column: u32,
    look: Look,
    text: String,
}

/// The rows of a screen.
pub struct Picture {
    columns: u32,
    rows: Vec<Vec<Run>>,
}

impl Picture {
    pub(super) fn of(screen: &Screen) -> Self {
        let (rows, columns) = screen.size();
        let (rows, columns) = (rows.get(), columns.get());
        let row = |row| {
            let cells = (0..columns).filter_map(|column| Some((column, screen.cell(row, column)?)));
            runs(cells)
        };
        Self {
            columns: u32::from(columns),
            rows: (0..rows).map(row).collect(),
        }
    }

    /// The same with other texts.
    #[must_use]
    pub fn with(mut self, text: impl Fn(&str) -> String) -> Self {
        for run in self.rows.iter_mut().flatten() {
            run.text = text(&run.text);
        }
        self
    }

    /// Without the rows whose text is this one, and with one empty row instead of several.
    #[must_use]
    pub fn without_rows(mut self, text: &str) -> Self {
        let words = |row: &[Run]| -> String { row.iter().map(|run| run.text.as_str()).collect() };
        self.rows.retain(|row| words(row).trim() != text);
        self.rows
            .dedup_by(|row, before| words(row).is_empty() && words(before).is_empty());
        self
    }

    /// The rows as text, with each change of colour or style in brackets.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for run in row {
                if run.look != PLAIN {
                    write!(line, "⟨{}⟩", words(run.look)).unwrap_or_default();
                }
                line.push_str(&run.text);
                if run.look != PLAIN {
                    line.push_str("⟨⟩");
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.trim_end().to_owned() + "\n"
    }

    /// The screen as an image.
    pub fn svg(&self) -> String {
        let (wide, high) = CELL;
        let rows = u32::try_from(self.rows.len()).unwrap_or_default();
        let width = self.columns * wide + 2 * MARGIN;
        let height = rows * high + 2 * MARGIN;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" \
             font-size=\"15\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
        );
        for (row, y) in self
            .rows
            .iter()
            .zip((MARGIN + BASELINE..).step_by(high as usize))
        {
            for run in row.iter().filter(|run| !run.text.trim().is_empty()) {
                let x = MARGIN + run.column * wide;
                let length = run.text.chars().count() * wide as usize;
                let text = escaped(&run.text);
                let style = style(run.look);
                writeln!(
                    svg,
                    "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" xml:space=\"preserve\"{style}>{text}</text>"
                )
                .unwrap_or_default();
            }
        }
        svg + "</svg>\n"
    }
}

fn runs<'a>(cells: impl Iterator<Item = (u16, &'a Cell)>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (column, cell) in cells.filter(|(_, cell)| !cell.is_wide_continuation()) {
        let text = match cell.has_contents() {
            true => cell.contents(),
            false => " ",
        };
        let look = Look {
            colour: cell.fgcolor(),
            is_bold: cell.bold(),
            is_dim: cell.dim(),
            is_italic: cell.italic(),
        };
        match runs.last_mut() {
            Some(last) if last.look == look => last.text.push_str(text),
            _ => runs.push(Run {
                column: u32::from(column),
                look,
                text: text.to_owned(),
            }),
        }
    }
    if let Some(last) = runs.last_mut() {
        last.text.truncate(last.text.trim_end().len());
    }
    runs
}

fn words(look: Look) -> String {
    let colour = match look.colour {
        Color::Default => None,
        Color::Idx(index) => Some(index.to_string()),
        Color::Rgb(r, g, b) => Some(format!("#{r:02x}{g:02x}{b:02x}")),
    };
    let styles = [
        (look.is_bold, "bold"),
        (look.is_dim, "dim"),
        (look.is_italic, "italic"),
    ];
    let styles = styles.into_iter().filter(|(is_so, _)| *is_so);
    let styles = styles.map(|(_, word)| word.to_owned());
    let words: Vec<String> = colour.into_iter().chain(styles).collect();
    words.join(" ")
}

fn style(look: Look) -> String {
    let fill = match look.colour {
        Color::Default => FOREGROUND.to_owned(),
        Color::Idx(index) => {
            let known = COLOURS.get(usize::from(index));
            known.copied().unwrap_or(FOREGROUND).to_owned()
        }
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
    };
    let mut style = format!(" fill=\"{fill}\"");
    if look.is_bold {
        style.push_str(" font-weight=\"bold\"");
    }
    if look.is_dim {
        style.push_str(" opacity=\"0.6\"");
    }
    if look.is_italic {
        style.push_str(" font-style=\"italic\"");
    }
    style
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
