//! Output over the limit is written to a file; the model gets its head, its tail and the file's path.

use super::context::ToolContext;
use agentd_core::id::CallId;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The text with secrets redacted, capped at the limit. A longer text is stored in full in a file of the call.
pub(super) fn capped(context: &ToolContext, call: &CallId, text: &str) -> String {
    let text = context.secrets.redact(text);
    if text.len() <= context.output_bytes {
        return text;
    }
    let path = kept_at(&context.state, call);
    let length = text.len() as u64;
    let kept = match context.kept.allow(length) < length {
        true => Err(io::Error::other("the quota for kept output is used up")),
        false => keep(&path, &text),
    };
    match kept {
        Ok(()) => cut(&text, context.output_bytes, &Whole::In(&path)),
        Err(error) => cut(&text, context.output_bytes, &Whole::Lost(&error)),
    }
}

/// Where the full text is.
pub(super) enum Whole<'a> {
    In(&'a Path),
    Lost(&'a io::Error),
}

/// The head and the tail of a text, at most `limit` bytes of it.
pub(super) fn cut(text: &str, limit: usize, whole: &Whole<'_>) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(limit - limit / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - limit / 2)..];
    let left_out = text.len() - head.len() - tail.len();
    joined(head, tail, left_out as u64, whole)
}

fn joined(head: &str, tail: &str, left_out: u64, whole: &Whole<'_>) -> String {
    let place = match whole {
        Whole::In(path) => format!("the full output is in {}", path.display()),
        Whole::Lost(error) => format!("the full output could not be kept: {error}"),
    };
    let left_out = number(left_out);
    format!("{head}\n… {left_out} bytes omitted; {place} …\n{tail}")
}

/// The content of a file, cut as by [`cut`]; only the shown part is read.
pub(super) fn of_file(path: &Path, limit: usize) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if length <= limit as u64 {
        let text = take(&mut file, limit as u64)?;
        return Ok(cut(
            &String::from_utf8_lossy(&text),
            limit,
            &Whole::In(path),
        ));
    }
    let (first, last) = ((limit - limit / 2) as u64, (limit / 2) as u64);
    let mut head = take(&mut file, first)?;
    file.seek(SeekFrom::Start(length - last))?;
    let mut tail = take(&mut file, last)?;
    trim_end(&mut head);
    trim_start(&mut tail);
    let left_out = length - (head.len() + tail.len()) as u64;
    let (head, tail) = (
        String::from_utf8_lossy(&head),
        String::from_utf8_lossy(&tail),
    );
    Ok(joined(&head, &tail, left_out, &Whole::In(path)))
}

/// A part of a file from `offset`, and the offset of the next part. It is cut between characters.
pub(super) fn part_of_file(path: &Path, offset: u64, limit: usize) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut part = take(&mut file, limit as u64)?;
    if part.len() == limit {
        trim_end(&mut part);
    }
    let next = offset + part.len() as u64;
    Ok((String::from_utf8_lossy(&part).into_owned(), next))
}

/// The end of a file, at most `limit` bytes.
pub(super) fn tail_of_file(path: &Path, limit: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    let mut tail = take(&mut file, limit)?;
    if length > limit {
        trim_start(&mut tail);
    }
    Ok(String::from_utf8_lossy(&tail).into_owned())
}

fn take(file: &mut File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Removes an incomplete character at the end.
fn trim_end(bytes: &mut Vec<u8>) {
    let begun = bytes.iter().rev().take(3);
    let position = begun
        .map(|byte| byte.leading_ones())
        .position(|ones| ones != 1);
    let Some(back) = position else { return };
    let at = bytes.len() - 1 - back;
    if bytes[at].leading_ones() as usize > back + 1 {
        bytes.truncate(at);
    }
}

/// Removes an incomplete character at the beginning.
fn trim_start(bytes: &mut Vec<u8>) {
    let rest = bytes.iter().take(3);
    let rest = rest.take_while(|byte| byte.leading_ones() == 1).count();
    bytes.drain(..rest);
}

/// The number with a comma between groups of three digits.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn kept_at(state: &Path, call: &CallId) -> PathBuf {
    state
        .join("outputs")
        .join(format!("{}.txt", file_name(call)))
}

/// Ids that agentd makes are valid file names; any other id is replaced by its hash.
pub(super) fn file_name(call: &CallId) -> String {
    let id = call.as_str();
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !id.is_empty() && id.len() <= 128 && id.chars().all(good) {
        true => id.to_owned(),
        false => super::hash::of(id.as_bytes()),
    }
}

fn keep(path: &Path, text: &str) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)?;
    }
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests;
