//! Which tools an agent has, by its settings and by its model.

use super::tool::{AnyTool, Tool as _, known};
use super::{
    Error, Kinds, ToolboxOptions, agent, apply_patch, edit_file, fetch_url, list_files, read_file,
    reset_conversation, search_files, shell, task_output, task_stop, update_plan, write_file,
};
use agentd_core::catalog::{EditForm, ShellForm, ToolForms};
use agentd_core::subagents;

/// All tools, in the order in which they are declared to the model.
pub(super) fn all(kinds: Option<&Kinds>, forms: ToolForms) -> Vec<Box<dyn AnyTool>> {
    let kinds = kinds.cloned().unwrap_or_default();
    vec![
        match forms.shell {
            ShellForm::Line => known::<shell::Shell>(),
            ShellForm::Words => known::<shell::ShellWords>(),
        },
        known::<read_file::ReadFile>(),
        known::<write_file::WriteFile>(),
        known::<edit_file::EditFile>(),
        known::<apply_patch::ApplyPatch>(),
        known::<list_files::ListFiles>(),
        known::<search_files::SearchFiles>(),
        known::<task_output::TaskOutput>(),
        known::<task_stop::TaskStop>(),
        known::<fetch_url::FetchUrl>(),
        known::<update_plan::UpdatePlan>(),
        known::<reset_conversation::ResetConversation>(),
        Box::new(agent::Agent(kinds)),
    ]
}

/// Whether the agent has this tool. A model that was trained on patches has `apply_patch` in place of the two tools that
/// write files, if it would have both; a user who names `apply_patch`, or only one of the two, gets what was named.
pub(super) fn is_wanted(name: &str, options: &ToolboxOptions) -> bool {
    let names = options.tools.as_ref();
    let named = |name: &str| names.is_some_and(|names| names.iter().any(|named| named == name));
    let writes = [write_file::WriteFile::NAME, edit_file::EditFile::NAME];
    let has_both = names.is_none() || writes.into_iter().all(named);
    let by_patch =
        options.forms.edits == EditForm::Patch && has_both && !named(apply_patch::ApplyPatch::NAME);
    match (name, &options.subagents) {
        (subagents::TOOL, None) => false,
        (subagents::TOOL, Some(kinds)) => named(name) || !kinds.0.is_empty(),
        (fetch_url::FetchUrl::NAME, _) => named(name),
        (reset_conversation::ResetConversation::NAME, _) => options.may_reset,
        (apply_patch::ApplyPatch::NAME, _) => by_patch || named(name),
        (name, _) if writes.contains(&name) && by_patch => false,
        _ => named(name) || names.is_none(),
    }
}

pub(super) fn check(wanted: &[String], tools: &[Box<dyn AnyTool>]) -> Result<(), Error> {
    for name in wanted {
        if tools.iter().any(|tool| tool.name() == name) {
            continue;
        }
        let near = tools.iter().map(|tool| {
            let distance = strsim::damerau_levenshtein(name, tool.name());
            (distance, tool.name())
        });
        let nearest = near.min().filter(|(distance, _)| *distance <= 4);
        return Err(Error::UnknownTool {
            name: name.clone(),
            nearest: nearest.map(|(_, name)| name.to_owned()),
            known: names(tools),
        });
    }
    Ok(())
}

pub(super) fn names(tools: &[Box<dyn AnyTool>]) -> String {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}
