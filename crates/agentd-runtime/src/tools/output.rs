//! Output over the limit is kept in a file; the model gets its head, its tail, and the call that shows the rest.

use super::context::ToolContext;
use agentd_core::id::CallId;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The lines of a longer part are not counted.
const COUNTED_BYTES: u64 = 64 * 1024 * 1024;

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
        Ok(()) => cut(&text, context.output_bytes, &Rest::In(&path)),
        Err(error) => cut(&text, context.output_bytes, &Rest::Lost(&error)),
    }
}

/// Where the part is that a cut leaves out.
pub(super) enum Rest<'a> {
    In(&'a Path),
    /// In the output of a task, which task_output shows.
    OfTask,
    Lost(&'a io::Error),
}

/// The part of an output that is not shown.
struct Omitted {
    first_byte: u64,
    bytes: u64,
    /// `None` if they were not counted.
    lines: Option<u64>,
    /// The number of its first line, counted from 1; `None` if it begins within a line.
    first_line: Option<u64>,
}

impl Omitted {
    /// How much it is, and how the model gets it.
    fn said(&self, rest: &Rest<'_>) -> String {
        let bytes = number(self.bytes);
        let much = match (self.lines, self.first_line) {
            (Some(lines), Some(_)) if lines > 0 => {
                format!("{} lines ({bytes} bytes)", number(lines))
            }
            _ => format!("{bytes} bytes"),
        };
        let way = match (rest, self.first_line) {
            (Rest::Lost(error), _) => format!("they could not be kept: {error}"),
            (Rest::OfTask, _) => format!("task_output with offset {} shows them", self.first_byte),
            (Rest::In(path), Some(line)) => format!(
                "the full output is in {}; read_file with offset {line} shows them",
                path.display()
            ),
            (Rest::In(path), None) => format!(
                "the full output is in {}; `tail -c +{} FILE | head -c 10000` in shell shows them",
                path.display(),
                self.first_byte + 1
            ),
        };
        format!("… {much} omitted; {way} …")
    }
}

/// The head and the tail of a text, at most `limit` bytes of it, in whole lines if the lines are not too long.
pub(super) fn cut(text: &str, limit: usize, rest: &Rest<'_>) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(limit - limit / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - limit / 2)..];
    let head = &head[..whole_lines(head.as_bytes())];
    let tail = &tail[line_begin(tail.as_bytes())..];
    let middle = &text[head.len()..text.len() - tail.len()];
    let omitted = Omitted {
        first_byte: head.len() as u64,
        bytes: middle.len() as u64,
        lines: Some(newlines(middle.as_bytes())),
        first_line: next_line(head.as_bytes()),
    };
    joined(head, tail, &omitted, rest)
}

fn joined(head: &str, tail: &str, omitted: &Omitted, rest: &Rest<'_>) -> String {
    let head = head.strip_suffix('\n').unwrap_or(head);
    format!("{head}\n{}\n{tail}", omitted.said(rest))
}

/// How much of a head to show, so that it ends with a line.
fn whole_lines(head: &[u8]) -> usize {
    let end = head.iter().rposition(|byte| *byte == b'\n');
    let end = end.map(|at| at + 1).filter(|end| *end > head.len() / 2);
    end.unwrap_or(head.len())
}

/// Where a tail begins with a line.
fn line_begin(tail: &[u8]) -> usize {
    let end = tail.iter().position(|byte| *byte == b'\n');
    let begin = end.map(|at| at + 1).filter(|begin| *begin < tail.len() / 2);
    begin.unwrap_or(0)
}

/// The number of the line after a head that ends with a line.
fn next_line(head: &[u8]) -> Option<u64> {
    let is_whole = head.last().is_none_or(|last| *last == b'\n');
    is_whole.then(|| newlines(head) + 1)
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// The content of a file, cut as by [`cut`]; only the shown part is kept in memory.
pub(super) fn of_file(path: &Path, limit: usize, rest: &Rest<'_>) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    if length <= limit as u64 {
        let text = take(&mut file, limit as u64)?;
        return Ok(cut(&String::from_utf8_lossy(&text), limit, rest));
    }
    let (first, last) = ((limit - limit / 2) as u64, (limit / 2) as u64);
    let mut head = take(&mut file, first)?;
    file.seek(SeekFrom::Start(length - last))?;
    let mut tail = take(&mut file, last)?;
    trim_end(&mut head);
    trim_start(&mut tail);
    head.truncate(whole_lines(&head));
    tail.drain(..line_begin(&tail));
    let bytes = length - (head.len() + tail.len()) as u64;
    let first_byte = head.len() as u64;
    file.seek(SeekFrom::Start(first_byte))?;
    let omitted = Omitted {
        first_byte,
        bytes,
        lines: counted(&file, bytes)?,
        first_line: next_line(&head),
    };
    let (head, tail) = (
        String::from_utf8_lossy(&head),
        String::from_utf8_lossy(&tail),
    );
    Ok(joined(&head, &tail, &omitted, rest))
}

/// The lines of the next bytes of a file, unless there are too many.
fn counted(file: &File, bytes: u64) -> io::Result<Option<u64>> {
    if bytes > COUNTED_BYTES {
        return Ok(None);
    }
    let mut from = BufReader::new(file.take(bytes));
    let mut lines = 0;
    loop {
        let buffer = from.fill_buf()?;
        if buffer.is_empty() {
            return Ok(Some(lines));
        }
        lines += newlines(buffer);
        let read = buffer.len();
        from.consume(read);
    }
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
