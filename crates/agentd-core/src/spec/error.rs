//! Why a spec could not be read. Every message says where, what, and what to do next.

/// The first thing that is wrong with a spec. Lines count from 1, at the top of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A key that means nothing here. `key` is its whole path, `nearest` the last word of a key
    /// that exists at that place.
    #[error("line {line}: unknown key `{key}`; {}", advice(nearest.as_deref()))]
    UnknownKey {
        key: String,
        line: usize,
        nearest: Option<String>,
    },
    /// A known key with a value that does not fit.
    #[error("line {line}: `{key}`: {reason}")]
    Invalid {
        key: String,
        line: usize,
        reason: String,
    },
    /// `line` is that of the second one.
    #[error("line {line}: `{key}` is here a second time; remove one of the two")]
    DuplicateKey { key: String, line: usize },
    #[error(
        "the front matter that `---` opens is never closed; add a line `---` after its last key"
    )]
    UnclosedFrontMatter,
    #[error(
        "the front matter is not a mapping; write lines such as `model: some-model` between the \
         two `---` lines"
    )]
    NotAMapping,
    /// The front matter is no YAML, or uses a part of YAML that has no meaning here.
    #[error(
        "line {line}: cannot read the front matter as YAML: {reason}; check the indentation and \
         the quotes of that line and of the one above"
    )]
    Yaml { line: usize, reason: String },
    /// `limit` is in bytes.
    #[error("the spec is larger than {limit} bytes; move part of the prompt to a file of its own")]
    TooLarge { limit: usize },
}

fn advice(nearest: Option<&str>) -> String {
    match nearest {
        Some(key) => format!("did you mean `{key}`?"),
        None => "correct or remove it".to_owned(),
    }
}
