//! Why a backup cannot be made, read or restored. Each error names the file, and says what to do next.

use crate::error::{self, Kind};
use agentd_core::id::{AgentId, ConversationId};
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} cannot be used: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a backup of agentd", .file.display())]
    NotABackup { file: PathBuf },
    #[error("{} was made by a newer agentd (format {format})", .file.display())]
    Newer { file: PathBuf, format: u32 },
    #[error("the backup {} is damaged: {what}", .file.display())]
    Damaged { file: PathBuf, what: String },
    #[error(
        "the incremental backup {} needs {parent} (digest {digest}), which is not in its directory", .file.display()
    )]
    ParentMissing {
        file: PathBuf,
        parent: String,
        digest: String,
    },
    #[error("the journal in {} does not pass the check: {what}", .file.display())]
    JournalDamaged { file: PathBuf, what: String },
    #[error("{} already exists", .file.display())]
    Exists { file: PathBuf },
    #[error("{} exists and is not a backup of agentd", .file.display())]
    NotReplaced { file: PathBuf },
    /// The name of a backup belongs to something that is never replaced.
    #[error("{} is {what}", .path.display())]
    NotAFile { path: PathBuf, what: &'static str },
    #[error("another backup of this home is being made")]
    Busy,
    #[error("the backup was cancelled")]
    Cancelled,
    #[error("{} is not empty", .home.display())]
    HomeNotEmpty { home: PathBuf },
    #[error("{} is {what}, not a directory", .home.display())]
    HomeNotADirectory { home: PathBuf, what: &'static str },
    #[error("another restore into {} is in progress", .home.display())]
    HomeBusy { home: PathBuf },
    #[error("the old home {} cannot be read: {source}", .home.display())]
    OldHome {
        home: PathBuf,
        source: Box<agentd_store::Error>,
    },
    #[error("the list of purges {} cannot be read: {source}", .file.display())]
    BadPurges { file: PathBuf, source: io::Error },
    #[error(
        "conversation {conversation} of agent {agent} was purged after the backup, and cannot be purged here: {why}"
    )]
    NotPurged {
        agent: AgentId,
        conversation: ConversationId,
        why: String,
    },
    #[error(transparent)]
    Store(#[from] agentd_store::Error),
}

impl Error {
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { path, source }
    }

    /// What the user can do about it.
    pub fn next(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotABackup { .. } => "name a file that `agentd backup` has made",
            Self::Newer { .. } => "upgrade agentd, then try again",
            Self::Damaged { .. } => {
                "use another copy of the file, or an earlier backup; `agentd backup --verify FILE` checks one"
            }
            Self::ParentMissing { .. } => {
                "put it beside the incremental backup, under any name; or restore an earlier backup"
            }
            Self::JournalDamaged { .. } => {
                "restore an earlier backup; if the home still exists, `agentd verify` shows whether it has the same damage"
            }
            Self::Exists { .. } => "pass --force, another file, or a directory",
            Self::NotReplaced { .. } => {
                "name another file, or a directory; --force replaces only a backup or an empty file"
            }
            Self::NotAFile { .. } => {
                "name a file, or a directory; only a regular file is replaced, and no link is followed"
            }
            Self::Busy | Self::HomeBusy { .. } => "wait until it is complete, then try again",
            Self::HomeNotEmpty { .. } => {
                "stop its daemon and move the directory away, or restore into another one with `--into DIR`"
            }
            Self::HomeNotADirectory { .. } => {
                "name an empty directory, or one that does not exist, with `--into DIR`"
            }
            Self::OldHome { .. } => {
                "name the state directory that the backup was made of, or leave out --old-home"
            }
            Self::BadPurges { .. } => {
                "correct it, or move it away to restore without the purges that it lists"
            }
            Self::NotPurged { .. } => "restore a later backup",
            Self::Cancelled => "no backup was made: run the command again",
            Self::Io { source, .. } => return next_of(source),
            Self::Store(_) => return None,
        })
    }

    const fn kind(&self) -> Kind {
        match self {
            Self::Exists { .. }
            | Self::NotReplaced { .. }
            | Self::NotAFile { .. }
            | Self::Busy
            | Self::HomeNotEmpty { .. }
            | Self::HomeNotADirectory { .. }
            | Self::HomeBusy { .. }
            | Self::NotPurged { .. } => Kind::Conflict,
            Self::NotABackup { .. }
            | Self::Newer { .. }
            | Self::Damaged { .. }
            | Self::ParentMissing { .. }
            | Self::JournalDamaged { .. }
            | Self::OldHome { .. }
            | Self::BadPurges { .. } => Kind::Invalid,
            Self::Io { .. } | Self::Cancelled | Self::Store(_) => Kind::Unavailable,
        }
    }

    /// Whether the backup itself is wrong, as opposed to the disk or the home.
    pub const fn is_of_backup(&self) -> bool {
        matches!(
            self,
            Self::Damaged { .. } | Self::ParentMissing { .. } | Self::JournalDamaged { .. }
        )
    }
}

/// What the user can do about a file or a directory that cannot be used, to make a backup or to read one.
fn next_of(error: &io::Error) -> Option<&'static str> {
    use io::ErrorKind as Io;
    Some(match error.kind() {
        Io::NotFound | Io::NotADirectory => {
            "check the path; a backup is written to a directory that exists"
        }
        Io::StorageFull | Io::QuotaExceeded => {
            "free disk space, or use another disk, then try again; no earlier backup and no home was changed"
        }
        Io::ReadOnlyFilesystem => "use a directory on another disk: this one is read-only",
        Io::PermissionDenied => {
            "use another file or directory, or change the permissions of this one"
        }
        _ => return None,
    })
}

impl From<Error> for error::Error {
    fn from(error: Error) -> Self {
        let kind = error.kind();
        let next = error.next();
        let error = match error {
            Error::Store(error) => error.into(),
            Error::Io { path, source } => {
                let what = format!("{} cannot be used", path.display());
                let is_wrong = matches!(
                    source.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                );
                let kind = if is_wrong { Kind::Invalid } else { kind };
                Self::new(kind, what).because(source)
            }
            error => Self::new(kind, error.to_string()),
        };
        match next {
            Some(next) => error.next(next),
            None => error,
        }
    }
}
