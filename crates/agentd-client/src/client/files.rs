//! Requests about what turns changed in files.

use super::{Client, of, with_query};
use crate::api::{
    ChangedFiles, DiffFiles, FilesDiff, FilesQuery, RestoreFiles, RestoredFiles, UndoFiles,
};
use crate::error::Error;

impl Client {
    /// The files that an agent has changed.
    pub async fn files(&self, name: &str, query: &FilesQuery) -> Result<ChangedFiles, Error> {
        self.get(&with_query(&of(name, "/files"), query)?).await
    }

    pub async fn diff(&self, name: &str, diff: &DiffFiles) -> Result<FilesDiff, Error> {
        self.post_as_it_is(&of(name, "/diff"), diff).await
    }

    pub async fn restore_files(
        &self,
        name: &str,
        restore: &RestoreFiles,
    ) -> Result<RestoredFiles, Error> {
        self.post(&of(name, "/files/restore"), restore).await
    }

    /// Takes the last restore of files back.
    pub async fn undo_files(&self, name: &str, undo: &UndoFiles) -> Result<RestoredFiles, Error> {
        self.post(&of(name, "/files/undo"), undo).await
    }
}
