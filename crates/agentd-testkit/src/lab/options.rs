//! What the user of the lab chooses.

use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    pub long: bool,
    pub only: Option<String>,
    /// Runs at the same time; they mostly wait.
    pub width: usize,
    /// The directory of the runs; the directories of runs with violations are kept.
    pub dir: PathBuf,
}
