//! Reading a patch.

use super::{FilePatch, Hunk, HunkLine, Patch};
use std::collections::HashSet;

/// How many files a patch may change.
const MAX_FILES: usize = 200;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";
const MARK: &str = "***";

/// Why a text is not a patch. It is shown to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("the first line of a patch is `{BEGIN}`")]
    NoBegin,
    #[error("the last line of a patch is `{END}`")]
    NoEnd,
    #[error("the patch names no file; begin with `{ADD} path`, `{UPDATE} path` or `{DELETE} path`")]
    NoFile,
    #[error("line {line} names no path")]
    NoPath { line: usize },
    #[error("line {line} (`{text}`): {expected}")]
    Unexpected {
        line: usize,
        text: String,
        expected: &'static str,
    },
    #[error("`{path}` is updated without a hunk; add lines that begin with `-`, `+` or a space")]
    NoHunk { path: String },
    #[error("line {line}: this hunk changes nothing; it has no line that begins with `-` or `+`")]
    NoChange { line: usize },
    #[error("it changes more than {MAX_FILES} files; send several patches")]
    TooManyFiles,
    #[error("`{path}` is named twice; put all changes of a file into one section")]
    Twice { path: String },
}

pub(super) fn parse(text: &str) -> Result<Patch, PatchError> {
    let mut lines: Vec<(usize, &str)> = (1..).zip(text.trim().lines()).collect();
    let is_line = |line: Option<&(usize, &str)>, wanted: &str| {
        line.is_some_and(|(_, line)| line.trim() == wanted)
    };
    if !is_line(lines.first(), BEGIN) {
        return Err(PatchError::NoBegin);
    }
    if lines.len() < 2 || !is_line(lines.last(), END) {
        return Err(PatchError::NoEnd);
    }
    lines.pop();
    let mut files = Vec::new();
    let mut rest = lines.get(1..).unwrap_or_default();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if first.1.trim().is_empty() {
            continue;
        }
        let body = rest.iter().take_while(|(_, line)| !begins_file(line));
        let (body, next) = rest.split_at(body.count());
        files.push(file(*first, body)?);
        rest = next;
    }
    let patch = Patch { files };
    check(&patch)?;
    Ok(patch)
}

fn begins_file(line: &str) -> bool {
    [ADD, DELETE, UPDATE]
        .iter()
        .any(|mark| line.starts_with(mark))
}

fn check(patch: &Patch) -> Result<(), PatchError> {
    if patch.files.is_empty() {
        return Err(PatchError::NoFile);
    }
    if patch.files.len() > MAX_FILES {
        return Err(PatchError::TooManyFiles);
    }
    let mut seen = HashSet::new();
    let mut paths = patch.changes().map(|(path, _)| path);
    match paths.find(|path| !seen.insert(*path)) {
        Some(path) => Err(PatchError::Twice {
            path: path.to_owned(),
        }),
        None => Ok(()),
    }
}

fn unexpected(line: (usize, &str), expected: &'static str) -> PatchError {
    let text: String = line.1.chars().take(80).collect();
    PatchError::Unexpected {
        line: line.0,
        text,
        expected,
    }
}

/// The path after a mark; `None` if the line does not begin with the mark.
fn path(line: (usize, &str), mark: &str) -> Option<Result<String, PatchError>> {
    let path = line.1.strip_prefix(mark)?.trim();
    Some(match path.is_empty() {
        true => Err(PatchError::NoPath { line: line.0 }),
        false => Ok(path.to_owned()),
    })
}

