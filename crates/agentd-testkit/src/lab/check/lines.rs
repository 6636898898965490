//! The files of a run: lines of JSON.

use serde::de::DeserializeOwned;
use std::fs;
use std::io;
use std::path::Path;

pub fn unreadable(name: &str, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {error}"))
}

/// The names of the files in a directory, in order. None if the directory does not exist.
pub fn files(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    match fs::read_dir(dir) {
        Ok(entries) => {
            for entry in entries {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    names.sort();
    Ok(names)
}

/// A file of JSON lines; a missing file counts as empty. A last line without a newline, of a process that was killed
/// while writing it, is ignored.
pub fn lines<T: DeserializeOwned>(run: &Path, name: &str) -> io::Result<Vec<T>> {
    let bytes = match fs::read(run.join(name)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut values = Vec::new();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        if is_blank {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(value) => values.push(value),
            Err(_) if !line.ends_with(b"\n") => {}
            Err(error) => return Err(unreadable(&format!("{name}:{}", index + 1), &error)),
        }
    }
    Ok(values)
}
