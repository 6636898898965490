//! `search_files`: finds lines that match a regular expression.

use super::arguments::whole;
use super::blocking::{Cancelled, Stop};
use super::context::{ToolContext, Within};
use super::failure::{Failure, said};
use super::file_work::FileWork;
use super::lines::{self, Lines};
use super::named_files;
use super::output::{self, number};
use super::paths;
use super::tool::{Job, Tool, read_in};
use super::traits::Traits;
use super::walk::{self, Unreadable, Walk, Way};
use agentd_core::id::CallId;
use agentd_core::message::CallOutcome;
use agentd_core::permission::Subject;
use agentd_core::turn::Finished;
use agentd_files::foreign::{self, Links};
use async_trait::async_trait;
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{self, BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// How many matches are shown by default.
const SHOWN: u64 = 200;
const MOST_SHOWN: u64 = 1000;
/// Only this much of a line is searched.
const LINE_BYTES: usize = 64 * 1024;
/// How much of a long line is shown: a little before the match, and the text after it.
const SHOWN_BYTES: usize = 300;
const SHOWN_BEFORE: usize = 80;

pub(super) struct SearchFiles;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    ignore_case: Option<bool>,
    #[serde(default, deserialize_with = "whole")]
    max: Option<u64>,
}

#[async_trait]
impl Tool for SearchFiles {
    const NAME: &'static str = "search_files";
    const TRAITS: Traits = Traits {
        parallel: true,
        idempotent: true,
        approval: false,
    };
    type Arguments = Arguments;

    fn description() -> String {
        "Searches the content of text files for a regular expression, line by line. Use it instead of grep. \
         Each match is a line `path:number: text`; read_file with that number as `offset` shows the lines after \
         it. What .gitignore excludes is left out, and so is .git."
            .into()
    }

    fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "pattern": {
                    "type": "string",
                    "description": "A regular expression, in the syntax of the Rust crate `regex`."
                },
                "path": {
                    "type": "string",
                    "description": "A directory or a file. Default: the working directory."
                },
                "glob": {
                    "type": "string",
                    "description": "Only files that match this glob, such as `*.rs` or `src/**/*.rs`."
                },
                "ignore_case": {"type": "boolean", "description": "Default: false."},
                "max": {
                    "type": "integer",
                    "description": "How many matches to show, at most 1000. Default: 200."
                }
            },
            "required": ["pattern"],
            "additionalProperties": false
        })
    }

    fn subjects(context: &ToolContext, arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        named_files::one(context, arguments.path.as_deref().unwrap_or("."), None)
    }

    async fn run(job: Job<Arguments>, cancelled: Cancelled) -> Finished {
        let matched = read_in(Arc::clone(&job.context), cancelled, job.arguments).await;
        match matched {
            Ok(matched) => said(CallOutcome::Ok, matched.told(&job.context, &job.call)),
            Err(finished) => finished,
        }
    }
}

/// What a search found.
#[derive(Serialize, Deserialize)]
pub(super) struct Matched {
    /// The first matches, a line each.
    text: String,
    /// How many are shown.
    most: u64,
    matches: u64,
    /// The number of files with matches.
    files: u64,
    way: Way,
}

impl FileWork for Arguments {
    const NAME: &'static str = "search_files";
    type Report = Matched;

