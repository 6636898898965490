//! The instruction files of one directory of a project, with the rules of other programs and what the files import.

use super::{Instructions, given, of_project};
use agentd_core::instruction_text::{Applies, claude_rule, cursor_rule, imports};
use agentd_core::lexical_path::normalised;
use agentd_files::foreign;
use globset::{GlobBuilder, GlobMatcher};
use rustix::fs::{Dir, FileType};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The names in a directory, of which the first that exists counts.
const NAMES: [&str; 3] = ["AGENTS.override.md", "AGENTS.md", "CLAUDE.md"];
/// In addition to them.
const LOCAL: &str = "CLAUDE.local.md";
const CLAUDE_RULES: &str = ".claude/rules";
/// Read only where there is none of `NAMES`.
const COPILOT: &str = ".github/copilot-instructions.md";
const CURSOR_RULES: &str = ".cursor/rules";
/// The directories of other programs in a directory of the project.
const OF_PROGRAMS: [&str; 3] = [".claude", ".github", ".cursor"];

/// How many files may be imported, and through how many others.
const MOST_IMPORTS: usize = 32;
const DEEPEST_IMPORT: usize = 5;
/// How many rules a directory may have, and how deeply they may be nested.
const MOST_RULES: usize = 64;
const DEEPEST_RULE: usize = 5;
/// How many entries of a directory of rules are looked at.
const MOST_ENTRIES: usize = 1000;

/// Reads a rule's text, and when it applies.
type ReadRule = fn(&str) -> (&str, Applies);

/// The files that apply, from general to specific, each once.
pub(super) struct Found<'a> {
    files: Vec<Instructions>,
    seen: BTreeSet<PathBuf>,
    imported: usize,
    /// The files with which the agent has worked.
    touched: &'a BTreeSet<PathBuf>,
    /// The files that the model knows.
    told: &'a [String],
}

/// The directory of a project whose instructions a file contains.
pub(super) fn dir_of(path: &Path) -> Option<&Path> {
    let is_of_program = |dir: &&Path| OF_PROGRAMS.iter().any(|name| dir.ends_with(name));
    match path.ancestors().find(is_of_program) {
        Some(dir) => dir.parent(),
        None => path.parent(),
    }
}

impl<'a> Found<'a> {
    pub fn new(touched: &'a BTreeSet<PathBuf>, told: &'a [String]) -> Self {
        Self {
            files: Vec::new(),
            seen: BTreeSet::new(),
            imported: 0,
            touched,
            told,
        }
    }

    pub fn into_files(self) -> Vec<Instructions> {
        self.files
    }

    /// A file of the user, which imports nothing.
    pub fn add_own(&mut self, file: Option<Instructions>) {
        self.files.extend(file);
    }

    /// Adds the files of a directory. What they contain must be below `within`.
    pub fn add_dir(&mut self, within: &Path, dir: &Path) {
        let mut names = NAMES.iter();
        let has_own = names.any(|name| self.add(within, &dir.join(name)));
        if !has_own {
            self.add(within, &dir.join(COPILOT));
            self.add_rules(within, dir, CURSOR_RULES, cursor_rule);
        }
        self.add_rules(within, dir, CLAUDE_RULES, claude_rule);
        self.add(within, &dir.join(LOCAL));
    }

    /// Adds a file after those that it imports. Returns whether it exists.
    fn add(&mut self, within: &Path, path: &Path) -> bool {
        let Some(file) = given(path.display().to_string(), of_project(within, path)) else {
            return false;
        };
        self.push(within, path, file, 0);
        true
    }

    fn push(&mut self, within: &Path, path: &Path, file: Instructions, depth: usize) {
        if !self.seen.insert(path.to_owned()) {
            return;
        }
        if let Ok(text) = &file.text {
            self.add_imports(within, path, text, depth);
        }
        self.files.push(file);
    }

