//! The kinds of turns that are measured: what the prompt asks for, and what the floor does instead.

use std::path::Path;

use super::bare::{Step, Turn};
use crate::words::Words;

/// A file of the agent's directory, for its tools.
pub const FILE: &str = "notes.txt";
pub const FILE_BYTES: usize = 4096;
const COMMAND: &str = "echo done";

/// The length of an answer, and the number of pieces in which it is streamed.
const ANSWER_BYTES: usize = 800;
const DELTAS: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    ReadFile,
    Shell,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Plain, Self::ReadFile, Self::Shell];

    pub const fn what(self) -> &'static str {
        match self {
            Self::Plain => "plain turn",
            Self::ReadFile => "turn with read_file",
            Self::Shell => "turn with shell",
        }
    }

    /// Requests that a turn takes.
    pub const fn requests(self) -> usize {
        match self {
            Self::Plain => 1,
            Self::ReadFile | Self::Shell => 2,
        }
    }

    /// The most that a turn should take, as a multiple of the bare client's time with as many syncs.
    pub const fn aim(self) -> f64 {
        match self {
            Self::Plain => 1.8,
            Self::ReadFile | Self::Shell => 2.0,
        }
    }

    /// A prompt that the fake model server executes as a script.
    pub fn prompt(self, words: &mut Words) -> String {
        let answer = words.text(ANSWER_BYTES);
        let answer = format!("deltas {DELTAS} | say {answer}");
        match self {
            Self::Plain => format!("do: {answer}"),
            Self::ReadFile => format!(r#"do: call read_file {{"file_path":"{FILE}"}} ;; {answer}"#),
            Self::Shell => format!(r#"do: call shell {{"command":"{COMMAND}"}} ;; {answer}"#),
        }
    }

    /// The same requests for the bare client, with the same work in between.
    pub fn bare(self, bodies: &[String], cwd: &Path) -> Turn {
        let work = match self {
            Self::Plain => None,
            Self::ReadFile => Some(Step::Read(cwd.join(FILE))),
            Self::Shell => Some(Step::Shell(COMMAND.to_owned())),
        };
        let mut steps: Turn = bodies.iter().cloned().map(Step::Ask).collect();
        if let Some(work) = work {
            steps.insert(1.min(steps.len()), work);
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_testkit::model::script::{self, Item};

    #[test]
    fn the_server_understands_the_prompts() {
        for kind in Kind::ALL {
            let prompt = kind.prompt(&mut Words::new(1));
            let replies = script::parse(&prompt).unwrap().unwrap();
            assert_eq!(replies.len(), kind.requests(), "{prompt}");
            let (last, before) = replies.split_last().unwrap();
            assert!(matches!(
                &last.items[..],
                [Item::Text { deltas: DELTAS, .. }]
            ));
            let is_call = |item: &Item| matches!(item, Item::Call { .. });
            assert!(before.iter().all(|step| step.items.iter().all(is_call)));
        }
    }

    #[test]
    fn the_work_is_done_between_the_requests() {
        let bodies = ["a".to_owned(), "b".to_owned()];
        let turn = Kind::Shell.bare(&bodies, Path::new("/x"));
        assert!(
            matches!(&turn[..], [Step::Ask(a), Step::Shell(_), Step::Ask(b)] if a == "a" && b == "b")
        );
        let turn = Kind::Plain.bare(&bodies[..1], Path::new("/x"));
        assert!(matches!(&turn[..], [Step::Ask(_)]));
    }
}
