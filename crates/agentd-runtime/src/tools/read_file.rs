//! `read_file`: reads a text file or a part of it, or an image.

use super::arguments::whole;
use super::blocking::{Cancelled, Stop};
use super::contents::{self, MAX_KNOWN_BYTES, Reading, WholeFile};
use super::context::{ToolContext, Within};
use super::failure::Failure;
use super::file_work::{Ended, FileWork, Left};
use super::lines::{self, Lines};
use super::named_files;
use super::opened::{Opened, Unreadable};
use super::output::number;
use super::tool::{Job, Tool, read_in};
use super::traits::{READ_FILE, READS, Traits};
use super::{ended_tasks, hash, paths};
use agentd_core::attachment::image_type;
use agentd_core::message::{Block, CallOutcome};
use agentd_core::permission::Subject;
use agentd_core::turn::Finished;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{self, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A larger image is not shown.
const MAX_IMAGE_BYTES: u64 = 5 * 1024 * 1024;
/// The read fails if it takes longer to get to the requested line.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct ReadFile;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    file_path: String,
    #[serde(default, deserialize_with = "whole")]
    offset: Option<u64>,
    #[serde(default, deserialize_with = "whole")]
    limit: Option<u64>,
}

#[async_trait]
impl Tool for ReadFile {
    const NAME: &'static str = READ_FILE;
    const TRAITS: Traits = READS;
    type Arguments = Arguments;

    fn description() -> String {
        "Reads a text file and returns its text unchanged, or shows an image. Read a file before you change it: \
         a file that you have not read, or that has changed since, is not changed. For \
         a long file it returns a part, and the first line says which part it is and with which `offset` to \
         continue. To find out where something is, use search_files first."
            .into()
    }

    fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "file_path": {
                    "type": "string",
                    "description": "The file: an absolute path, or relative to the working directory."
                },
                "offset": {
                    "type": "integer",
                    "description": "The first line to read, counted from 1. Default: 1."
                },
                "limit": {
                    "type": "integer",
                    "description": "How many lines to read. Default: as many as fit."
                }
            },
            "required": ["file_path"],
            "additionalProperties": false
        })
    }

    fn subjects(context: &ToolContext, arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        named_files::one(context, &arguments.file_path, None)
    }

    async fn run(job: Job<Arguments>, cancelled: Cancelled) -> Finished {
        match read_in(Arc::clone(&job.context), cancelled, job.arguments).await {
            Ok(ended) => ended.finish(&job.context),
            Err(finished) => finished,
        }
    }
}

impl FileWork for Arguments {
    const NAME: &'static str = READ_FILE;
    type Report = Ended;

    /// The result, and the hash of the whole content if the file was read to its end.
    fn carry_out(&self, context: Within<'_>, stop: &Stop) -> Result<Ended, Failure> {
        let path = paths::locate(&context.cwd, &self.file_path)?;
        let (block, content) = shown(context.context, self, &path, &stop.within(PATIENCE))?;
        let hash = content.as_ref().map(|content| content.hash.clone());
        let seen = hash.map(|hash| contents::seen(&paths::real(&path), hash));
        let left = content.and_then(|content| Some(Left::read(content.hash, content.text?)));
        let finished = Finished {
            seen: seen.into_iter().collect(),
            ..Finished::new(CallOutcome::Ok, vec![block])
        };
        Ok(Ended::new(finished, left.into_iter().collect()))
    }
}

fn shown(
    context: &ToolContext,
    arguments: &Arguments,
    path: &Path,
    stop: &Stop,
) -> Result<(Block, Option<WholeFile>), Failure> {
    let name = paths::shown(&context.cwd, path);
    let cannot = |error: io::Error| {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let failure = Failure::io("read", &name, &error);
        match is_missing && ended_tasks::is_kept_output(&context.state, path) {
            true => Failure::new(format!("{} {}", failure.text(), ended_tasks::REMOVED)),
            false => failure,
        }
    };
    let opened = Opened::at(path).map_err(|unreadable| match unreadable {
        Unreadable::Io(error) => cannot(error),
        Unreadable::Directory => {
            Failure::new(format!("{name} is a directory; use list_files to list it."))
        }
        Unreadable::NotRegular => {
            Failure::new(format!("{name} is not a regular file and cannot be read."))
        }
    })?;
    let Opened {
        file,
        beginning,
        size,
    } = opened;
    if let Some(media_type) = image_type(&beginning) {
        if size > MAX_IMAGE_BYTES {
            let text = format!(
                "{name} is an image ({media_type}) of {} bytes; the limit is {} bytes.",
                number(size),
                number(MAX_IMAGE_BYTES)
            );
            return Ok((Block::text(text), unshown(path, size)));
        }
        let mut bytes = Vec::new();
        let mut image = file.take(MAX_IMAGE_BYTES);
        image.read_to_end(&mut bytes).map_err(cannot)?;
        let block = Block::Image {
            media_type: media_type.to_owned(),
            data: STANDARD.encode(&bytes),
        };
        let hash = hash::of(&bytes);
        return Ok((block, Some(WholeFile { hash, text: None })));
    }
    if lines::is_binary(&beginning) {
        let text = format!("{name} is {} of {} bytes.", kind(&beginning), number(size));
        return Ok((Block::text(text), unshown(path, size)));
    }
    let mut reading = BufReader::new(Reading::new(file));
    let shown = text(context, arguments, &mut reading, size, stop).map_err(cannot)?;
    let block = shown.said(&name, size)?;
    Ok((block, reading.into_inner().finish()))
}

