//! The kinds of turns that are measured: what the prompt asks for, and what the floor does instead.

use std::path::Path;

use super::bare::{Step, Turn};
use crate::words::Words;

/// A file of the agent's directory, for its tools.
pub const FILE: &str = "notes.txt";
pub const FILE_BYTES: usize = 4096;
const COMMAND: &str = "echo done";
/// Large enough that it is stored as a blob.
const WRITTEN_BYTES: usize = 16 * 1024;
/// Long enough that no name comes twice.
const NAME_BYTES: usize = 60;

/// The length of an answer, and the number of pieces in which it is streamed.
const ANSWER_BYTES: usize = 800;
const DELTAS: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    ReadFile,
    Shell,
    /// Writes two new files.
    NewFiles,
    /// Writes a new file and then replaces its content, which is kept.
    Replace,
}

impl Kind {
    pub const ALL: [Self; 5] = [
        Self::Plain,
        Self::ReadFile,
        Self::Shell,
        Self::NewFiles,
        Self::Replace,
    ];

    pub const fn what(self) -> &'static str {
        match self {
            Self::Plain => "plain turn",
            Self::ReadFile => "turn with read_file",
            Self::Shell => "turn with shell",
            Self::NewFiles => "turn with two new files",
            Self::Replace => "turn with a replaced file",
        }
    }

    /// Requests that a turn takes.
    pub const fn requests(self) -> usize {
        match self {
            Self::Plain => 1,
            Self::ReadFile | Self::Shell => 2,
            Self::NewFiles | Self::Replace => 3,
        }
    }

    /// The most that a turn should take, as a multiple of the bare client's time with as many syncs.
    pub const fn aim(self) -> f64 {
        match self {
            Self::Plain => 1.8,
            Self::ReadFile | Self::Shell | Self::NewFiles | Self::Replace => 2.0,
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
            Self::NewFiles | Self::Replace => {
                let first = words.text(NAME_BYTES).replace(' ', "-");
                let second = match self {
                    Self::Replace => first.clone(),
                    _ => words.text(NAME_BYTES).replace(' ', "-"),
                };
                let mut write = |name: &str| {
                    let content = words.text(WRITTEN_BYTES);
                    format!(r#"call write_file {{"file_path":"{name}","content":"{content}"}}"#)
                };
                format!("do: {} ;; {} ;; {answer}", write(&first), write(&second))
            }
        }
    }

    /// The same requests for the bare client, with the same work in between.
    pub fn bare(self, bodies: &[String], cwd: &Path) -> Turn {
        let work = match self {
            Self::Plain => None,
            Self::ReadFile => Some(Step::Read(cwd.join(FILE))),
            Self::Shell => Some(Step::Shell(COMMAND.to_owned())),
            Self::NewFiles | Self::Replace => Some(Step::Write {
                path: cwd.join("bare"),
                bytes: WRITTEN_BYTES,
            }),
        };
        let mut steps = Turn::new();
        for body in bodies {
            if !steps.is_empty() {
                steps.extend(work.clone());
            }
            steps.push(Step::Ask(body.clone()));
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
