//! The table of models that ships with the program (`models.toml`).

use super::error::Fault;
use super::file;
use super::model::ModelEntry;
use std::sync::OnceLock;

const SHIPPED: &str = include_str!("../../models.toml");

/// The table is parsed once per process. A test ensures that it can be parsed, so no entry is lost here.
pub(super) fn models() -> &'static [ModelEntry] {
    static MODELS: OnceLock<Vec<ModelEntry>> = OnceLock::new();
    MODELS.get_or_init(|| read().unwrap_or_default())
}

pub(super) fn read() -> Result<Vec<ModelEntry>, Fault> {
    file::models(SHIPPED)
}
