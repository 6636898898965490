//! Rules about shell lines: which commands of a line they cover or match.

use super::glob;
use super::shell::{self, Command, Script, Word};
use super::verdict::{Because, Verdict};
use crate::spec::{Decision, Rule};

/// The pattern that means any line.
const ANY: &str = "*";

/// What the rules say about a line. All of them are about the tool that runs it.
pub(super) fn verdict(rules: &[&Rule], line: &str) -> Option<Verdict> {
    let script = shell::parse(line).ok();
    let said = |decision, because| Some(Verdict { decision, because });
    for decision in [Decision::Deny, Decision::Ask] {
        let mut rules = rules.iter().filter(|rule| rule.decision == decision);
        let matched = rules.find_map(|rule| matched_by(rule, line, script.as_ref()));
        if let Some(because) = matched {
            return said(decision, because);
        }
    }
    let is_restricting = |rule: &&&Rule| rule.decision != Decision::Allow && rule.pattern.is_some();
    let restricting = rules.iter().filter(is_restricting);
    if let Some(because) = uncertainty(restricting, script.as_ref()) {
        return said(Decision::Ask, because);
    }
    let is_allowing = |rule: &&&Rule| rule.decision == Decision::Allow;
    let allowing: Vec<&Rule> = rules.iter().filter(is_allowing).copied().collect();
    let because = allowed_by(&allowing, line, script.as_ref())?;
    said(Decision::Allow, because)
}

/// How a deny or ask rule matches the line, or any command in it.
fn matched_by(rule: &Rule, line: &str, script: Option<&Script>) -> Option<Because> {
    // A line that ends with a backslash continues on the next one.
    let whole = line.replace("\\\n", "");
    let pattern = rule.pattern.as_deref().unwrap_or(ANY);
    let mut texts = vec![whole.clone(), whole.trim().to_owned()];
    match script {
        Some(script) => script.each(|command| texts.extend(spellings(command))),
        None => texts.extend(pieces(&whole)),
    }
    let matched = texts.into_iter().find(|text| glob::fits(pattern, text))?;
    let rule = rule.clone();
    Some(Because::Rule { rule, matched })
}

