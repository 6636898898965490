//! Why the tools of an agent cannot be set up.

use std::io;
use std::path::PathBuf;

/// The tools cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "unknown tool `{name}`{}; available tools: {known}",
        .nearest.as_deref().map(|it| format!(" (did you mean `{it}`?)")).unwrap_or_default()
    )]
    UnknownTool {
        name: String,
        nearest: Option<String>,
        known: String,
    },
    #[error("the directory `{}` cannot be used; give an absolute path", .path.display())]
    BadDirectory { path: PathBuf },
    #[error("cannot create the directory {}: {source}", .path.display())]
    CannotMake {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}
