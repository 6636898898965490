//! Errors of reading a spec. Every message states where, what, and what to do next.

/// The first error in a spec. Lines count from 1, at the top of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An unknown key. `key` is its full path; `nearest` is the last part of the closest valid key at that level.
    #[error("line {line}: unknown key `{key}`; {}", advice(nearest.as_deref()))]
    UnknownKey {
        key: String,
        line: usize,
        nearest: Option<String>,
    },
    /// A known key with an invalid value.
    #[error("line {line}: `{key}`: {reason}")]
    Invalid {
        key: String,
        line: usize,
        reason: String,
    },
    /// `line` is the line of the second occurrence.
    #[error("line {line}: duplicate key `{key}`; remove one of the two")]
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
    /// The front matter is not valid YAML, or uses a feature of YAML that is not supported here.
    #[error(
        "line {line}: cannot read the front matter as YAML: {reason}; check the indentation and \
         the quotes of that line and of the one above"
    )]
    Yaml { line: usize, reason: String },
    /// `limit` is in bytes.
    #[error("the spec is larger than {limit} bytes; move part of the prompt to another file")]
    TooLarge { limit: usize },
}

fn advice(nearest: Option<&str>) -> String {
    match nearest {
        Some(key) => format!("did you mean `{key}`?"),
        None => "correct or remove it".to_owned(),
    }
}