/// The spellings by which a deny or ask rule may match the command: as written, with the program's name without its
/// path, with its variables, and without the options between `git` and its subcommand.
fn spellings(command: &Command) -> Vec<String> {
    let Some((name, arguments)) = command.words.split_first() else {
        return Vec::new();
    };
    let join = |name: &str, words: &[Word]| {
        let words = words.iter().map(|word| word.text.as_str());
        [name]
            .into_iter()
            .chain(words)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let program = name.text.rsplit('/').next().unwrap_or_default();
    let text = join(&name.text, arguments);
    let mut texts = vec![text.trim_end().to_owned(), join(program, arguments)];
    if let Some(words) = without_git_options(command) {
        texts.push(join(program, &words[1..]));
    }
    let assignments = command.assignments.iter().map(|it| it.text.as_str());
    let with_assignments: Vec<&str> = assignments.chain([text.as_str()]).collect();
    texts.push(with_assignments.join(" "));
    texts.push(text);
    texts
}

/// A call of git without the options before its subcommand, if there are any: a rule about `git push` also matches
/// `git -C . push`.
fn without_git_options(command: &Command) -> Option<Vec<Word>> {
    let (name, arguments) = command.words.split_first()?;
    let is_git = name.text.rsplit('/').next() == Some("git");
    let options = shell::git_options(arguments);
    let rest = arguments.get(options..)?;
    (is_git && options > 0).then(|| [std::slice::from_ref(name), rest].concat())
}

/// The parts of an unparsable line that look like commands. A deny rule that matches one of them matches the line.
fn pieces(line: &str) -> impl Iterator<Item = String> {
    let parts = line.split([';', '&', '|', '<', '>', '`', '\n', '(', ')', '{', '}']);
    parts.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Why a rule that matches nothing in the line might still apply to it.
fn uncertainty<'a>(
    rules: impl Iterator<Item = &'a &'a Rule>,
    script: Option<&Script>,
) -> Option<Because> {
    let mut rules = rules.peekable();
    rules.peek()?;
    let Some(script) = script else {
        return Some(Because::Unparsed);
    };
    if let Some(what) = script.opaque() {
        return Some(Because::Opaque(what.to_owned()));
    }
    rules.find_map(|rule| {
        let start = glob::literal_start(rule.pattern.as_deref()?);
        let mut text = None;
        script.each(|command| {
            let mut ways = [Some(command.words.clone()), without_git_options(command)].into_iter();
            if ways.any(|words| words.is_some_and(|words| could_start_with(start, &words))) {
                text = spellings(command).into_iter().next();
            }
        });
        text.map(|text| Because::CouldMatch {
            rule: (*rule).clone(),
            text,
        })
    })
}

/// Whether a word that is only known at run time stands where the start of a pattern names another one: `git $x`
/// for `git push*`.
fn could_start_with(start: &str, words: &[Word]) -> bool {
    let known = known_text(words);
    let certain: String = known.iter().map_while(|c| *c).collect();
    let program_at = words
        .first()
        .and_then(|name| name.text.rfind('/'))
        .map_or(0, |at| at + 1);
    let by_name = certain.get(program_at..).unwrap_or_default();
    let could_be = |certain: &str| certain.len() < start.len() && start.starts_with(certain);
    known.contains(&None) && (could_be(&certain) || could_be(by_name))
}

/// The text of the words, separated by spaces, with `None` for each part that is only known at run time. A word that
/// expands to nothing disappears, so the space after it is unknown too.
fn known_text(words: &[Word]) -> Vec<Option<char>> {
    let mut text: Vec<Option<char>> = Vec::new();
    for word in words {
        if text.last().is_some_and(Option::is_some) {
            text.push(Some(' '));
        }
        let certain = word.certain.unwrap_or(word.text.len());
        text.extend(word.text[..certain].chars().map(Some));
        if !word.is_certain() {
            text.push(None);
        }
    }
    text
}

/// Which allow rules cover the whole line.
fn allowed_by(rules: &[&Rule], line: &str, script: Option<&Script>) -> Option<Because> {
    let covers_line = |rule: &&&Rule| match rule.pattern.as_deref() {
        None | Some(ANY) => true,
        Some(pattern) => pattern == line || shows_line(pattern, line, script),
    };
    if let Some(rule) = rules.iter().find(covers_line) {
        return Some(Because::Rule {
            rule: (*rule).clone(),
            matched: line.to_owned(),
        });
    }
    let script = script?;
    if script.defines.is_some() || script.commands.is_empty() {
        return None;
    }
    let mut used = Vec::new();
    let mut commands = script.commands.iter();
    if !commands.all(|command| is_covered(rules, command, &mut used)) {
        return None;
    }
    match used.as_slice() {
        [] => None,
        [rule] => Some(Because::Rule {
            rule: (*rule).clone(),
            matched: line.to_owned(),
        }),
        _ => Some(Because::Rules(used.into_iter().cloned().collect())),
    }
}

/// Whether the rules together allow the command and everything that it runs. Adds these rules to `used`.
fn is_covered<'a>(rules: &[&'a Rule], command: &Command, used: &mut Vec<&'a Rule>) -> bool {
    if command.opaque.is_some() || !command.writes.is_empty() {
        return false;
    }
    if command.words.is_empty() {
        return command.assignments.is_empty();
    }
    let mut covering = rules.iter().filter(|rule| covers(rule, command));
    let shows_what_runs = |rule: &&&&Rule| {
        let shown = command.words.get(..=command.last_shown).unwrap_or_default();
        let shown: Vec<&str> = shown.iter().map(|word| word.text.as_str()).collect();
        let pattern = rule.pattern.as_deref().unwrap_or_default();
        glob::literal_start(pattern).starts_with(&shown.join(" "))
    };
    let by_itself = covering
        .clone()
        .find(|rule| command.runs.is_empty() || shows_what_runs(&rule));
    let rule = by_itself.or_else(|| covering.next());
    if let Some(rule) = rule
        && !used.contains(rule)
    {
        used.push(rule);
    }
    if by_itself.is_some() {
        return true;
    }
    let mut runs = command.runs.iter();
    let may_run = command.only_runs && command.assignments.is_empty() || rule.is_some();
    may_run && !command.runs.is_empty() && runs.all(|inner| is_covered(rules, inner, used))
}

fn covers(rule: &Rule, command: &Command) -> bool {
    let Some(pattern) = rule.pattern.as_deref() else {
        return true;
    };
    let Some(pattern) = without_shown_assignments(pattern, command) else {
        return false;
    };
    glob::fits_whatever(pattern, &known_text(&command.words))
}

/// The rest of the pattern after the command's assignments, each of which the pattern must contain: `A=1 make *`
/// covers `A=1 make test`.
fn without_shown_assignments<'a>(mut pattern: &'a str, command: &Command) -> Option<&'a str> {
    for assignment in &command.assignments {
        let (shown, rest) = pattern.split_once(' ')?;
        let is_shown = shown.strip_prefix(&assignment.name)?.starts_with('=');
        if !is_shown || !glob::fits(shown, &assignment.text) {
            return None;
        }
        pattern = rest;
    }
    Some(pattern)
}

/// Whether a pattern with operators covers the whole line, such as `make * | tail *`: the line must have the same
/// operators in the same order, so that no `*` can match one.
fn shows_line(pattern: &str, line: &str, script: Option<&Script>) -> bool {
    let Some(script) = script.filter(|script| script.defines.is_none()) else {
        return false;
    };
    let mut is_plain = true;
    script.each(|command| {
        let is_certain = command.words.iter().all(Word::is_certain);
        let has_more =
            command.opaque.is_some() || !command.runs.is_empty() || !command.assignments.is_empty();
        is_plain &= is_certain && !has_more;
    });
    let has_operators = operators(pattern).next().is_some();
    is_plain && has_operators && operators(line).eq(operators(pattern)) && glob::fits(pattern, line)
}

/// Characters that begin another command or a redirection. Quotes are ignored: an operator that the shell would not
/// see only makes a rule cover less.
fn operators(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| {
        matches!(
            c,
            ';' | '&' | '|' | '<' | '>' | '`' | '\n' | '(' | ')' | '$'
        )
    })
}