fn file(first: (usize, &str), body: &[(usize, &str)]) -> Result<FilePatch, PatchError> {
    if let Some(path) = path(first, ADD) {
        let (path, text) = (path?, added(body)?);
        return Ok(FilePatch::Add { path, text });
    }
    if let Some(path) = path(first, DELETE) {
        let path = path?;
        let mut more = body.iter().filter(|(_, line)| !line.trim().is_empty());
        return match more.next() {
            None => Ok(FilePatch::Delete { path }),
            Some(line) => Err(unexpected(*line, "a file that is deleted has no lines")),
        };
    }
    let Some(path_of_update) = path(first, UPDATE) else {
        let expected = "a section begins with `*** Add File:`, `*** Update File:` or `*** Delete File:` and a path";
        return Err(unexpected(first, expected));
    };
    let updated = path_of_update?;
    let moved = body
        .first()
        .and_then(|line| path(*line, MOVE))
        .transpose()?;
    let body = body.get(usize::from(moved.is_some())..).unwrap_or_default();
    let hunks = hunks(body)?;
    if hunks.is_empty() && moved.is_none() {
        return Err(PatchError::NoHunk { path: updated });
    }
    Ok(FilePatch::Update {
        path: updated,
        move_to: moved,
        hunks,
    })
}

/// The text of a new file.
fn added(body: &[(usize, &str)]) -> Result<String, PatchError> {
    let mut text = String::new();
    for line in body {
        match line.1.strip_prefix('+') {
            Some(added) => {
                text.push_str(added);
                text.push('\n');
            }
            None if line.1.trim().is_empty() => {}
            None => {
                let expected = "each line of a new file begins with `+`";
                return Err(unexpected(*line, expected));
            }
        }
    }
    Ok(text)
}

fn hunks(body: &[(usize, &str)]) -> Result<Vec<Hunk>, PatchError> {
    let mut hunks: Vec<(usize, Hunk)> = Vec::new();
    for line in body {
        let (number, text) = *line;
        if let Some(header) = text.strip_prefix("@@") {
            // Headers that follow each other lead to one place.
            if !hunks.last().is_some_and(|(_, hunk)| hunk.lines.is_empty()) {
                hunks.push((number, Hunk::default()));
            }
            let header = without_numbers(header.trim());
            if let (Some((_, hunk)), false) = (hunks.last_mut(), header.is_empty()) {
                hunk.headers.push(header.to_owned());
            }
            continue;
        }
        if hunks.is_empty() {
            hunks.push((number, Hunk::default()));
        }
        let Some((_, hunk)) = hunks.last_mut() else {
            continue;
        };
        if text.trim_end() == END_OF_FILE {
            hunk.is_at_end = true;
            continue;
        }
        hunk.lines.push(match text.chars().next() {
            None => HunkLine::Keep(String::new()),
            Some(' ') => HunkLine::Keep(text[1..].to_owned()),
            Some('-') => HunkLine::Remove(text[1..].to_owned()),
            Some('+') => HunkLine::Add(text[1..].to_owned()),
            Some(_) if text.starts_with(MARK) => {
                return Err(unexpected(*line, "this mark is not known here"));
            }
            Some(_) => {
                let expected = "a line of a hunk begins with a space, `-` or `+`";
                return Err(unexpected(*line, expected));
            }
        });
    }
    // Blank lines between sections are not lines of the file.
    for (_, hunk) in &mut hunks {
        while hunk.lines.last() == Some(&HunkLine::Keep(String::new())) {
            hunk.lines.pop();
        }
    }
    let is_idle = |hunk: &Hunk| {
        let mut lines = hunk.lines.iter();
        lines.all(|line| matches!(line, HunkLine::Keep(_)))
    };
    match hunks.iter().find(|(_, hunk)| is_idle(hunk)) {
        Some((line, _)) => Err(PatchError::NoChange { line: *line }),
        None => Ok(hunks.into_iter().map(|(_, hunk)| hunk).collect()),
    }
}

/// A header without the line numbers of a unified diff: `-1,3 +1,4 @@ fn main() {`.
fn without_numbers(header: &str) -> &str {
    let is_range = |text: &str, sign: char| {
        let numbers = text.strip_prefix(sign);
        numbers
            .is_some_and(|it| !it.is_empty() && it.chars().all(|c| c.is_ascii_digit() || c == ','))
    };
    let mut words = header.splitn(3, ' ');
    let (Some(old), Some(new), Some(rest)) = (words.next(), words.next(), words.next()) else {
        return header;
    };
    match (
        is_range(old, '-') && is_range(new, '+'),
        rest.strip_prefix("@@"),
    ) {
        (true, Some(header)) => header.trim(),
        _ => header,
    }
}