    fn carry_out(&self, context: Within<'_>, stop: &Stop) -> Result<Matched, Failure> {
        let context = context.context;
        let ignore_case = self.ignore_case.unwrap_or_default();
        let regex = RegexBuilder::new(&self.pattern)
            .case_insensitive(ignore_case)
            .build();
        let regex = regex.map_err(|error| {
            Failure::new(format!("`pattern` is not a regular expression: {error}"))
        })?;
        let glob = self.glob.as_deref();
        let walk = Walk {
            context,
            tool: SearchFiles::NAME,
            traits: SearchFiles::TRAITS,
            root: walk::root(context, self.path.as_deref())?,
            glob: glob.map(|it| walk::glob("glob", it)).transpose()?,
            depth: None,
            stop,
        };
        let mut found = Found {
            context,
            regex,
            most: self.max.unwrap_or(SHOWN).clamp(1, MOST_SHOWN),
            text: String::new(),
            matches: 0,
            files: 0,
        };
        let mut way = walk.each(|entry, stop| {
            let path = entry.path();
            // A link to a file is searched only if the call names it.
            let is_file = match entry.depth() {
                0 => path.is_file(),
                _ => entry.file_type().is_some_and(|kind| kind.is_file()),
            };
            if is_file {
                // A file that cannot be read counts as one without a match.
                drop(found.look_into(path, stop));
            }
            ControlFlow::Continue(())
        });
        if walk.root.is_file() && way.unreadable.is_none() {
            let error = foreign::open(&walk.root, Links::Follow).err();
            way.unreadable = error.map(|error| Unreadable {
                reason: error.to_string(),
                is_root: false,
            });
        }
        Ok(Matched {
            text: found.text,
            most: found.most,
            matches: found.matches,
            files: found.files,
            way,
        })
    }
}

impl Matched {
    fn told(&self, context: &ToolContext, call: &CallId) -> String {
        let notes = self.way.notes(context);
        if self.matches == 0 {
            return format!("No matches; files that .gitignore excludes are not searched.{notes}");
        }
        let mut text = output::capped(context, call, self.text.trim_end());
        if self.matches > self.most {
            text.push_str(&format!(
                "\n[the first {} of {} matches in {} files; give a narrower `pattern`, `path` or `glob`]",
                number(self.most),
                number(self.matches),
                number(self.files)
            ));
        }
        text + &notes
    }
}

struct Found<'a> {
    context: &'a ToolContext,
    regex: Regex,
    most: u64,
    text: String,
    matches: u64,
    /// The number of files with matches.
    files: u64,
}

impl Found<'_> {
    fn look_into(&mut self, path: &Path, stop: &Stop) -> io::Result<()> {
        let file = foreign::open(path, Links::Follow)?;
        let mut file = BufReader::with_capacity(lines::SNIFFED, file);
        if lines::is_binary(file.fill_buf()?) {
            return Ok(());
        }
        let name = paths::shown(&self.context.cwd, path);
        let mut lines = Lines::new(file, stop);
        let (mut number, before) = (0, self.matches);
        while let Some(length) = lines.next(LINE_BYTES)? {
            number += 1;
            if lines.kept.last() == Some(&b'\r') {
                lines.kept.pop();
            }
            if !self.regex.is_match(&lines.kept) {
                continue;
            }
            self.matches += 1;
            if self.matches <= self.most {
                let is_cut = length > LINE_BYTES as u64;
                let line = self.shown(&lines.kept, is_cut);
                self.text.push_str(&format!("{name}:{number}: {line}\n"));
            }
        }
        self.files += u64::from(self.matches > before);
        Ok(())
    }

    /// The line, or the part of a long line around its match. Secrets are redacted before it is cut.
    fn shown(&self, line: &[u8], is_cut: bool) -> String {
        let line = String::from_utf8_lossy(line);
        let line = match is_cut {
            true => self.context.secrets.redact_cut(&line),
            false => self.context.secrets.redact(&line),
        };
        if line.len() <= SHOWN_BYTES {
            return line;
        }
        let at = self.regex.find(line.as_bytes()).map_or(0, |it| it.start());
        let from = line.floor_char_boundary(at.saturating_sub(SHOWN_BEFORE));
        let to = line.floor_char_boundary(from + SHOWN_BYTES);
        let dots = |is_cut: bool| if is_cut { "…" } else { "" };
        let (before, after) = (dots(from > 0), dots(to < line.len()));
        format!("{before}{}{after}", &line[from..to])
    }
}

#[cfg(test)]
mod tests;
