//! `list_files`: lists a directory.

use super::arguments::whole;
use super::blocking::{Cancelled, Stop};
use super::context::{ToolContext, Within};
use super::failure::{Failure, said};
use super::file_work::FileWork;
use super::named_files;
use super::output::{self, number};
use super::paths;
use super::tool::{Job, Tool, read_in};
use super::traits::Traits;
use super::walk::{self, Walk, Way};
use agentd_core::id::CallId;
use agentd_core::message::CallOutcome;
use agentd_core::permission::Subject;
use agentd_core::turn::Finished;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;

/// How many entries are shown; the others are counted.
const SHOWN: usize = 1000;
/// How many entries are counted at most.
const COUNTED: usize = 200_000;

pub(super) struct ListFiles;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: Option<String>,
    pattern: Option<String>,
    #[serde(default, deserialize_with = "whole")]
    depth: Option<u64>,
}

#[async_trait]
impl Tool for ListFiles {
    const NAME: &'static str = "list_files";
    const TRAITS: Traits = Traits {
        parallel: true,
        idempotent: true,
        approval: false,
    };
    type Arguments = Arguments;

    fn description() -> String {
        "Lists the files and directories below a directory, to see what there is or to find files by name. \
         Directories end with `/`. What .gitignore excludes is left out, and so is .git; use `ls -a` in shell to \
         see it. To find files by their content, use search_files."
            .into()
    }

    fn parameters() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "The directory. Default: the working directory."
                },
                "pattern": {
                    "type": "string",
                    "description": "Only paths that match this glob, such as `*.rs` or `src/**/*.rs`."
                },
                "depth": {
                    "type": "integer",
                    "description": "How many levels to list; 1 lists the directory itself. Default: all."
                }
            },
            "additionalProperties": false
        })
    }

    fn subjects(context: &ToolContext, arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
        named_files::one(context, arguments.path.as_deref().unwrap_or("."), None)
    }

    async fn run(job: Job<Arguments>, cancelled: Cancelled) -> Finished {
        let found = read_in(Arc::clone(&job.context), cancelled, job.arguments).await;
        match found {
            Ok(found) => said(CallOutcome::Ok, found.told(&job.context, &job.call)),
            Err(finished) => finished,
        }
    }
}

/// What a walk found.
#[derive(Serialize, Deserialize)]
pub(super) struct Listed {
    /// The first entries, a line each.
    text: String,
    count: usize,
    way: Way,
}

impl FileWork for Arguments {
    const NAME: &'static str = "list_files";
    type Report = Listed;

    fn carry_out(&self, context: Within<'_>, stop: &Stop) -> Result<Listed, Failure> {
        let context = context.context;
        let pattern = self.pattern.as_deref();
        let walk = Walk {
            context,
            tool: ListFiles::NAME,
            traits: ListFiles::TRAITS,
            root: walk::root(context, self.path.as_deref())?,
            glob: pattern.map(|it| walk::glob("pattern", it)).transpose()?,
            depth: self.depth.map(|depth| depth.max(1) as usize),
            stop,
        };
        let mut text = String::new();
        let mut count = 0;
        let way = walk.each(|entry, _| {
            count += 1;
            if count <= SHOWN {
                text.push_str(&paths::shown(&context.cwd, entry.path()));
                let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
                text.push_str(if is_dir { "/\n" } else { "\n" });
            }
            match count < COUNTED {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        Ok(Listed { text, count, way })
    }
}

impl Listed {
    fn told(mut self, context: &ToolContext, call: &CallId) -> String {
        let count = self.count;
        if count == 0 {
            let none = "No files found; files that .gitignore excludes are not listed.";
            self.text.push_str(none);
        }
        let mut text = output::capped(context, call, self.text.trim_end());
        if count > SHOWN {
            let at_least = if count < COUNTED { "" } else { "at least " };
            text.push_str(&format!(
                "\n[the first {} of {at_least}{}; give a `path`, a `pattern` or a `depth`]",
                number(SHOWN as u64),
                number(count as u64)
            ));
        }
        text + &self.way.notes(context)
    }
}

#[cfg(test)]
mod tests;
