//! The verbs in groups, for `agentd --help`.

use clap::Command;
use std::fmt::Write as _;

/// In the order in which a new user needs them.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Talk to agents",
        &[
            "chat",
            "run",
            "send",
            "queue",
            "wait",
            "exec",
            "interrupt",
            "continue",
            "approve",
            "deny",
            "answer",
        ],
    ),
    (
        "Watch agents",
        &[
            "list", "status", "show", "context", "logs", "search", "replay", "tasks", "usage",
        ],
    ),
    (
        "Conversations",
        &[
            "reset",
            "rewind",
            "fork",
            "compact",
            "checkpoint",
            "conversations",
            "diff",
            "files",
        ],
    ),
    (
        "Manage agents",
        &[
            "create", "start", "stop", "restart", "edit", "set", "apply", "rename", "export",
            "import", "rm", "restore", "purge", "prune", "hooks", "trust", "untrust", "mcp",
            "secret",
        ],
    ),
    (
        "Service",
        &[
            "acp",
            "daemon",
            "agent",
            "init",
            "config",
            "models",
            "doctor",
            "verify",
            "adopt-copy",
            "completions",
            "demo",
            "help",
        ],
    ),
];

const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}Options:
{options}{after-help}";

/// Lists the verbs of a built command by group.
pub fn list(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let mut text = String::new();
    for (title, verbs) in GROUPS {
        let _infallible = writeln!(text, "{header}{title}:{header:#}");
        for verb in verbs {
            let about = command.find_subcommand(verb).map(about).unwrap_or_default();
            let pad = " ".repeat(WIDTH.saturating_sub(verb.len()));
            let _infallible = writeln!(text, "  {literal}{verb}{literal:#}{pad}  {about}");
        }
        text.push('\n');
    }
    command
        .before_help(text.trim_end().to_owned())
        .help_template(TEMPLATE)
}

fn about(verb: &Command) -> String {
    let mut about = verb
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    for alias in verb.get_visible_aliases() {
        let _infallible = write!(about, " [alias: {alias}]");
    }
    about
}

/// As wide as the longest verb.
const WIDTH: usize = "conversations".len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_in_one_group() {
        let command = crate::cli::command();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, verbs)| *verbs)
            .copied()
            .collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
        assert!(grouped.iter().all(|verb| verb.len() <= WIDTH));
    }
}
