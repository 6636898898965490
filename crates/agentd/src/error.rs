//! Errors as the user sees them: what failed, why, what to do next, and the exit code.

use crate::terminal::{BAD, HEADING};
use agentd_client::{Kind, Problem};
use agentd_core::id::PromptId;
use serde::Serialize;
use std::fmt::{self, Display};
use std::io;

/// The daemon sets this for every hook that it runs.
const IN_HOOK: &str = "AGENTD_HOOK_EVENT";
/// The exit code of usage errors inside a hook, where 2 would block the event.
const USAGE_IN_HOOK: u8 = 64;

/// The exit codes; docs/cli.md has the table for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// No error to report: a closed pipe, a runtime that was replaced.
    Quiet = 0,
    /// The turn failed or was lost, or a check found damage.
    Failed = 1,
    /// The command line, the prompt, a file or a setting is wrong.
    Usage = 2,
    /// Refused, or in conflict with the current state.
    Refused = 3,
    Unavailable = 4,
    /// The turn reached a limit.
    Limited = 5,
    /// The prompt is durable and continues after the user acts: an approval, a key, `agentd start`.
    Waiting = 6,
    NotFound = 7,
    TimedOut = 124,
    Interrupted = 130,
}

/// The format of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

impl Exit {
    const fn kind(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Limited => "limited",
            Self::Waiting => "waiting",
            Self::NotFound => "not_found",
            Self::TimedOut => "timed_out",
            Self::Interrupted => "interrupted",
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::Usage => usage_code(),
            other => other as u8,
        }
    }
}

/// The exit code of a usage error.
pub fn usage_code() -> u8 {
    match std::env::var_os(IN_HOOK) {
        Some(_) => USAGE_IN_HOOK,
        None => Exit::Usage as u8,
    }
}

#[derive(Debug)]
pub struct Error {
    exit: Exit,
    what: String,
    why: Option<String>,
    next: Option<String>,
    /// The prompt that was accepted before the error. The user can wait for it again.
    prompt: Option<PromptId>,
    /// `--json` has already printed its object (an answer, an agent, a report): the error must not print a second one.
    is_printed: bool,
}

/// An error as `--json` prints it.
#[derive(Debug, Serialize)]
pub struct Failure<'a> {
    /// What failed.
    pub error: &'a str,
    /// One word for each exit code.
    pub kind: &'static str,
    pub exit: u8,
    pub why: Option<&'a str>,
    pub next: Option<&'a str>,
    pub prompt: Option<PromptId>,
}

