//! Rows and columns that fit the terminal: a cell that does not is cut, not wrapped.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Row, Table};

/// Lines without trailing space. `width` is the terminal's; none where nobody looks.
pub fn table(head: &[&str], rows: Vec<Vec<String>>, width: Option<u16>) -> Vec<String> {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(head.to_vec());
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
        let mut row = Row::from(cells);
        row.max_height(1);
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        column.set_cell_alignment(CellAlignment::Left);
    }
    let lines = table.lines();
    lines.map(|line| line.trim_end().to_owned()).collect()
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
                "a-very-long-name-that-nobody-would-type",
                "running",
                "1s ago",
            ]),
        ]
    }

    #[test]
    fn columns_are_as_wide_as_they_need_to_be() {
        let expected = [
            "NAME                                     PHASE    UPDATED",
            "coder                                    idle     3m ago",
            "a-very-long-name-that-nobody-would-type  running  1s ago",
        ];
        assert_eq!(table(&["NAME", "PHASE", "UPDATED"], rows(), None), expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let lines = table(&["NAME", "PHASE", "UPDATED"], rows(), Some(40));
        assert_eq!(lines.len(), 3, "{lines:#?}");
        for line in &lines {
            assert!(line.chars().count() <= 40, "{lines:#?}");
        }
        assert!(lines[2].starts_with("a-very-long"), "{lines:#?}");
        assert!(lines[2].ends_with("1s ago"), "{lines:#?}");
    }

    #[test]
    fn pairs_are_aligned() {
        let text = |text: &str| Some(text.to_owned());
        let found = pairs(&[("a", text("1")), ("long", text("2\n3")), ("none", None)]);
        assert_eq!(found, ["a     1", "long  2\n      3"]);
    }
}
