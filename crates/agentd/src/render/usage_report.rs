//! What agents have spent, as a table.

use super::table::{Head, table};
use super::{named, usage};
use agentd_client::api::{UsageBy, UsageReport, UsageRow};

pub fn lines(report: &UsageReport, width: Option<u16>) -> Vec<String> {
    let mut head = match report.by {
        UsageBy::Agent => vec![Head::Kept("AGENT")],
        UsageBy::Model => vec![Head::Kept("MODEL")],
        UsageBy::Day => vec![Head::Kept("DAY")],
        UsageBy::Conversation => vec![Head::Kept("AGENT"), Head::Kept("CONVERSATION")],
    };
    head.extend([
        Head::Spare("REQUESTS", 0),
        Head::Spare("INPUT", 1),
        Head::Spare("OUTPUT", 2),
        Head::Kept("COST"),
    ]);
    let names = head.len() - 4;
    let mut rows: Vec<_> = report
        .rows
        .iter()
        .map(|row| cells(report.by, row))
        .collect();
    let mut total = vec!["total".to_owned()];
    total.resize(names, String::new());
    total.extend(sums(&report.total));
    rows.push(total);
    table(&head, &rows, width)
}

fn cells(by: UsageBy, row: &UsageRow) -> Vec<String> {
    let agent = || row.agent.as_ref().map(named).unwrap_or_default();
    let mut cells = match by {
        UsageBy::Agent => vec![agent()],
        UsageBy::Model => {
            let model = row.model.clone();
            vec![model.unwrap_or_else(|| "(unknown)".to_owned())]
        }
        UsageBy::Day => vec![row.day.clone().unwrap_or_default()],
        UsageBy::Conversation => {
            let number = row.ordinal.map(|n| n.to_string());
            let id = || row.conversation.map(|id| id.to_string());
            vec![agent(), number.or_else(id).unwrap_or_default()]
        }
    };
    cells.extend(sums(row));
    cells
}

fn sums(row: &UsageRow) -> [String; 4] {
    [
        row.requests.to_string(),
        usage::tokens(row.usage.input_tokens),
        usage::tokens(row.usage.output_tokens),
        usage::known_cost(row.priced_usd, row.unpriced),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::api::Usage;

    fn row(model: Option<&str>, requests: u64, unpriced: u64) -> UsageRow {
        UsageRow {
            model: model.map(str::to_owned),
            requests,
            unpriced,
            usage: Usage {
                input_tokens: 12_345,
                output_tokens: 67,
                cost_usd: None,
            },
            priced_usd: 1.5,
            ..UsageRow::default()
        }
    }

    #[test]
    fn a_table_ends_with_the_total() {
        let report = UsageReport {
            by: UsageBy::Model,
            rows: vec![row(Some("large"), 2, 0), row(None, 1, 1)],
            total: row(None, 3, 1),
        };
        let expected = [
            "MODEL      REQUESTS  INPUT  OUTPUT  COST",
            "large      2         12.3k  67      $1.50",
            "(unknown)  1         12.3k  67      $1.50 + ?",
            "total      3         12.3k  67      $1.50 + ?",
        ];
        assert_eq!(lines(&report, None), expected);
        let narrow = lines(&report, Some(30));
        assert_eq!(narrow[0], "MODEL      OUTPUT  COST", "{narrow:#?}");
    }
}
