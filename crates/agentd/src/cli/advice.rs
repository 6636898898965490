//! What to type instead of a command line that cannot be parsed: habits from other programs, a prompt without quotes, and
//! the agents that a verb could be about.

use crate::complete;
use clap::error::{ContextKind, ContextValue, ErrorKind};

const RUN: &str = "`agentd run \"…\"` answers one prompt, `agentd run --continue \"…\"` continues its conversation, and `agentd` alone opens the chat";
const RESUME: &str = "`agentd` alone opens the last agent of this directory, `agentd chat NAME` another one of `agentd list`, and `agentd run --continue \"…\"` continues the conversation of the last one-shot agent";
const MODEL: &str = "`agentd run --model NAME \"…\"` and `agentd create NAME --model …` choose a model, `agentd set NAME model=…` changes it; in the chat: /model NAME";
const FREE: &str = "tools run in a sandbox and need no approval inside it; `--sandbox` and `--approval` change that (docs/permissions.md)";

/// What clap says is wrong, as far as the advice depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// An unexpected argument that is not an option.
    Word,
    /// The name of an agent is missing.
    NoName,
    Other,
}

impl Wrong {
    pub fn of(error: &clap::Error) -> Self {
        let about = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(one)) => vec![one.as_str()],
            Some(ContextValue::Strings(several)) => several.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        match error.kind() {
            ErrorKind::UnknownArgument if about.iter().all(|it| !it.starts_with('-')) => Self::Word,
            ErrorKind::MissingRequiredArgument if about.iter().any(|it| is_name(it)) => {
                Self::NoName
            }
            _ => Self::Other,
        }
    }
}

/// `<NAME>`, `<NAME>...`.
fn is_name(shown: &str) -> bool {
    shown.starts_with("<NAME>")
}

/// The advice for these arguments, without the program's name.
pub fn advice(args: &[String], wrong: Wrong) -> Option<String> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match wrong {
        Wrong::NoName => {
            // No value was given, so what stands before the first option is the verb.
            let verb = words.iter().take_while(|word| !word.starts_with('-'));
            let verb: Vec<&str> = verb.copied().collect();
            Some(of_agents(&verb.join(" "), &complete::agents_here()))
        }
        Wrong::Word | Wrong::Other => habit(&words, wrong),
    }
}

/// The agents of this directory that the verb could be about.
fn of_agents(verb: &str, here: &[String]) -> String {
    match here {
        [] => "`agentd list` shows the agents".to_owned(),
        [one] => format!("the agent of this directory is {one}: `agentd {verb} {one} …`"),
        several => format!("agents of this directory: {}", several.join(", ")),
    }
}

fn habit(words: &[&str], wrong: Wrong) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let is_prompt = first.contains(char::is_whitespace) && !first.starts_with('-');
    let has = |names: &[&str]| {
        let mut given = rest.iter().filter_map(|word| word.split('=').next());
        given.any(|name| names.contains(&name))
    };
    match *first {
        _ if is_prompt => Some(RUN.to_owned()),
        "-p" | "--print" | "exec" => Some(RUN.to_owned()),
        "-c" | "--continue" | "-r" | "--resume" | "resume" => Some(RESUME.to_owned()),
        "-m" | "--model" => Some(MODEL.to_owned()),
        "chat" | "send" if has(&["--model", "-m"]) => Some(MODEL.to_owned()),
        "run" if has(&["-m"]) => Some(MODEL.to_owned()),
        "run" if has(&["-p", "--print", "--prompt"]) => {
            Some("the prompt needs no option: `agentd run \"…\"`".to_owned())
        }
        "run" | "chat" | "create"
            if has(&["--yolo", "--dangerously-skip-permissions", "--full-auto"]) =>
        {
            Some(FREE.to_owned())
        }
        "chat" if wrong == Wrong::Word => Some(
            "the chat takes no prompt here: `agentd send NAME \"…\"` sends one, and `agentd chat NAME` shows the answer"
                .to_owned(),
        ),
        "run" if wrong == Wrong::Word => Some(quoted("run", rest)),
        "send" if wrong == Wrong::Word => {
            let (name, prompt) = rest.split_first()?;
            Some(quoted(&format!("send {name}"), prompt))
        }
        "queue" | "tasks" | "conversations" => match rest {
            ["list" | "ls" | "show", name, ..] => Some(format!("`agentd {first} {name}`")),
            _ => None,
        },
        _ => None,
    }
}

/// The words of a prompt as one argument.
fn quoted(verb: &str, words: &[&str]) -> String {
    match words.iter().any(|word| word.starts_with('-')) {
        true => format!("a prompt of several words needs quotes: `agentd {verb} \"…\"`"),
        false => format!(
            "a prompt of several words needs quotes: `agentd {verb} \"{}\"`",
            words.join(" ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn habit(line: &str, wrong: Wrong) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        super::habit(&words, wrong).unwrap_or_default()
    }

    /// Users of other programs type a prompt where agentd has a verb.
    #[test]
    fn a_prompt_without_a_verb_gets_advice() {
        let words = super::habit(&["fix the bug"], Wrong::Other);
        assert_eq!(words.as_deref(), Some(RUN));
        for line in ["-p fix", "exec fix"] {
            assert_eq!(habit(line, Wrong::Other), RUN, "{line}");
        }
        for line in ["chatt", "run --modle x", "logs"] {
            assert_eq!(habit(line, Wrong::Other), "", "{line}");
        }
    }

    #[test]
    fn habits_of_other_programs_lead_to_what_agentd_has() {
        for (line, wrong, expected) in [
            ("-c", Wrong::Other, "agentd run --continue"),
            ("--resume x", Wrong::Other, "agentd chat NAME"),
            ("resume", Wrong::Other, "agentd chat NAME"),
            ("--model x", Wrong::Other, "agentd run --model"),
            ("chat --model=x", Wrong::Other, "/model NAME"),
            ("run -m x hello", Wrong::Other, "--model NAME"),
            ("run -p hello", Wrong::Other, "needs no option"),
            ("run --yolo hello", Wrong::Other, "--approval"),
            ("chat coder hello", Wrong::Word, "agentd send NAME"),
            ("run hello world", Wrong::Word, "agentd run \"hello world\""),
            (
                "send coder fix it",
                Wrong::Word,
                "agentd send coder \"fix it\"",
            ),
            ("queue list coder", Wrong::Other, "`agentd queue coder`"),
            ("tasks list coder", Wrong::Other, "`agentd tasks coder`"),
        ] {
            let text = habit(line, wrong);
            assert!(text.contains(expected), "{line}: {text}");
        }
    }

    #[test]
    fn a_verb_without_a_name_lists_the_agents_of_the_directory() {
        let here = ["coder", "t2"].map(str::to_owned);
        assert_eq!(
            of_agents("logs", &here),
            "agents of this directory: coder, t2"
        );
        assert!(of_agents("logs", &here[..1]).contains("`agentd logs coder …`"));
        assert!(of_agents("logs", &[]).contains("agentd list"));
    }
}