    /// Adds the Markdown files that a text names and that exist in the project. Other words with `@` mean something else.
    fn add_imports(&mut self, within: &Path, of: &Path, text: &str, depth: usize) {
        if depth >= DEEPEST_IMPORT {
            return;
        }
        let dir = of.parent().unwrap_or(within);
        for import in imports(text) {
            let path = normalised(&dir.join(import));
            let is_new =
                is_markdown(&path) && path.starts_with(within) && !self.seen.contains(&path);
            if !is_new || self.imported >= MOST_IMPORTS {
                continue;
            }
            if let Some(file) = given(path.display().to_string(), of_project(within, &path)) {
                self.imported += 1;
                self.push(within, &path, file, depth + 1);
            }
        }
    }

    /// Adds the rules of a directory that apply now.
    fn add_rules(&mut self, within: &Path, dir: &Path, below: &str, read: ReadRule) {
        for path in rules(within, &dir.join(below)) {
            let Some(file) = given(path.display().to_string(), of_project(within, &path)) else {
                continue;
            };
            let text = match &file.text {
                Ok(text) => {
                    let (text, applies) = read(text);
                    if !self.applies(&path, dir, &applies) {
                        continue;
                    }
                    Ok(text.to_owned())
                }
                Err(why) => Err(why.clone()),
            };
            self.push(within, &path, Instructions { text, ..file }, 0);
        }
    }

    fn applies(&self, path: &Path, dir: &Path, applies: &Applies) -> bool {
        let patterns = match applies {
            Applies::Always => return true,
            Applies::OnDemand => return false,
            Applies::To(patterns) => patterns,
        };
        let is_told = self.told.iter().any(|told| Path::new(told) == path);
        let matchers: Vec<GlobMatcher> = patterns.iter().filter_map(|text| matcher(text)).collect();
        let mut touched = self
            .touched
            .iter()
            .filter_map(|file| file.strip_prefix(dir).ok());
        is_told || touched.any(|file| matchers.iter().any(|it| it.is_match(file)))
    }
}

/// A pattern without `/` is about names in every directory.
fn matcher(pattern: &str) -> Option<GlobMatcher> {
    let whole = match pattern.strip_prefix("./").unwrap_or(pattern) {
        name if !name.contains('/') => format!("**/{name}"),
        path => path.trim_start_matches('/').to_owned(),
    };
    let glob = GlobBuilder::new(&whole).literal_separator(true).build();
    glob.ok().map(|glob| glob.compile_matcher())
}

fn is_markdown(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("md") || end.eq_ignore_ascii_case("mdc"))
}

/// The Markdown files in a directory of rules and below, sorted. The directory is reached from `within` without a link: the
/// names of files elsewhere are none of the project's business.
fn rules(within: &Path, dir: &Path) -> Vec<PathBuf> {
    let below = dir.strip_prefix(within).ok();
    let real = below.and_then(|below| Some(std::fs::canonicalize(within).ok()?.join(below)));
    let mut found = BTreeSet::new();
    if let Some(real) = real {
        list(&real, dir, 0, &mut found);
    }
    found.into_iter().collect()
}

fn list(real: &Path, dir: &Path, depth: usize, into: &mut BTreeSet<PathBuf>) {
    let opened = foreign::open_dir(real).ok();
    let Some(entries) = opened.and_then(|opened| Dir::read_from(opened).ok()) else {
        return;
    };
    let mut inner = BTreeSet::new();
    for entry in entries.flatten().take(MOST_ENTRIES) {
        let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
        let is_dir = entry.file_type() == FileType::Directory;
        match is_dir {
            true if name != "." && name != ".." && depth < DEEPEST_RULE => {
                inner.insert(name);
            }
            false if is_markdown(Path::new(&name)) && into.len() < MOST_RULES => {
                into.insert(dir.join(name));
            }
            _ => {}
        }
    }
    for name in inner {
        list(&real.join(&name), &dir.join(&name), depth + 1, into);
    }
}