/// The hash of a file of which the model knows only what it is.
fn unshown(path: &Path, size: u64) -> Option<WholeFile> {
    let hash = || hash::of_file(path).ok().flatten();
    let hash = (size <= MAX_KNOWN_BYTES).then(hash).flatten()?;
    Some(WholeFile { hash, text: None })
}

/// The part of a text file that was read.
struct Shown {
    text: String,
    first: u64,
    /// The number of the last line that is shown.
    last: u64,
    /// The number of lines in the file, if they were counted.
    lines: Option<u64>,
    /// The length of the one line that is shown, if it is cut.
    cut: Option<u64>,
}

fn text(
    context: &ToolContext,
    arguments: &Arguments,
    from: &mut BufReader<Reading>,
    size: u64,
    stop: &Stop,
) -> io::Result<Shown> {
    let first = arguments.offset.unwrap_or(1).max(1);
    let most = arguments.limit.unwrap_or(u64::MAX);
    let mut lines = Lines::new(from, stop);
    let mut shown = Shown {
        text: String::new(),
        first,
        last: first - 1,
        lines: Some(0),
        cut: None,
    };
    let mut bytes: Vec<u8> = Vec::new();
    let mut full = false;
    let mut at = 0;
    // Enough to see the whole of a secret that begins within the limit.
    let keep = context.output_bytes + context.secrets.longest();
    loop {
        let wanted = at + 1 >= first && !full && shown.last + 1 - first < most;
        if at + 1 > first && !wanted && size > MAX_KNOWN_BYTES {
            shown.lines = None;
            break;
        }
        let Some(length) = lines.next(if wanted { keep } else { 0 })? else {
            shown.lines = Some(at);
            break;
        };
        at += 1;
        if !wanted {
            continue;
        }
        if bytes.len() as u64 + length <= context.output_bytes as u64 {
            bytes.extend_from_slice(&lines.kept);
            // The last line may lack a newline.
            if length > lines.kept.len() as u64 {
                bytes.push(b'\n');
            }
            shown.last = at;
            continue;
        }
        full = true;
        if bytes.is_empty() {
            let line = String::from_utf8_lossy(&lines.kept);
            let line = context.secrets.redact_cut(&line);
            let end = line.floor_char_boundary(context.output_bytes);
            shown.text.push_str(&line[..end]);
            shown.cut = Some(length);
            shown.last = at;
        }
    }
    if shown.cut.is_none() {
        shown.text = context.secrets.redact(&String::from_utf8_lossy(&bytes));
    }
    Ok(shown)
}

impl Shown {
    /// The text. If it is not the whole file, a line before it says which part it is.
    fn said(self, name: &str, size: u64) -> Result<Block, Failure> {
        if self.lines == Some(0) {
            return Ok(Block::text(format!("{name} is empty.")));
        }
        if self.last < self.first {
            let text = match self.lines {
                Some(lines) if lines < self.first => {
                    format!("{name} has only {} lines.", number(lines))
                }
                _ => "`limit` is 0: no line was read.".to_owned(),
            };
            return Err(Failure::new(text));
        }
        let whole = self.first == 1 && self.lines == Some(self.last) && self.cut.is_none();
        if whole {
            return Ok(Block::text(self.text));
        }
        let of = match self.lines {
            Some(lines) => format!("of {}", number(lines)),
            None => format!("of a file of {} bytes", number(size)),
        };
        let part = match self.cut {
            Some(length) => format!(
                "the beginning of line {} {of}, which is {} bytes long",
                self.last,
                number(length)
            ),
            None => format!("lines {} to {} {of}", self.first, self.last),
        };
        let on = match self.lines == Some(self.last) {
            true => String::new(),
            false => format!("; continue with offset {}", self.last + 1),
        };
        Ok(Block::text(format!("[{name}: {part}{on}]\n{}", self.text)))
    }
}

fn kind(beginning: &[u8]) -> &'static str {
    match beginning {
        [0x7f, b'E', b'L', b'F', ..] => "a program (ELF)",
        [b'%', b'P', b'D', b'F', ..] => "a PDF document",
        [b'P', b'K', 3, 4, ..] => "a ZIP archive",
        [0x1f, 0x8b, ..] => "gzip data",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "Zstandard data",
        [b'S', b'Q', b'L', b'i', b't', b'e', ..] => "an SQLite database",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "a UTF-16 text or binary file",
        _ => "a binary file",
    }
}

#[cfg(test)]
mod tests;
