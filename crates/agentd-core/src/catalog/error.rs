//! What can be wrong with a catalog's file, or with what is asked of the catalog.

use crate::spec;

/// The first thing that is wrong with a file. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {fault}")]
pub struct Error {
    pub file: String,
    pub fault: Fault,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("line {line}: cannot be read as TOML: {reason}")]
    Toml { line: usize, reason: String },
    /// An unknown key, or a value that does not fit.
    #[error(transparent)]
    Content(#[from] spec::Error),
}

impl Fault {
    pub(super) fn invalid(line: usize, key: String, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Content(spec::Error::Invalid { key, line, reason })
    }

    pub(super) fn in_file(self, name: &str) -> Error {
        let file = name.to_owned();
        Error { file, fault: self }
    }
}

/// The catalog has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    #[error(
        "no provider is chosen: give `--provider NAME`, NAME being one of: {known}; `demo` needs \
         neither a key nor a network"
    )]
    NoProvider { known: String },
    #[error(
        "there is no provider `{name}`: choose one of: {known}; or describe it under \
         [providers.{name}] in the configuration file"
    )]
    UnknownProvider { name: String, known: String },
    #[error(
        "`{provider}` has no default model: give `--model NAME`, or `default_model` under \
         [providers.{provider}] in the configuration file"
    )]
    NoModel { provider: String },
}
