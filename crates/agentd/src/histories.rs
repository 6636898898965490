//! Histories of other programs on this machine: where they are, and their records. Nothing is written to them.

mod batches;
mod find;
mod lines;
mod opencode_files;

pub use find::{default_dir, find};

use crate::error::{Error, Exit};
use agentd_core::import_history::{Program, Record};
use agentd_store::HistoryDatabase;
use opencode_files::SessionFiles;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// One session of a program.
#[derive(Clone)]
pub struct Source {
    /// The file that it is in.
    pub path: PathBuf,
    storage: Storage,
}

#[derive(Clone)]
enum Storage {
    /// JSON lines.
    Lines,
    /// A database with this session.
    Database(Arc<Mutex<HistoryDatabase>>, String),
    Files(SessionFiles),
}

impl Source {
    /// What the session is called if its records do not say it.
    pub fn name(&self) -> String {
        match &self.storage {
            Storage::Database(_, session) => session.clone(),
            Storage::Lines | Storage::Files(_) => {
                let stem = self.path.file_stem().unwrap_or_default();
                stem.to_string_lossy().into_owned()
            }
        }
    }

    /// The bytes of its file, for progress; none if it shares the file with other sessions.
    pub fn bytes(&self) -> Option<u64> {
        match &self.storage {
            Storage::Lines => std::fs::metadata(&self.path).ok().map(|file| file.len()),
            Storage::Database(..) | Storage::Files(_) => None,
        }
    }

    /// Passes on its records, one at a time.
    fn records(&self, each: &mut dyn FnMut(Record<'_>)) -> Result<(), Error> {
        match &self.storage {
            Storage::Lines => {
                lines::each(&self.path, each).map_err(|error| unreadable(&self.path, &error))
            }
            Storage::Database(database, session) => {
                let database = database.lock().unwrap_or_else(PoisonError::into_inner);
                database.records(session, each);
                Ok(())
            }
            Storage::Files(files) => {
                files.records(&self.path, each);
                Ok(())
            }
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::of_file(format!("{} cannot be read", path.display()), error)
}

fn nothing(program: Program, path: &Path) -> Error {
    let what = format!("there is no history of {program} in {}", path.display());
    Error::new(Exit::Usage, what).next("give the file or the directory that the program writes")
}
