//! Reads and writes text files for the program of an outer agent, with the code of the file tools.
//!
//! It is this program, started by the agent's process as a task in the sandbox of that program: a path means the file that
//! the program itself finds there, and the kernel limits what can be read and written. It gets its work on stdin and reports on
//! stdout: see [`files`](agentd_core::outer::acp::files).

use super::blocking::Stop;
use super::failure::Failure;
use super::lines::{Lines, is_binary};
use super::opened::{Opened, Unreadable};
use super::output::number;
use super::paths;
use super::replace::{GitDirs, Target, make_parents};
use agentd_core::id::CallId;
use agentd_core::outer::acp::files::{ARGUMENT, CONFINED, FileReport, FileWork, LONGEST_TEXT};
use agentd_process::{RUNTIME_BYTES, limit_own_memory};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::Path;
use std::time::Duration;
use uuid::Uuid;

/// The longest line of work. A message of a program is not longer.
const LONGEST_WORK: u64 = 16 * 1024 * 1024;
/// The read fails if it takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// If this process was started for this: does the work until its input ends, and never returns.
pub fn run_if_asked(args: impl IntoIterator<Item = OsString>) {
    let mut args = args.into_iter().skip(1);
    if args.next().is_none_or(|first| first != ARGUMENT) {
        return;
    }
    let git_dirs = match args.next().is_some_and(|second| second == CONFINED) {
        true => GitDirs::Protected,
        false => GitDirs::Open,
    };
    let out = BufWriter::new(io::stdout().lock());
    let serve = || serve(git_dirs, io::stdin().lock(), out);
    let code = match limit_own_memory(RUNTIME_BYTES).and_then(|()| serve()) {
        Ok(()) => 0,
        Err(_) => 1,
    };
    std::process::exit(code);
}

fn serve(git_dirs: GitDirs, mut from: impl BufRead, mut to: impl Write) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        let read = from
            .by_ref()
            .take(LONGEST_WORK)
            .read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let work: FileWork = serde_json::from_slice(&line)?;
        serde_json::to_writer(&mut to, &report(work, git_dirs))?;
        to.write_all(b"\n")?;
        to.flush()?;
    }
}

fn report(work: FileWork, git_dirs: GitDirs) -> FileReport {
    match work {
        FileWork::Read { path, line, limit } => read(&path, line, limit),
        FileWork::Write { path, content } => match write(&path, &content, git_dirs) {
            Ok(()) => FileReport::Written,
            Err(failure) => FileReport::Failed(failure.text().to_owned()),
        },
    }
}

fn read(path: &str, line: Option<u64>, limit: Option<u64>) -> FileReport {
    let failed = |why: &str| FileReport::Failed(format!("{path} {why}"));
    let cannot = |error: &io::Error| failed(&format!("cannot be read: {error}"));
    let opened = match Opened::at(Path::new(path)) {
        Ok(opened) => opened,
        Err(Unreadable::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
            return FileReport::Missing(format!(
                "Resource not found: {path}: No such file or directory; the agent's sandbox shows only some directories"
            ));
        }
        Err(Unreadable::Io(error)) => return cannot(&error),
        Err(Unreadable::Directory) => return failed("is a directory"),
        Err(Unreadable::NotRegular) => return failed("is not a regular file"),
    };
    if is_binary(&opened.beginning) {
        return failed("is a binary file, not a text");
    }
    let is_whole = line.is_none_or(|line| line <= 1) && limit.is_none();
    if is_whole && opened.size > LONGEST_TEXT as u64 {
        return failed(&too_long());
    }
    let first = line.unwrap_or(1).max(1);
    let last = limit.map_or(u64::MAX, |limit| (first - 1).saturating_add(limit));
    match text(opened, first, last) {
        Ok(Some(bytes)) => match String::from_utf8(bytes) {
            Ok(text) => FileReport::Text(text),
            Err(_) => failed("is not text in UTF-8"),
        },
        Ok(None) => failed(&too_long()),
        Err(error) => cannot(&error),
    }
}

fn too_long() -> String {
    let most = number(LONGEST_TEXT as u64);
    format!("has more text than the {most} bytes that are read at once; use `line` and `limit`")
}

/// The lines from the first to the last, unchanged. `None` if they are too long.
fn text(opened: Opened, first: u64, last: u64) -> io::Result<Option<Vec<u8>>> {
    let stop = Stop::default().within(PATIENCE);
    let mut lines = Lines::new(BufReader::new(opened.file), &stop);
    let mut bytes = Vec::new();
    let mut at = 0;
    while at < last {
        let is_wanted = at + 1 >= first;
        let room = match is_wanted {
            true => LONGEST_TEXT - bytes.len(),
            false => 0,
        };
        let Some(length) = lines.next(room)? else {
            break;
        };
        at += 1;
        if !is_wanted {
            continue;
        }
        if length > room as u64 {
            return Ok(None);
        }
        bytes.extend_from_slice(&lines.kept);
        // The last line may lack a newline.
        if length > lines.kept.len() as u64 {
            bytes.push(b'\n');
        }
    }
    Ok(Some(bytes))
}

fn write(given: &str, content: &str, git_dirs: GitDirs) -> Result<(), Failure> {
    let path = paths::locate(Path::new("/"), given)?;
    let target = Target::new(&path, path.display().to_string(), git_dirs)?;
    target.check()?;
    make_parents(&target.path).map_err(|error| target.cannot("create the directory of", &error))?;
    // The name of the temporary file; no call of a tool has the same one.
    let write = CallId::new(Uuid::now_v7().to_string());
    target.replace(&write, content.as_bytes())
}

#[cfg(test)]
mod tests;
