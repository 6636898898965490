//! Words that are retired, each with the word that replaced it: identifiers in code, phrases in documentation, help and
//! messages, and in comments the words that do not say who acts.

use super::lexer;
use super::tree::{self, File, Finding};

/// Identifiers, in all Rust code.
const IDENTIFIERS: &[(&str, &str)] = &[
    ("desk", "handle"),
    ("Desk", "AgentHandle"),
    ("Guard", "AgentGuard"),
    ("bury", "on_exit"),
    ("births", "children"),
    ("seat", "runtime_lock"),
    ("Seat", "RuntimeLock"),
    ("kin", "subagents"),
    ("errand", "parent_link"),
    ("Errand", "ParentLink"),
    ("hire", "spawn"),
    ("Hire", "Spawn"),
    ("dismiss", "cancel"),
    ("Dismiss", "Cancel"),
    ("tell_the_truth", "resolve_after_failed_commit"),
    ("Said", "JsonBody"),
    ("go_on", "continue_turn"),
    ("Occasion", "HookInput"),
    ("occasion", "hook_input"),
    ("Fire", "HookInvocation"),
    ("FireId", "InvocationId"),
    ("Place", "BranchPoint"),
    ("mutant", "injected_bug"),
    ("Mutant", "InjectedBug"),
    ("House", "TestDaemon"),
    ("house", "daemon"),
    ("World", "Testbed"),
    ("world", "testbed"),
    ("Stage", "Fixture"),
    ("stage", "fixture"),
    ("folder", "dir"),
    ("Folder", "Dir"),
];

/// Names of functions: as other identifiers these are ordinary words.
const FUNCTIONS: &[(&str, &str)] = &[
    ("mind", "reconcile"),
    ("rest", "checkpoint"),
    ("settle", "wait_caught_up"),
    ("doubt", "mark_stale"),
    ("quiet", "wait_idle"),
    ("supply", "merge_env"),
    ("bring", "merge_env"),
];

/// Phrases, in documentation, help and the string literals of the product.
const PHRASES: &[(&str, &str)] = &[
    (
        "somebody",
        "the one who acts: the daemon, the runtime, the client, the user",
    ),
    (
        "nobody",
        "the one who does not act, or `no process`, `no client`",
    ),
    (
        "whoever",
        "the one who acts: the daemon, the runtime, the client, the user",
    ),
    ("anybody", "the one who acts: another user, any process"),
    (
        "everybody",
        "those who are meant: every client, all callers",
    ),
    ("folder", "directory"),
    ("folders", "directories"),
    ("mutant", "injected bug"),
    ("mutants", "injected bugs"),
    ("your leave", "approval"),
    ("put away", "archived"),
    ("puts away", "archives"),
    ("take out again", "restore"),
    ("takes out again", "restores"),
    ("taken out again", "restored"),
];

/// The phrases that are retired in comments too, because a comment names the actor.
const ACTORS: &[&str] = &["somebody", "nobody", "whoever", "anybody", "everybody"];

fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        if file.is_rust() && file.krate().is_some() {
            let lexed = lexer::lex(&file.text);
            findings.extend(identifiers(file, &lexed.code));
            let comments = lexed.comments.iter();
            findings.extend(comments.flat_map(|(line, text)| actors(file, *line, text)));
            if file.is_src() && !file.is_tests() {
                let strings = lexed.strings.iter();
                findings.extend(strings.flat_map(|(line, text)| phrases(file, *line, text)));
            }
        } else if is_documentation(file) {
            let lines = file.text.lines().enumerate();
            findings.extend(lines.flat_map(|(n, line)| phrases(file, n + 1, line)));
        }
    }
    findings
}

/// The texts of the help are golden files.
fn is_documentation(file: &File) -> bool {
    file.path.ends_with(".md") || file.path.contains("/golden/help/")
}

fn identifiers(file: &File, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut at = 0;
        for word in line.split(|c: char| !c.is_alphanumeric() && c != '_') {
            let end = at + word.len();
            let retired = IDENTIFIERS.iter().find(|(retired, _)| *retired == word);
            let is_function = line[end..].starts_with('(') || line[..at].ends_with("fn ");
            let function = FUNCTIONS.iter().find(|(retired, _)| *retired == word);
            if let Some((_, now)) = retired.or(function.filter(|_| is_function)) {
                let message = format!("`{word}` is retired: `{now}`");
                findings.push(Finding::new(file, number + 1, "retired", message));
            }
            let separator = line[end..].chars().next().map_or(0, char::len_utf8);
            at = end + separator;
        }
    }
    findings
}

/// In a comment. What is in backquotes is a name, such as the user `nobody`.
fn actors(file: &File, line: usize, text: &str) -> Vec<Finding> {
    let plain: Vec<&str> = text.split('`').step_by(2).collect();
    let retired = PHRASES.iter().filter(|(phrase, _)| ACTORS.contains(phrase));
    found(file, line, &plain.join(" "), retired)
}

fn phrases(file: &File, line: usize, text: &str) -> Vec<Finding> {
    found(file, line, text, PHRASES.iter())
}

fn found<'a>(
    file: &File,
    line: usize,
    text: &str,
    phrases: impl Iterator<Item = &'a (&'static str, &'static str)>,
) -> Vec<Finding> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let text = format!(" {} ", words.join(" "));
    let retired = phrases.filter(|(phrase, _)| text.contains(&format!(" {phrase} ")));
    let message = |(phrase, now): &(&str, &str)| format!("`{phrase}` is retired: {now}");
    retired
        .map(|retired| Finding::new(file, line, "retired", message(retired)))
        .collect()
}

#[test]
fn no_retired_word_comes_back() -> std::io::Result<()> {
    tree::assert_none(&check(&tree::read()?));
    Ok(())
}

#[test]
fn every_retired_word_is_found() {
    let path = "crates/agentd-core/src/a.rs";
    for (word, _) in IDENTIFIERS {
        let text = format!("// {word}\nlet x = \"\";\nlet a = {word};\n");
        tree::assert_lines(&check(&[File::new(path, &text)]), &[3]);
    }
    for (word, _) in FUNCTIONS {
        let text = format!("let {word} = 1;\nfn {word}<T>() {{}}\nstore.{word}();\n");
        tree::assert_lines(&check(&[File::new(path, &text)]), &[2, 3]);
    }
    for (phrase, _) in PHRASES {
        let text = format!("fn f() {{\n    g(\"what {phrase}, then\");\n}}\n");
        tree::assert_lines(&check(&[File::new(path, &text)]), &[2]);
        let documents = ["docs/a.md", "crates/agentd/tests/golden/help/a.txt"];
        for path in documents {
            let text = format!("One line.\nWhat ({phrase}) else?\n");
            tree::assert_lines(&check(&[File::new(path, &text)]), &[2]);
        }
    }
}

#[test]
fn a_comment_names_the_actor() {
    for actor in ACTORS {
        let text =
            format!("//! The user `{actor}`.\n/// What {actor} wrote.\nfn f() {{}} // ({actor})\n");
        for path in ["crates/agentd-core/src/a.rs", "crates/agentd/tests/a.rs"] {
            tree::assert_lines(&check(&[File::new(path, &text)]), &[2, 3]);
        }
    }
}

#[test]
fn ordinary_words_are_left_alone() {
    let path = "crates/agentd-core/src/a.rs";
    let text = "let rest = replaced.place;\nlet guard = mind;\nlet s = \"leave it in place\";\n";
    tree::assert_none(&check(&[File::new(path, text)]));
}
