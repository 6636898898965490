//! An error as the user sees it: what happened, why, what to do next; and the exit code.

use agentd_client::{Kind, Problem};
use std::fmt::{self, Display};
use std::io::{self, Write as _};
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Nothing that anybody needs to hear of.
    Quiet = 0,
    Failed = 1,
    Usage = 2,
    Refused = 3,
    Unavailable = 4,
    Limited = 5,
    TimedOut = 124,
    Interrupted = 130,
}

#[derive(Debug)]
pub struct Error {
    exit: Exit,
    what: String,
    why: Option<String>,
    next: Option<String>,
}

impl Error {
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            what: what.into(),
            why: None,
            next: None,
        }
    }

    pub fn because(mut self, why: impl Display) -> Self {
        self.why = Some(why.to_string());
        self
    }

    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// Something turned out to be wrong, rather than out of reach.
    pub fn is_failure(&self) -> bool {
        self.exit == Exit::Failed
    }

    #[cfg(test)]
    pub const fn exit(&self) -> Exit {
        self.exit
    }

    /// `what` did not work because of the store, whose own words say why and what to do.
    pub fn of_store(what: impl Into<String>, error: &agentd_store::Error) -> Self {
        use agentd_store::Error as Store;
        let exit = match error {
            Store::Damaged { .. } | Store::BadExport(_) => Exit::Failed,
            Store::NotCommitted(_)
            | Store::Uncertain(_)
            | Store::Unavailable(_)
            | Store::NotScrubbed(_)
            | Store::NewerSchema { .. }
            | Store::ExportIo(_)
            | Store::NoRandomness(_)
            | Store::NoThread(_)
            | Store::Closed => Exit::Unavailable,
            _ => Exit::Refused,
        };
        Self::new(exit, what).because(error)
    }

    /// Output that cannot be written. A reader that has had enough is no error.
    pub fn of_output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Quiet, "nobody reads the output any more");
        }
        Self::new(Exit::Unavailable, "the output cannot be written").because(error)
    }

    pub fn no_runtime(error: io::Error) -> Self {
        Self::new(Exit::Unavailable, "agentd cannot start")
            .because(error)
            .next("check the limits on open files and processes")
    }

    pub fn interrupted() -> Self {
        Self::new(Exit::Interrupted, "interrupted")
    }

    /// Whoever pressed Ctrl-C knows that it was pressed.
    fn needs_no_words(&self) -> bool {
        self.exit == Exit::Interrupted && self.why.is_none() && self.next.is_none()
    }

    /// Tells the user, and gives the exit code.
    pub fn report(&self) -> ExitCode {
        if self.exit != Exit::Quiet && !self.needs_no_words() {
            // There is nobody left to tell where this cannot be written.
            let _unheard = writeln!(anstream::stderr(), "{self}");
        }
        ExitCode::from(self.exit as u8)
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let exit = match problem.kind {
            Kind::Invalid => Exit::Usage,
            Kind::NotFound | Kind::Conflict | Kind::Refused | Kind::TooLarge => Exit::Refused,
            Kind::Unavailable | Kind::Internal => Exit::Unavailable,
        };
        Self {
            exit,
            what: problem.title,
            why: problem.detail,
            next: problem.next,
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
            Client::Broken(why) => unavailable("the connection to the daemon broke".to_owned())
                .because(why)
                .next("nothing that was accepted is lost: look with `agentd status`"),
            Client::Strange(why) => unavailable("the daemon's answer cannot be read".to_owned())
                .because(why)
                .next(
                    "it may be of another version: `agentd daemon stop`, and try again; agents \
                     keep what they have",
                ),
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let red = crate::output::BAD;
        write!(f, "{red}error:{red:#} {}", self.what)?;
        if let Some(why) = &self.why {
            write!(f, "\n  why:  {why}")?;
        }
        if let Some(next) = &self.next {
            write!(f, "\n  next: {next}")?;
        }
        Ok(())
    }
}
