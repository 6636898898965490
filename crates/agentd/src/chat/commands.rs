//! Slash commands: one table, from which the parser, `/help` and the completion read. The user's own commands and the skills
//! of the agent are added to it.

use super::completion::Item;
use super::key_help::KEYS;
pub use super::own_command::Own;
use crate::terminal::HEADING;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Reset,
    Clear,
    Undo,
    Redo,
    Rewind,
    Diff,
    Fork,
    Attach,
    Conversations,
    Compact,
    Model,
    Context,
    Tasks,
    Usage,
    Search,
    Permissions,
    Copy,
    Queue,
    Editor,
    Continue,
    Start,
    Help,
    Quit,
}

pub struct Command {
    pub name: &'static str,
    pub arguments: &'static str,
    pub help: &'static str,
    pub verb: Verb,
}

const fn command(
    name: &'static str,
    arguments: &'static str,
    help: &'static str,
    verb: Verb,
) -> Command {
    Command {
        name,
        arguments,
        help,
        verb,
    }
}

pub const COMMANDS: &[Command] = &[
    command(
        "reset",
        "",
        "begin a new conversation; the old one is kept",
        Verb::Reset,
    ),
    command(
        "clear",
        "",
        "the same, and the log begins there",
        Verb::Clear,
    ),
    command(
        "undo",
        "",
        "return to the previous conversation",
        Verb::Undo,
    ),
    command(
        "redo",
        "",
        "return to the conversation that /undo left",
        Verb::Redo,
    ),
    command(
        "rewind",
        "[TURN|LABEL]",
        "go back to the end of an earlier turn: the conversation, files, or both",
        Verb::Rewind,
    ),
    command(
        "diff",
        "[TURN]",
        "what the conversation, or one turn, changed in files",
        Verb::Diff,
    ),
    command(
        "fork",
        "NAME [TURN|LABEL]",
        "create an agent that continues from here, or from there",
        Verb::Fork,
    ),
    command(
        "attach",
        "FILE",
        "attach a file to the prompt, also one outside of the directory",
        Verb::Attach,
    ),
    command(
        "conversations",
        "",
        "the conversations of this agent, and their turns to go back to",
        Verb::Conversations,
    ),
    command(
        "compact",
        "[INSTRUCTIONS]",
        "replace older messages in the model's window by a summary",
        Verb::Compact,
    ),
    command("model", "[NAME]", "show or change the model", Verb::Model),
    command(
        "context",
        "",
        "what the model is given, and its size",
        Verb::Context,
    ),
    command(
        "tasks",
        "",
        "background tasks and subagents; also Ctrl-T",
        Verb::Tasks,
    ),
    command(
        "usage",
        "",
        "tokens and cost of each conversation",
        Verb::Usage,
    ),
    command(
        "search",
        "WORDS",
        "search everything that was said in this agent",
        Verb::Search,
    ),
    command(
        "permissions",
        "[MODE]",
        "show the rules, or set when you are asked: on-request, always, never",
        Verb::Permissions,
    ),
    command(
        "copy",
        "",
        "copy the last answer to the clipboard of the terminal",
        Verb::Copy,
    ),
    command(
        "queue",
        "",
        "edit, move or remove queued prompts; also Ctrl-Q",
        Verb::Queue,
    ),
    command(
        "editor",
        "",
        "edit the prompt in $VISUAL or $EDITOR; also Ctrl-G",
        Verb::Editor,
    ),
    command(
        "continue",
        "",
        "continue a turn that waits or reached a limit",
        Verb::Continue,
    ),
    command(
        "start",
        "",
        "start an agent that was stopped or has failed",
        Verb::Start,
    ),
    command("help", "", "keys and commands", Verb::Help),
    command(
        "quit",
        "",
        "leave the chat; the agent continues",
        Verb::Quit,
    ),
];

/// What a text in the prompt line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    Prompt {
        text: String,
        /// The part that the user typed.
        typed: String,
    },
    Command(Verb, String),
    Unknown(String),
}

pub fn parse(text: &str, own: &[Own]) -> Meaning {
    let Some(line) = text.strip_prefix('/') else {
        return as_typed(text);
    };
    let (name, arguments) = match line.split_once(char::is_whitespace) {
        Some((name, arguments)) => (name, arguments.trim()),
        None => (line, ""),
    };
    // A path is no command.
    if name.is_empty() || !name.chars().all(is_of_name) {
        return as_typed(text);
    }
    if let Some(command) = COMMANDS.iter().find(|command| command.name == name) {
        return Meaning::Command(command.verb, arguments.to_owned());
    }
    match own.iter().find(|own| own.name == name) {
        Some(own) => Meaning::Prompt {
            text: own.with(arguments),
            typed: arguments.to_owned(),
        },
        None => Meaning::Unknown(name.to_owned()),
    }
}

/// The command that other programs call by this name.
pub fn alias(name: &str) -> Option<Verb> {
    Some(match name {
        "exit" | "q" | "detach" => Verb::Quit,
        "new" => Verb::Reset,
        "cost" => Verb::Usage,
        "resume" => Verb::Conversations,
        "status" => Verb::Context,
        "approvals" => Verb::Permissions,
        _ => return None,
    })
}

