//! The properties of a tool, which rules and the driver depend on.

/// The properties of a tool's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// Its calls may run in parallel with other calls.
    pub parallel: bool,
    /// Running the same call a second time changes nothing.
    pub idempotent: bool,
    /// Its calls need approval if no rule matches and the approval mode asks about changes.
    pub approval: bool,
}

/// The tool that reads a file. Other tools need to know what the model may read.
pub(super) const READ_FILE: &str = "read_file";

/// The properties of a tool that only reads.
pub(super) const READS: Traits = Traits {
    parallel: true,
    idempotent: true,
    approval: false,
};
