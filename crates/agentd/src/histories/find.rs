//! Finds the sessions of a program in a file or a directory.

use super::opencode_files::SessionFiles;
use super::{Source, Storage, nothing, unreadable};
use crate::error::{Error, Exit};
use agentd_core::import_history::Program;
use agentd_store::HistoryDatabase;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// How many directories deep sessions are looked for.
const DEEPEST: usize = 8;
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Where the program keeps its histories.
pub fn default_dir(program: Program) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = set("HOME").map(PathBuf::from)?;
    let data = || set("XDG_DATA_HOME").map_or_else(|| home.join(".local/share"), PathBuf::from);
    Some(match program {
        Program::ClaudeCode => set("CLAUDE_CONFIG_DIR")
            .map_or_else(|| home.join(".claude"), PathBuf::from)
            .join("projects"),
        Program::Codex => set("CODEX_HOME")
            .map_or_else(|| home.join(".codex"), PathBuf::from)
            .join("sessions"),
        Program::Opencode => data().join("opencode"),
        Program::Goose => data().join("goose/sessions"),
    })
}

/// The sessions at a path, in a stable order. Databases are copied to `scratch`.
pub fn find(program: Program, path: &Path, scratch: &TempDir) -> Result<Vec<Source>, Error> {
    let is_dir = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if !is_dir.is_dir() {
        return of_file(program, path, scratch);
    }
    let mut found = Vec::new();
    if HistoryDatabase::is_used_by(program) {
        let name = match program {
            Program::Goose => "sessions.db",
            _ => "opencode.db",
        };
        let places = [path.join(name), path.join("sessions").join(name)];
        if let Some(database) = places.iter().find(|path| path.is_file()) {
            found.extend(of_file(program, database, scratch)?);
        }
    }
    match program {
        Program::Opencode => found.extend(of_storage(path)),
        _ => {
            let mut files = Vec::new();
            walk(path, DEEPEST, &mut files).map_err(|error| unreadable(path, &error))?;
            files.sort();
            let sessions = files.into_iter().filter(|file| is_session(program, file));
            found.extend(sessions.map(|path| Source {
                path,
                storage: Storage::Lines,
            }));
        }
    }
    match found.is_empty() {
        true => Err(nothing(program, path)),
        false => Ok(found),
    }
}

fn of_file(program: Program, path: &Path, scratch: &TempDir) -> Result<Vec<Source>, Error> {
    let is_database = is_database(path).map_err(|error| unreadable(path, &error))?;
    if !is_database {
        let storage = match path.extension().is_some_and(|it| it == "json") {
            true if program == Program::Opencode => Storage::Files(SessionFiles),
            _ => Storage::Lines,
        };
        let path = path.to_owned();
        return Ok(vec![Source { path, storage }]);
    }
    if !HistoryDatabase::is_used_by(program) {
        return Err(nothing(program, path));
    }
    let not_read = |error: &dyn std::fmt::Display| {
        let what = format!("the history of {program} cannot be read");
        Error::new(Exit::Usage, what).because(error)
    };
    let database = HistoryDatabase::open(program, path, scratch.path());
    let database = database.map_err(|error| not_read(&error))?;
    let sessions = database.sessions().map_err(|error| not_read(&error))?;
    let database = Arc::new(Mutex::new(database));
    let sources = sessions.into_iter().map(|session| Source {
        path: path.to_owned(),
        storage: Storage::Database(Arc::clone(&database), session),
    });
    Ok(sources.collect())
}

fn is_database(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    let length = DATABASE.len() as u64;
    File::open(path)?.take(length).read_to_end(&mut head)?;
    Ok(head == DATABASE)
}

/// Whether a file of this name is a session.
fn is_session(program: Program, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let begins = match program {
        Program::Codex => "rollout-",
        _ => "",
    };
    name.starts_with(begins) && name.ends_with(".jsonl")
}

/// The files below a directory. Links are not followed, and a directory that cannot be read is passed over.
fn walk(dir: &Path, deepest: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_file() {
            files.push(entry.path());
        } else if kind.is_dir() && deepest > 0 {
            let _unreadable = walk(&entry.path(), deepest - 1, files);
        }
    }
    Ok(())
}

/// The sessions that older versions of opencode kept in files.
fn of_storage(dir: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    for dir in [dir.join("storage/session"), dir.join("session")] {
        let _missing = walk(&dir, 2, &mut files);
    }
    files.retain(|file| file.extension().is_some_and(|it| it == "json"));
    files.sort();
    let sources = files.into_iter().map(|path| Source {
        path,
        storage: Storage::Files(SessionFiles),
    });
    sources.collect()
}