/// The command whose name is nearest to a name that there is not.
pub fn nearest<'a>(name: &str, own: &'a [Own]) -> Option<&'a str> {
    let built_in = COMMANDS.iter().map(|it| it.name);
    let all = built_in.chain(own.iter().map(|it| it.name.as_str()));
    let near = all.map(|known| (strsim::osa_distance(name, known), known));
    // A mistake, and one more for every three letters.
    let allowed = 1 + name.chars().count() / 3;
    let near = near.filter(|(distance, known)| *distance <= allowed && *distance < known.len());
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

fn as_typed(text: &str) -> Meaning {
    let text = text.to_owned();
    let typed = text.clone();
    Meaning::Prompt { text, typed }
}

/// Whether the name of a command may contain it.
pub fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':')
}

/// The commands that begin with what was typed, which begins with `/`.
pub fn completions(typed: &str, own: &[Own]) -> Vec<Item> {
    let Some(typed) = typed.strip_prefix('/') else {
        return Vec::new();
    };
    let built_in = COMMANDS.iter().map(|it| (it.name, it.help));
    let of_user = own.iter().map(|it| (it.name.as_str(), it.help.as_str()));
    let all = built_in.chain(of_user);
    let found = all.filter(|(name, _)| name.starts_with(typed));
    let item = |(name, help): (&str, &str)| Item {
        text: format!("/{name} "),
        help: help.to_owned(),
    };
    found.map(item).collect()
}

/// The page of `/help`, in our colours.
pub fn help(own: &[Own]) -> Vec<String> {
    let mut lines = vec![format!("{HEADING}Commands{HEADING:#}")];
    let built_in = COMMANDS.iter().map(|it| {
        let gap = if it.arguments.is_empty() { "" } else { " " };
        (format!("/{}{gap}{}", it.name, it.arguments), it.help)
    });
    let of_user = own.iter();
    let of_user = of_user.map(|it| (format!("/{}", it.name), it.help.as_str()));
    lines.extend(built_in.chain(of_user).map(row));
    lines.push(String::new());
    lines.push(format!("{HEADING}Keys{HEADING:#}"));
    let keys = KEYS.iter().map(|&(key, help)| (key.to_owned(), help));
    lines.extend(keys.map(row));
    lines
}

fn row((left, help): (String, &str)) -> String {
    format!("  {left:<26} {help}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<Own> {
        let review = Own {
            name: "review".to_owned(),
            help: "Review a file".to_owned(),
            prompt: "Review $1 for $2. All: $ARGUMENTS; costs $ and $5x".to_owned(),
        };
        vec![review, Own::skill("release", "/skills/release/SKILL.md")]
    }

    #[test]
    fn a_text_is_a_command_a_prompt_or_a_mistake() {
        let own = own();
        let parse = |text: &str| parse(text, &own);
        let prompt = as_typed;
        assert_eq!(parse("hello /reset"), prompt("hello /reset"));
        assert_eq!(parse("/etc/hosts is wrong"), prompt("/etc/hosts is wrong"));
        assert_eq!(parse("/ x"), prompt("/ x"));
        let expected = Meaning::Command(Verb::Rewind, "3".to_owned());
        assert_eq!(parse("/rewind  3 "), expected);
        assert_eq!(parse("/rest"), Meaning::Unknown("rest".to_owned()));
    }

    fn of_file(text: &str, typed: &str) -> Meaning {
        Meaning::Prompt {
            text: text.to_owned(),
            typed: typed.to_owned(),
        }
    }

    #[test]
    fn own_commands_are_prompts_with_arguments() {
        let own = own();
        let expected = "Review a.rs for bugs. All: a.rs bugs; costs $ and x";
        let found = parse("/review a.rs bugs", &own);
        assert_eq!(found, of_file(expected, "a.rs bugs"));
        let expected =
            "Use the skill `release`: read /skills/release/SKILL.md and follow it.\n\n1.2";
        let found = parse("/release 1.2", &own);
        assert_eq!(found, of_file(expected, "1.2"));
    }

    #[test]
    fn a_mistyped_command_has_a_nearest_one() {
        let own = own();
        assert_eq!(nearest("rewnd", &own), Some("rewind"));
        assert_eq!(nearest("reveiw", &own), Some("review"));
        assert_eq!(nearest("zzzz", &own), None);
    }

    #[test]
    fn no_alias_hides_a_command() {
        for command in COMMANDS {
            assert_eq!(alias(command.name), None, "{}", command.name);
        }
    }

    #[test]
    fn every_command_is_completed_and_explained() {
        let own = own();
        let texts = |typed: &str| -> Vec<String> {
            let items = completions(typed, &own).into_iter();
            items.map(|item| item.text).collect()
        };
        assert_eq!(
            texts("/re"),
            ["/reset ", "/redo ", "/rewind ", "/review ", "/release "]
        );
        assert_eq!(texts("re"), [""; 0]);
        let help = help(&own).join("\n");
        for command in COMMANDS {
            assert!(help.contains(&format!("/{}", command.name)), "{help}");
        }
        assert!(help.contains("/review"), "{help}");
    }
}
