//! Tables that fit the terminal: the least important columns are left out, then the first column is cut.

use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Row, Table};

/// Between two columns.
const GAP: usize = 2;

/// A column's heading, and whether the column may be left out.
#[derive(Clone, Copy)]
pub enum Head {
    Kept(&'static str),
    /// The column with the lowest rank is left out first.
    Spare(&'static str, u8),
}

impl Head {
    const fn text(self) -> &'static str {
        match self {
            Self::Kept(text) | Self::Spare(text, _) => text,
        }
    }
}

/// Lines without trailing space. `width` is that of the terminal; none if the output is not a terminal.
pub fn table(head: &[Head], rows: &[Vec<String>], width: Option<u16>) -> Vec<String> {
    let shown = match width {
        Some(width) => fitting(head, rows, width.into()),
        None => (0..head.len()).collect(),
    };
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(
        shown
            .iter()
            .filter_map(|n| head.get(*n))
            .map(|it| it.text()),
    );
    match width {
        Some(width) => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(width);
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    for cells in rows {
        let mut row = Row::from(shown.iter().filter_map(|n| cells.get(*n)));
        row.max_height(1);
        table.add_row(row);
    }
    for (n, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, GAP as u16));
        if n > 0 {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let lines = table.lines();
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// The columns that fit into the width.
fn fitting(head: &[Head], rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let widest = |n: usize| {
        let cells = rows.iter().filter_map(|cells| cells.get(n));
        let heading = head.get(n).map_or(0, |it| it.text().len());
        let cells = cells.map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).max(heading) + GAP
    };
    let mut shown: Vec<usize> = (0..head.len()).collect();
    while shown.iter().map(|n| widest(*n)).sum::<usize>() > width {
        let spare = shown.iter().filter_map(|n| match head.get(*n) {
            Some(Head::Spare(_, rank)) => Some((*rank, *n)),
            _ => None,
        });
        let Some((_, least)) = spare.min() else { break };
        shown.retain(|n| *n != least);
    }
    shown
}

/// `name   value`, aligned; what has no value is left out.
pub fn pairs(pairs: &[(&str, Option<String>)]) -> Vec<String> {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = pairs.iter().filter_map(|(name, value)| {
        let value = value.as_ref()?;
        // Further lines stand under the first.
        let value = value.replace('\n', &format!("\n{:width$}  ", ""));
        Some(format!("{name:width$}  {value}"))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        vec![
            row(["coder", "idle", "3m ago"]),
            row([
                "a-very-long-name-that-no-user-will-type",
                "running",
                "1s ago",
            ]),
        ]
    }

    const HEAD: [Head; 3] = [
        Head::Kept("NAME"),
        Head::Spare("PHASE", 1),
        Head::Kept("USED"),
    ];

    #[test]
    fn columns_are_as_wide_as_they_need_to_be() {
        let expected = [
            "NAME                                     PHASE    USED",
            "coder                                    idle     3m ago",
            "a-very-long-name-that-no-user-will-type  running  1s ago",
        ];
        assert_eq!(table(&HEAD, &rows(), None), expected);
        assert_eq!(table(&HEAD, &rows(), Some(80)), expected);
    }

    #[test]
    fn the_least_important_column_goes_first_and_then_the_first_one_is_cut() {
        let lines = table(&HEAD, &rows(), Some(50));
        let expected = [
            "NAME                                     USED",
            "coder                                    3m ago",
            "a-very-long-name-that-no-user-will-type  1s ago",
        ];
        assert_eq!(lines, expected);
        let lines = table(&HEAD, &rows(), Some(30));
        let expected = [
            "NAME                  USED",
            "coder                 3m ago",
            "a-very-long-name-...  1s ago",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn pairs_are_aligned() {
        let text = |text: &str| Some(text.to_owned());
        let found = pairs(&[("a", text("1")), ("long", text("2\n3")), ("none", None)]);
        assert_eq!(found, ["a     1", "long  2\n      3"]);
    }
}
