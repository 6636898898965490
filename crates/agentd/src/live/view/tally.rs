//! What a turn has used so far.

use crate::live::line::Line;
use crate::render::{count, time, usage};
use crate::terminal::QUIET;
use agentd_client::api;
use agentd_core::event::{FileKept, KeptBy, RequestEnded, RequestOutcome, Scan, ToolEnded};
use agentd_core::id::{CallId, TurnId};
use agentd_core::time::Timestamp;
use agentd_core::usage::Spent;
use std::collections::BTreeSet;

/// What commands of a turn changed. It is found after the turn has ended.
pub(super) fn of_commands(found: &Scan) -> Vec<Line> {
    let said = match found {
        Scan::Known { files, more } => match files.len() as u64 + more {
            0 => return Vec::new(),
            changed => format!("{} changed by commands", count(changed, "file")),
        },
        Scan::Unknown { .. } => "changes by commands are not known".to_owned(),
    };
    vec![Line::painted(QUIET, said)]
}

pub(super) struct Tally {
    pub(super) id: TurnId,
    pub(super) since: Timestamp,
    spent: Spent,
    /// The tokens of the last request and its reply: what the next request begins with.
    context: Option<u64>,
    /// The files that its tools changed, and the calls.
    files: BTreeSet<(Option<CallId>, String)>,
}

impl Tally {
    pub(super) fn new(id: TurnId, since: Timestamp) -> Self {
        Self {
            id,
            since,
            spent: Spent::default(),
            context: None,
            files: BTreeSet::new(),
        }
    }

    /// A tool is about to change this file.
    pub(super) fn kept(&mut self, kept: &FileKept) {
        let call = match &kept.by {
            KeptBy::Call { call } => Some(call.clone()),
            KeptBy::Restore { .. } => None,
        };
        self.files.insert((call, kept.path.clone()));
    }

    /// A call that failed has not changed its files: the sandbox denied it, for example.
    pub(super) fn tool_ended(&mut self, ended: &ToolEnded) {
        if ended.has_failed_early() {
            let is_other = |call: &Option<CallId>| call.as_ref() != Some(&ended.call);
            self.files.retain(|(call, _)| is_other(call));
        }
    }

    pub(super) fn add(&mut self, ended: &RequestEnded, compacts: bool) {
        self.spent.add(ended.usage, ended.cost);
        if ended.outcome == RequestOutcome::Completed && !compacts {
            self.context = Some(ended.usage.total());
        }
    }

    pub(super) const fn has_requests(&self) -> bool {
        self.spent.requests > 0
    }

    /// `14 s · 12.3k tokens in, 67 out, $0.0123 · context 31% of 200.0k`; none if no request was made.
    pub(super) fn summary(&self, now: Timestamp, window: Option<u64>) -> Option<Line> {
        if self.spent.requests == 0 {
            return None;
        }
        let used = api::Usage {
            input_tokens: self.spent.usage.prompt_tokens(),
            output_tokens: self.spent.usage.output_tokens,
            cost_usd: (self.spent.unpriced == 0).then(|| self.spent.cost.0 as f64 / 1e6),
        };
        let (input, output) = (
            usage::tokens(used.input_tokens),
            usage::tokens(used.output_tokens),
        );
        let cost = match used.cost_usd {
            Some(_) => usage::cost(&used),
            None => "cost unknown".to_owned(),
        };
        let mut parts = vec![
            time::took(now.since(self.since)),
            format!("{input} tokens in, {output} out, {cost}"),
        ];
        let files: BTreeSet<&str> = self.files.iter().map(|(_, path)| path.as_str()).collect();
        if !files.is_empty() {
            let files = count(files.len() as u64, "file");
            parts.push(format!("{files} changed"));
        }
        parts.extend(self.context.map(|context| match window {
            Some(window) if window > 0 => {
                let percent = context.saturating_mul(100) / window;
                format!("context {percent}% of {}", usage::tokens(window))
            }
            _ => format!("context {} tokens", usage::tokens(context)),
        }));
        Some(Line::painted(QUIET, parts.join(" · ")))
    }
}

#[cfg(test)]
mod tests {
    use super::of_commands;
    use agentd_core::event::{Scan, ScanProblem};

    #[test]
    fn what_commands_changed_is_counted_or_said_to_be_unknown() {
        let said = |found: &Scan| {
            let lines = of_commands(found).into_iter();
            let texts = lines.map(|line| {
                let spans = line.spans().iter();
                spans.map(|span| span.text.as_str()).collect::<String>()
            });
            texts.collect::<Vec<_>>()
        };
        let known = |more| Scan::Known {
            files: Vec::new(),
            more,
        };
        assert_eq!(said(&known(0)), [""; 0]);
        assert_eq!(said(&known(2)), ["2 files changed by commands"]);
        let why = ScanProblem::NoGit;
        let unknown = said(&Scan::Unknown { why });
        assert_eq!(unknown, ["changes by commands are not known"]);
    }
}
