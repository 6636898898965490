//! Commands that run other commands, as far as their arguments show.

use super::evaluates::{decides_later, evaluated};
use super::runners::{RUNNERS, Runner, command_at, variable};
use super::shells::{ShellCall, is_shell, shell_call};
use super::{Assignment, Command, MAX_DEPTH, Word, parse_nested};

/// Finds what the command runs, or that this is decided at run time.
pub(super) fn reveal(command: &mut Command, depth: usize) {
    reveal_words(command, depth);
    if let Some(name) = evaluated(command).map(str::to_owned) {
        command.opaque = Some(name);
    }
}

fn reveal_words(command: &mut Command, depth: usize) {
    let Some(name) = command.words.first() else {
        return;
    };
    let text = name.text.clone();
    // A name that is an option belongs to `time` as a program. A name with blanks would look like a name with
    // arguments to a pattern.
    let is_odd = text.is_empty() || text.starts_with('-') || text.contains(char::is_whitespace);
    let is_plain = name.is_certain() && !is_odd;
    if !is_plain || depth >= MAX_DEPTH {
        command.opaque = Some(text);
        return;
    }
    let program = text.rsplit('/').next().unwrap_or_default();
    if decides_later(program, &command.words) {
        command.opaque = Some(text.clone());
    }
    if is_shell(program) {
        match shell_call(program, &command.words) {
            ShellCall::Script(script) => run_script(command, &script, depth),
            ShellCall::File => {}
            ShellCall::Unknown => command.opaque = Some(text),
        }
        return;
    }
    match program {
        // A deny rule may match the evaluated text, if it can be read.
        "eval" => {
            let certain = command.words.iter().all(Word::is_certain);
            let texts: Vec<&str> = command
                .words
                .iter()
                .skip(1)
                .map(|word| word.text.as_str())
                .collect();
            let script = texts.join(" ");
            if certain {
                run_script(command, &script, depth);
            }
            command.opaque = Some(text);
        }
        "trap" => {
            if let Some(script) = command.words.get(1).map(|word| word.text.clone()) {
                run_script(command, &script, depth);
            }
            command.opaque = Some(text);
        }
        "find" => run_for_each_file(command, depth),
        // These only report what a name means.
        "command" if has_option(command, &["-v", "-V", "-pv"]) => {}
        _ => {
            if let Some(runner) = RUNNERS.iter().find(|runner| runner.name == program) {
                run_last_arguments(command, runner, depth);
            }
        }
    }
}

fn has_option(command: &Command, options: &[&str]) -> bool {
    let first = command.words.get(1);
    first.is_some_and(|word| options.contains(&word.text.as_str()))
}

fn run_script(command: &mut Command, script: &str, depth: usize) {
    command.only_runs = true;
    command.last_shown = command.words.len().saturating_sub(1);
    match parse_nested(script, depth + 1) {
        Ok(script) if script.defines.is_none() => command.runs = script.commands,
        Ok(script) => {
            command.runs = script.commands;
            command.opaque = script.defines;
        }
        Err(_) => command.opaque = command.words.first().map(|word| word.text.clone()),
    }
}

/// `find … -exec command ;`
fn run_for_each_file(command: &mut Command, depth: usize) {
    const RUN: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
    let mut at = 1;
    while at < command.words.len() {
        if !RUN.contains(&command.words[at].text.as_str()) {
            at += 1;
            continue;
        }
        let rest = &command.words[at + 1..];
        let is_end = |at: usize| match rest[at].text.as_str() {
            ";" => true,
            "+" => at > 0 && rest[at - 1].text == "{}",
            _ => false,
        };
        let Some(length) = (0..rest.len()).find(|at| is_end(*at)) else {
            command.opaque = Some("find".to_owned());
            return;
        };
        let mut words = rest[..length].to_vec();
        words.iter_mut().for_each(|word| word.fill_in("{}"));
        command.last_shown = at + 1;
        run(command, words, Vec::new(), depth);
        at += length + 2;
    }
}

fn run_last_arguments(command: &mut Command, runner: &Runner, depth: usize) {
    let Some((variables, from)) = command_at(&command.words, runner) else {
        command.opaque = command.words.first().map(|word| word.text.clone());
        return;
    };
    if from >= command.words.len() {
        return;
    }
    let mut words = command.words[from..].to_vec();
    if runner.name == "xargs" {
        match replaced_by_xargs(&command.words[..from]) {
            Some(placeholder) => words.iter_mut().for_each(|word| word.fill_in(&placeholder)),
            None => words.push(Word::unknown()),
        }
    }
    let variables = command.words[variables..from].iter();
    let assignments = variables.filter_map(|word| variable(&word.text)).collect();
    command.only_runs = runner.only_runs;
    command.last_shown = from;
    run(command, words, assignments, depth);
}

fn run(command: &mut Command, words: Vec<Word>, assignments: Vec<Assignment>, depth: usize) {
    let mut inner = Command {
        assignments,
        words,
        ..Command::default()
    };
    reveal(&mut inner, depth + 1);
    command.runs.push(inner);
}

/// The placeholder that `-I` replaces by a line of input.
fn replaced_by_xargs(options: &[Word]) -> Option<String> {
    options.iter().enumerate().find_map(|(at, word)| {
        let letters = word.text.strip_prefix('-')?;
        let (_, placeholder) = letters
            .split_once('I')
            .filter(|_| !letters.starts_with('-'))?;
        if placeholder.is_empty() {
            options.get(at + 1).map(|word| word.text.clone())
        } else {
            Some(placeholder.to_owned())
        }
    })
}
