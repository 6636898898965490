//! What an import left out, and why.

use serde::Serialize;
use std::collections::BTreeMap;

/// How many record numbers of each reason are kept.
const EXAMPLES: usize = 5;

/// Why something of a history is not in the journal, or differs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Left {
    BadLine,
    TooLong,
    Unknown,
    Bookkeeping,
    ProgramContext,
    LocalCommand,
    Subagent,
    OtherBranch,
    Reverted,
    Error,
    ResultWithoutCall,
    CallWithoutResult,
    SealedThinking,
    ProviderTool,
    Image,
    File,
    Cut,
}

impl Left {
    /// What there are several of.
    pub const fn text(self) -> &'static str {
        self.one_and_several().1
    }

    /// For example "3 attached files".
    pub fn counted(self, count: u64) -> String {
        let (one, several) = self.one_and_several();
        match count {
            1 => format!("1 {one}"),
            count => format!("{count} {several}"),
        }
    }

    const fn one_and_several(self) -> (&'static str, &'static str) {
        match self {
            Self::BadLine => (
                "record that is not a JSON object: truncated or damaged",
                "records that are not JSON objects: truncated or damaged",
            ),
            Self::TooLong => (
                "record that is longer than any message may be",
                "records that are longer than any message may be",
            ),
            Self::Unknown => (
                "record or part of an unknown kind",
                "records or parts of an unknown kind",
            ),
            Self::Bookkeeping => (
                "record of the program's own bookkeeping",
                "records of the program's own bookkeeping",
            ),
            Self::ProgramContext => (
                "message that the program added for its model",
                "messages that the program added for its model",
            ),
            Self::LocalCommand => (
                "command of the program's own interface",
                "commands of the program's own interface",
            ),
            Self::Subagent => ("message of a subagent", "messages of subagents"),
            Self::OtherBranch => (
                "message of a branch that was abandoned",
                "messages of branches that were abandoned",
            ),
            Self::Reverted => ("message that was reverted", "messages that were reverted"),
            Self::Error => (
                "error that the program recorded as a reply",
                "errors that the program recorded as replies",
            ),
            Self::ResultWithoutCall => ("result without its call", "results without their call"),
            Self::CallWithoutResult => (
                "call without a result; the model is told that its outcome is unknown",
                "calls without a result; the model is told that their outcome is unknown",
            ),
            Self::SealedThinking => (
                "encrypted thought without readable text",
                "encrypted thoughts without readable text",
            ),
            Self::ProviderTool => (
                "call of a tool that the provider ran itself",
                "calls of tools that the provider ran itself",
            ),
            Self::Image => (
                "image that is too large, or not in the file",
                "images that are too large, or not in the file",
            ),
            Self::File => ("attached file", "attached files"),
            Self::Cut => (
                "text or message that is too long and was cut",
                "texts or messages that are too long and were cut",
            ),
        }
    }

    /// Whether a user misses nothing without it.
    pub const fn is_routine(self) -> bool {
        matches!(
            self,
            Self::Bookkeeping | Self::ProgramContext | Self::LocalCommand
        )
    }
}

/// One reason, and how often it applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    pub reason: Left,
    pub count: u64,
    /// The first records that it concerns, counted from 1: lines of the file, or messages of the database.
    pub records: Vec<u64>,
}

/// What became of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub prompts: u64,
    pub replies: u64,
    pub calls: u64,
    pub events: u64,
    /// How often the window was cut because the model could not see all of it.
    pub cuts: u64,
    skipped: BTreeMap<Left, (u64, Vec<u64>)>,
}

impl Report {
    pub(super) fn skip(&mut self, reason: Left, record: u64) {
        let (count, records) = self.skipped.entry(reason).or_default();
        *count += 1;
        if records.len() < EXAMPLES && records.last() != Some(&record) {
            records.push(record);
        }
    }

    pub fn skipped(&self) -> impl Iterator<Item = Skipped> {
        self.skipped
            .iter()
            .map(|(reason, (count, records))| Skipped {
                reason: *reason,
                count: *count,
                records: records.clone(),
            })
    }

    pub fn count(&self, reason: Left) -> u64 {
        self.skipped.get(&reason).map_or(0, |(count, _)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        let error = "1 error that the program recorded as a reply";
        assert_eq!(Left::Error.counted(1), error);
        let errors = "2 errors that the program recorded as replies";
        assert_eq!(Left::Error.counted(2), errors);
        assert_eq!(Left::File.counted(0), "0 attached files");
    }
}