impl Error {
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            what: what.into(),
            why: None,
            next: None,
            prompt: None,
            is_printed: false,
        }
    }

    /// Names the prompt that this error is about. It is durable, and the user can wait for it.
    pub const fn about_prompt(mut self, prompt: PromptId) -> Self {
        self.prompt = Some(prompt);
        self
    }

    /// Marks that `--json` has already printed its object.
    pub const fn printed(mut self) -> Self {
        self.is_printed = true;
        self
    }

    /// What to do next.
    pub fn advice(&self) -> Option<&str> {
        self.next.as_deref()
    }

    pub fn because(mut self, why: impl Display) -> Self {
        self.why = Some(why.to_string());
        self
    }

    /// A larger action failed because of this error. The exit code stays.
    pub fn about(self, what: impl Into<String>) -> Self {
        let why = match self.why {
            Some(why) => format!("{}: {why}", self.what),
            None => self.what,
        };
        Self {
            what: what.into(),
            why: Some(why),
            ..self
        }
    }

    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// Whether a check found something wrong, rather than a resource being unavailable.
    pub fn is_failure(&self) -> bool {
        self.exit == Exit::Failed
    }

    #[cfg(test)]
    pub const fn exit(&self) -> Exit {
        self.exit
    }

    /// Whether there was no answer, so that it is not known whether a change was made.
    pub fn is_unavailable(&self) -> bool {
        self.exit == Exit::Unavailable
    }

    /// `what` failed because of the store, whose error says why and what to do.
    pub fn of_store(what: impl Into<String>, error: &agentd_store::Error) -> Self {
        use agentd_store::Error as Store;
        let exit = match error {
            Store::Damaged { .. } | Store::BadExport(_) | Store::BadBackup(_) => Exit::Failed,
            Store::NoSuchAgent { .. } | Store::NoSuchConversation { .. } => Exit::NotFound,
            Store::NotCommitted(_)
            | Store::Uncertain(_)
            | Store::Unavailable(_)
            | Store::NotScrubbed(_)
            | Store::NewerSchema { .. }
            | Store::Behind { .. }
            | Store::NoJournal { .. }
            | Store::RepairUnfinished
            | Store::RepairIo(_)
            | Store::ExportIo(_)
            | Store::BackupIo(_)
            | Store::NoRandomness(_)
            | Store::NoThread(_)
            | Store::Closed => Exit::Unavailable,
            _ => Exit::Refused,
        };
        Self::new(exit, what).because(error)
    }

    /// A file or directory that the user named. A wrong path or content is a usage error.
    pub fn of_file(what: impl Into<String>, error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        let exit = match error.kind() {
            Kind::NotFound
            | Kind::NotADirectory
            | Kind::IsADirectory
            | Kind::InvalidFilename
            | Kind::InvalidData => Exit::Usage,
            _ => Exit::Unavailable,
        };
        Self::new(exit, what).because(error)
    }

    /// Output that cannot be written. A closed pipe is not an error.
    pub fn of_output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Quiet, "the output was closed");
        }
        Self::new(Exit::Unavailable, "the output cannot be written").because(error)
    }

    /// The daemon is unavailable after it accepted the prompt, which is answered when a daemon runs again.
    pub fn of_prompt(self, name: &str, prompt: PromptId) -> Self {
        if self.exit != Exit::Unavailable {
            return self;
        }
        self.about_prompt(prompt).next(format!(
            "the prompt is accepted; `agentd wait {name} {prompt}` starts a daemon and waits for the answer"
        ))
    }

    /// The same error as a problem of the API.
    pub fn into_problem(self, kind: Kind) -> Problem {
        let mut problem = Problem::new(kind, self.what);
        problem.detail = self.why;
        problem.next = self.next;
        problem
    }

    pub fn no_runtime(error: io::Error) -> Self {
        Self::new(Exit::Unavailable, "agentd cannot start")
            .because(error)
            .next("check the limits on open files and processes")
    }

    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted")
    }

    /// Whether the user gets a message. A plain Ctrl-C needs none: the user pressed it.
    pub fn has_message(&self) -> bool {
        let is_plain = self.exit == Exit::Interrupted && self.why.is_none() && self.next.is_none();
        self.exit != Exit::Quiet && !is_plain
    }

    /// Whether `--json` prints it: it has not printed its object yet.
    pub fn has_object(&self) -> bool {
        self.exit != Exit::Quiet && !self.is_printed
    }

    /// The exit code of the process.
    pub fn code(&self) -> u8 {
        self.exit.code()
    }

    pub fn failure(&self) -> Failure<'_> {
        Failure {
            error: &self.what,
            kind: self.exit.kind(),
            exit: self.exit.code(),
            why: self.why.as_deref(),
            next: self.next.as_deref(),
            prompt: self.prompt,
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let exit = match problem.kind {
            Kind::Invalid | Kind::Ambiguous => Exit::Usage,
            Kind::NotFound => Exit::NotFound,
            Kind::Waiting => Exit::Waiting,
            Kind::Conflict | Kind::Refused | Kind::TooLarge | Kind::QueueFull => Exit::Refused,
            Kind::Unavailable | Kind::Internal => Exit::Unavailable,
        };
        Self {
            exit,
            what: problem.title,
            why: problem.detail,
            next: problem.next,
            prompt: None,
            is_printed: false,
        }
    }
}

impl From<agentd_client::Error> for Error {
    fn from(error: agentd_client::Error) -> Self {
        use agentd_client::Error as Client;
        let unavailable = |what: String| Self::new(Exit::Unavailable, what);
        match error {
            Client::Problem(problem) => (*problem).into(),
            Client::NotRunning { ref source, .. } => unavailable(error.to_string())
                .because(source)
                .next("start one with `agentd daemon start`"),
            Client::Stranger { uid, .. } => Self::new(Exit::Refused, error.to_string())
                .because(format_args!(
                    "user {uid} would receive your keys and prompts"
                ))
                .next("set AGENTD_HOME to a directory of your own"),
            Client::Broken(why) => unavailable("the connection to the daemon broke".to_owned())
                .because(why)
                .next("accepted prompts and changes are not lost: check with `agentd status`"),
            Client::Strange(why) => unavailable("the daemon's answer cannot be read".to_owned())
                .because(why)
                .next(
                    "it may have another version: `agentd daemon stop`, then try again; agents \
                     keep their state",
                ),
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (style, label) = match self.exit {
            Exit::Waiting => (HEADING, "waiting"),
            _ => (BAD, "error"),
        };
        write!(f, "{style}{label}:{style:#} {}", self.what)?;
        if let Some(why) = &self.why {
            write!(f, "\n  why:  {why}")?;
        }
        if let Some(next) = &self.next {
            write!(f, "\n  next: {next}")?;
        }
        Ok(())
    }
}
