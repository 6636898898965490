//! What a checker answers: the broken rules, each with the place in the body and the reason.

use std::fmt;

/// One broken rule of a provider's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Stable snake_case name of the rule.
    pub rule: &'static str,
    /// Where in the body, e.g. `messages[3].content[0]`; `$` is the body itself.
    pub path: String,
    /// What was found there.
    pub detail: String,
}

/// `Ok` when the provider would take the body; `Err` is never empty.
pub type Verdict = Result<(), Vec<Violation>>;

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at {}: {}", self.rule, self.path, self.detail)
    }
}

/// Collects violations, so that one check reports all of them and not just the first.
#[derive(Default)]
pub(super) struct Report {
    found: Vec<Violation>,
}

impl Report {
    pub(super) fn add(
        &mut self,
        rule: &'static str,
        path: impl Into<String>,
        detail: impl Into<String>,
    ) {
        self.found.push(Violation {
            rule,
            path: path.into(),
            detail: detail.into(),
        });
    }

    /// Adds the violation unless `fine` holds.
    pub(super) fn require(
        &mut self,
        fine: bool,
        rule: &'static str,
        path: impl Into<String>,
        detail: impl Into<String>,
    ) {
        if !fine {
            self.add(rule, path, detail);
        }
    }

    pub(super) fn verdict(self) -> Verdict {
        if self.found.is_empty() {
            Ok(())
        } else {
            Err(self.found)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_report_is_ok_and_a_filled_one_lists_everything() {
        assert_eq!(Report::default().verdict(), Ok(()));
        let mut report = Report::default();
        report.require(true, "fine", "$", "");
        report.require(false, "first", "$", "a");
        report.add("second", "messages[0]", "b");
        let found = report.verdict().expect_err("two violations");
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].to_string(), "second at messages[0]: b");
    }
}
