//! Runs the process that reads and writes files, and reads what it reports.

use super::contents;
use super::sandbox::{Program, ToolSandbox};
use crate::error::{Error, Kind, Result};
use crate::spawn::blocking;
use agentd_core::event::{FileBefore, FileKept, FileState, KeptBy, KeptContent, NotKept};
use agentd_core::files::work::{ARGUMENT, Found, Report, Work, Written};
use agentd_core::secrets::Secrets;
use agentd_failpoint as failpoint;
use agentd_process::{copy_own_program, own_program};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long all files of a request may take to be read.
const TIME_OF_READ: Duration = Duration::from_secs(120);
/// How long all files of a restore may take to be written.
const TIME_OF_WRITE: Duration = Duration::from_secs(600);

/// What was found at a path, with the content of a file.
pub struct FoundPath {
    pub found: Found,
    parts: Vec<KeptContent>,
}

impl FoundPath {
    /// The state of the path; `None` if a directory or something else is there, or it cannot be read.
    pub const fn state(&self) -> Option<&FileState> {
        match &self.found {
            Found::Known { state, .. } => Some(state),
            _ => None,
        }
    }

    /// The size of a file that is too large to be read.
    pub const fn size_not_read(&self) -> Option<u64> {
        match &self.found {
            Found::Failed { size, .. } => *size,
            _ => None,
        }
    }

    /// The content of the file in pieces.
    pub fn parts(&self) -> &[KeptContent] {
        &self.parts
    }

    /// Withholds the content of a file that contains a secret: no event contains one.
    pub fn withhold(&mut self, secrets: &Secrets) {
        let Found::Known { not_kept, .. } = &mut self.found else {
            return;
        };
        let parts = self.parts.iter().filter_map(contents::bytes);
        let whole: Vec<u8> = parts.flatten().collect();
        if secrets.are_in(&whole) {
            *not_kept = Some(NotKept::Secret);
            self.parts.clear();
        }
    }

    /// How much of the history of files its content uses.
    pub const fn size(&self) -> u64 {
        match &self.found {
            Found::Known { size, .. } => *size,
            _ => 0,
        }
    }

    /// Whether the state can be kept for an undo.
    pub const fn not_kept(&self) -> Option<NotKept> {
        match &self.found {
            Found::Known { not_kept, .. } => *not_kept,
            _ => None,
        }
    }

    /// The events that keep this state.
    pub fn kept(self, by: &KeptBy, path: &str) -> Vec<FileKept> {
        let Found::Known {
            state,
            size,
            not_kept,
        } = self.found
        else {
            return Vec::new();
        };
        let befores: Vec<FileBefore> = match (state, not_kept) {
            (FileState::Absent, _) => vec![FileBefore::Absent],
            (FileState::Symlink { target }, _) => vec![FileBefore::Symlink { target }],
            (FileState::File { mode, hash }, not_kept) => {
                let contents = match not_kept {
                    Some(why) => vec![KeptContent::NotKept { why }],
                    None => self.parts,
                };
                let before = |content| FileBefore::File {
                    mode,
                    size,
                    hash: hash.clone(),
                    content,
                };
                contents.into_iter().map(before).collect()
            }
        };
        FileKept::in_parts(by, path, befores)
    }
}

/// Reads what is at these paths.
pub async fn read(
    sandbox: &ToolSandbox,
    dir: &Path,
    work: &Work,
) -> Result<BTreeMap<String, FoundPath>> {
    let reports = run(sandbox, dir, work, (Vec::new(), TIME_OF_READ)).await?;
    let mut found = BTreeMap::new();
    let mut parts = Vec::new();
    for report in reports {
        match report {
            Report::Part { content } => parts.push(content),
            Report::Found { path, found: seen } => {
                let parts = std::mem::take(&mut parts);
                found.insert(path, FoundPath { found: seen, parts });
            }
            Report::Written { .. } | Report::End => {}
        }
    }
    Ok(found)
}

/// Writes files whose contents are in a directory.
pub async fn write(
    sandbox: &ToolSandbox,
    dir: &Path,
    work: &Work,
    contents: PathBuf,
) -> Result<BTreeMap<String, Written>> {
    let reports = run(sandbox, dir, work, (vec![contents], TIME_OF_WRITE)).await?;
    let written = reports.into_iter().filter_map(|report| match report {
        Report::Written { path, outcome } => Some((path, outcome)),
        _ => None,
    });
    Ok(written.collect())
}

async fn run(
    sandbox: &ToolSandbox,
    dir: &Path,
    work: &Work,
    (mut readable, time): (Vec<PathBuf>, Duration),
) -> Result<Vec<Report>> {
    let stdin = serde_json::to_string(work).map_err(|error| internal(&error))?;
    let at = dir.to_owned();
    let writable = match sandbox.confined() {
        Ok(confined) => confined.map_or_else(Vec::new, |confined| confined.policy.writable),
        // The start of the program says why. Until then, every directory may be such a one.
        Err(_) => vec![PathBuf::from("/")],
    };
    let (path, tmp) = blocking(move || prepare(&at, &writable))
        .await
        .map_err(|error| internal(&error))?;
    readable.push(path.clone());
    let mut args = vec![ARGUMENT.to_owned()];
    if let Some(lab) = failpoint::dir() {
        args.extend([lab, dir].map(|path| path.display().to_string()));
    }
    let program = Program {
        path,
        args,
        env: BTreeMap::new(),
        stdin,
        tmp,
        readable,
        time,
        is_own: true,
    };
    let exit = sandbox.run(dir, program).await?;
    let output = dir.join("output");
    let reports = blocking(move || reports(&output)).await;
    let reports = reports.map_err(|error| internal(&error))?;
    match reports.last() {
        Some(Report::End) => Ok(reports),
        _ if exit.timed_out => {
            let what = "the files could not be read or written in time";
            Err(Error::new(Kind::Unavailable, what).next("name fewer files, or try again"))
        }
        _ => {
            let what = "the process that reads and writes files did not finish its work";
            let why = format!("its exit: {exit:?}");
            Err(Error::new(Kind::Unavailable, what).because(why))
        }
    }
}

/// Creates the directory of the task, and its own directory for temporary files. Returns the program to run: a copy of
/// the running one, if its file was replaced, or if it is in a tree that the agent's tools can change.
fn prepare(dir: &Path, writable: &[PathBuf]) -> io::Result<(PathBuf, PathBuf)> {
    let tmp = dir.join("tmp");
    make(dir)?;
    make(&tmp)?;
    if let Some(program) = own_program(writable) {
        return Ok((program, tmp));
    }
    let copy = dir.join("program");
    copy_own_program(&copy)?;
    Ok((copy, tmp))
}

pub fn make(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

fn reports(output: &Path) -> io::Result<Vec<Report>> {
    let file = match File::open(output) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => BufReader::new(file?),
    };
    let mut reports = Vec::new();
    for line in file.lines() {
        // The last line of a process that was killed may be cut off.
        let Ok(report) = serde_json::from_str(&line?) else {
            break;
        };
        reports.push(report);
    }
    Ok(reports)
}

fn internal(error: &dyn std::error::Error) -> Error {
    let what = "the process that reads and writes files cannot be run";
    Error::new(Kind::Internal, what).because(error)
}
