//! Errors in the configuration file, and models or providers that cannot be resolved.

use crate::spec;

/// The first error in a file. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {fault}")]
pub struct Error {
    pub file: String,
    pub fault: Fault,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("line {line}: invalid TOML: {reason}")]
    Toml { line: usize, reason: String },
    /// An unknown key, or a value that does not fit.
    #[error(transparent)]
    Content(#[from] spec::Error),
    /// A key of a project's file that would give agents more than the user's own settings do, or that only the user may
    /// set.
    #[error("line {line}: `{key}`: {reason}")]
    NotForProjects {
        line: usize,
        key: String,
        reason: String,
    },
}

impl Fault {
    pub(super) fn invalid(line: usize, key: String, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Content(spec::Error::Invalid { key, line, reason })
    }

    pub(super) fn not_for_projects(line: usize, key: String, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::NotForProjects { line, key, reason }
    }

    pub(super) fn in_file(self, name: &str) -> Error {
        let file = name.to_owned();
        Error { file, fault: self }
    }
}

/// The catalog cannot tell which provider or model is meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    #[error(
        "no provider is selected: pass `--provider NAME`, where NAME is one of: {known}; `demo` needs \
         neither a key nor a network"
    )]
    NoProvider { known: String },
    /// No provider is named, and none is ready. What would work depends on the machine, so the program lists it.
    #[error(
        "no provider is named, and no provider's key was found in the environment, among the stored secrets or in \
         the configuration file"
    )]
    NoKey,
    #[error(
        "unknown provider `{name}`: choose one of: {known}; or define it under \
         [providers.{name}] in the configuration file"
    )]
    UnknownProvider { name: String, known: String },
    #[error(
        "`{provider}` has no default model: pass `--model NAME`, or set `default_model` under \
         [providers.{provider}] in the configuration file"
    )]
    NoModel { provider: String },
}
