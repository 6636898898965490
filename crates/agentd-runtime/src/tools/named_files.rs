//! The files that a call of a file tool names, for the rules: each by its path as given, and by the path without links, which
//! only the view of the file tools tells.

use super::blocking::Stop;
use super::context::{ToolContext, Within};
use super::escalate::Escalation;
use super::failure::Failure;
use super::file_work::{FileWork, within};
use super::paths;
use agentd_core::permission::Subject;
use serde::{Deserialize, Serialize};

/// Finds out what paths lead to.
#[derive(Serialize, Deserialize)]
pub(super) struct Resolve {
    given: Vec<String>,
}

impl FileWork for Resolve {
    const NAME: &'static str = "resolve";
    /// For each path its names; another list of names if links make it a different file.
    type Report = Vec<Vec<Vec<String>>>;

    fn carry_out(&self, context: Within<'_>, _stop: &Stop) -> Result<Self::Report, Failure> {
        let given = self.given.iter();
        let names = given.map(|given| {
            let path = paths::locate(&context.cwd, given)?;
            Ok(paths::names_of_file(&context.cwd, &path))
        });
        names.collect()
    }
}

/// The subjects for the rules, for a call that names these paths; for each path one or two.
pub(super) fn all(
    context: &ToolContext,
    given: &[&str],
    escalate: Option<&str>,
) -> Result<Vec<Vec<Subject>>, Failure> {
    let work = Resolve {
        given: given.iter().map(|given| (*given).to_owned()).collect(),
    };
    let names = within(context, &Escalation::None, &work, &Stop::default())?;
    let mut subjects: Vec<Vec<Subject>> = names.into_iter().map(named).collect();
    if escalate.is_some() {
        // The call may find what the host has there.
        let of_host = work.carry_out(context.under(&Escalation::None), &Stop::default())?;
        for (subjects, names) in subjects.iter_mut().zip(of_host) {
            subjects.extend(named(names));
        }
    }
    Ok(subjects)
}

/// The same for one path.
pub(super) fn one(
    context: &ToolContext,
    given: &str,
    escalate: Option<&str>,
) -> Result<Vec<Subject>, Failure> {
    let subjects = all(context, &[given], escalate)?;
    Ok(subjects.into_iter().flatten().collect())
}

/// The same for a call that is checked before the user is asked about it. `None` if it asks to leave the sandbox: only an
/// approved call may look at files outside of it.
pub(super) fn checked_first(
    context: &ToolContext,
    given: &[&str],
    escalate: Option<&str>,
) -> Option<Vec<Subject>> {
    match escalate {
        None => Some(
            all(context, given, None)
                .ok()?
                .into_iter()
                .flatten()
                .collect(),
        ),
        Some(_) => None,
    }
}

fn named(names: Vec<Vec<String>>) -> Vec<Subject> {
    names.into_iter().map(Subject::Names).collect()
}
