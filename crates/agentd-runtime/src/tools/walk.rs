//! Walking the files below a directory, in order, without the files that `.gitignore` or the rules exclude.

use super::blocking::Stop;
use super::context::{CallOf, ToolContext};
use super::escalate::Escalation;
use super::failure::Failure;
use super::ignored::Ignored;
use super::paths;
use super::traits::Traits;
use agentd_core::approval::Ruling;
use agentd_core::permission::Subject;
use agentd_core::spec::Decision;
use globset::{GlobBuilder, GlobMatcher};
use ignore::{DirEntry, WalkBuilder};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A walk ends after this time, with what it has found.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Walk<'a> {
    pub context: &'a ToolContext,
    pub tool: &'static str,
    pub traits: Traits,
    pub root: PathBuf,
    pub glob: Option<GlobMatcher>,
    pub depth: Option<usize>,
    pub stop: &'a Stop,
}

/// What a walk left out.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Way {
    pub out_of_time: bool,
    /// The number of files that the rules do not let this tool see.
    pub denied: usize,
    /// The first error, if a part could not be read.
    pub unreadable: Option<Unreadable>,
    /// The first ignore file that is not used, and why.
    pub unused: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Unreadable {
    pub reason: String,
    /// The error is about the root of the walk.
    pub is_root: bool,
}

impl Walk<'_> {
    /// Calls `show` for each entry below the root, or for the root itself if it is a file.
    pub fn each(&self, mut show: impl FnMut(&DirEntry, &Stop) -> ControlFlow<()>) -> Way {
        let stop = self.stop.within(PATIENCE);
        let mut way = Way::default();
        // If the user approved the root, the entries below it need no further approval.
        let asked = self.decision(&self.root) == Decision::Ask;
        let ignored = Arc::new(Ignored::new(&self.root));
        for entry in self.builder(Arc::clone(&ignored)).build() {
            if stop.check().is_err() {
                break;
            }
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    way.unreadable.get_or_insert_with(|| unreadable(&error));
                    continue;
                }
            };
            if entry.depth() == 0 && entry.path().is_dir() {
                continue;
            }
            if !self.is_wanted(entry.path()) {
                continue;
            }
            match self.decision(entry.path()) {
                Decision::Allow => {}
                Decision::Ask if asked => {}
                Decision::Ask | Decision::Deny => {
                    way.denied += 1;
                    continue;
                }
            }
            if show(&entry, &stop).is_break() {
                break;
            }
        }
        way.out_of_time = stop.is_late();
        way.unused = ignored.unused();
        way
    }

    /// The user's global ignore file is in their home directory, which is not read.
    fn builder(&self, ignored: Arc<Ignored>) -> WalkBuilder {
        let state = self.context.state.clone();
        #[expect(
            clippy::disallowed_methods,
            reason = "it loads no ignore files: its filters are off"
        )]
        let mut builder = WalkBuilder::new(&self.root);
        builder
            .standard_filters(false)
            .max_depth(self.depth)
            .sort_by_file_name(Ord::cmp)
            // The files of git and agentd are not part of the user's work.
            .filter_entry(move |entry| {
                let is_own = entry.file_name() == ".git" || entry.path() == state;
                let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
                entry.depth() == 0 || !is_own && !ignored.contains(entry.path(), is_dir)
            });
        builder
    }

    fn is_wanted(&self, path: &Path) -> bool {
        let Some(glob) = &self.glob else { return true };
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        match below.as_os_str().is_empty() {
            true => path.file_name().is_some_and(|name| glob.is_match(name)),
            false => glob.is_match(below),
        }
    }

    fn decision(&self, path: &Path) -> Decision {
        let names = Subject::Names(paths::names(&self.context.cwd, path));
        let ruling = self.context.rule(&CallOf {
            tool: self.tool,
            traits: self.traits,
            subjects: &[names],
            escalation: &Escalation::None,
            may_be_covered: false,
        });
        match ruling {
            Ruling::Run => Decision::Allow,
            Ruling::Ask(_) => Decision::Ask,
            Ruling::Refuse(_) => Decision::Deny,
        }
    }
}

impl Way {
    /// Notes to add to a result.
    pub fn notes(&self, context: &ToolContext) -> String {
        let mut notes = String::new();
        if self.out_of_time {
            notes.push_str("\n[incomplete: it took too long; give a narrower `path`]");
        }
        if self.denied > 0 {
            let denied = self.denied;
            notes.push_str(&format!("\n[{denied} excluded by the permission rules]"));
        }
        if let Some(unreadable) = &self.unreadable {
            let why = unreadable.why(context);
            notes.push_str(&format!(
                "\n[incomplete, not everything could be read: {why}]"
            ));
        }
        if let Some(unused) = &self.unused {
            notes.push_str(&format!("\n[an ignore file is not used: {unused}]"));
        }
        notes
    }
}

fn unreadable(error: &ignore::Error) -> Unreadable {
    Unreadable {
        reason: error.to_string(),
        is_root: error.depth() == Some(0),
    }
}

impl Unreadable {
    /// The reason, with the sandbox's note if it is about the root.
    fn why(&self, context: &ToolContext) -> String {
        let reason = &self.reason;
        match context.denied(context.file_actor(), reason, &Escalation::None) {
            Some(note) if self.is_root => format!("{reason}. {note}"),
            _ => reason.clone(),
        }
    }
}

/// A glob. One without `/` matches the file name in any directory.
pub(super) fn glob(argument: &str, pattern: &str) -> Result<GlobMatcher, Failure> {
    let anywhere = match pattern.contains('/') {
        true => pattern.trim_start_matches("./").to_owned(),
        false => format!("**/{pattern}"),
    };
    let glob = GlobBuilder::new(&anywhere).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| {
        Failure::new(format!(
            "`{argument}` is not a valid glob: {}. Examples: `*.rs`, `src/**/*.rs`.",
            error.kind()
        ))
    })
}

/// The root of the walk: the given directory or file, or the working directory.
pub(super) fn root(context: &ToolContext, path: Option<&str>) -> Result<PathBuf, Failure> {
    let root = paths::locate(&context.cwd, path.unwrap_or("."))?;
    match root.symlink_metadata() {
        Ok(_) => Ok(root),
        Err(error) => Err(Failure::io(
            "access",
            paths::shown(&context.cwd, &root),
            &error,
        )),
    }
}
