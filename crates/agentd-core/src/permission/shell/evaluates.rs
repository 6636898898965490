//! Commands that decide at run time what is run: they evaluate a text, read a file, or give a name another meaning.

use super::{Command, Word};

/// Builtins that run text or files, or change what a name means.
const ALWAYS: &[&str] = &[
    ".", "alias", "bind", "compgen", "complete", "coproc", "enable", "eval", "fc", "hash", "shopt",
    "source", "trap", "unalias",
];

/// Programs that run other programs in ways that this parser does not read.
const RUN_OTHERS: &[&str] = &[
    "at",
    "batch",
    "busybox",
    "bwrap",
    "capsh",
    "chrt",
    "entr",
    "expect",
    "fakeroot",
    "firejail",
    "flock",
    "gdb",
    "ltrace",
    "nsenter",
    "parallel",
    "pkexec",
    "proot",
    "run-parts",
    "runuser",
    "script",
    "setpriv",
    "start-stop-daemon",
    "strace",
    "su",
    "systemd-run",
    "taskset",
    "toybox",
    "unshare",
    "watch",
];

/// Interpreters that run their input if no argument names a script.
const READ_PROGRAMS: &[&str] = &["node", "perl", "php", "python", "python3", "ruby"];

/// Builtins that take variable names. Bash runs substitutions in the subscript of such a name.
const TAKE_NAMES: &[&str] = &[
    "getopts",
    "let",
    "mapfile",
    "read",
    "readarray",
    "unset",
    "wait",
];

/// Variables whose value bash runs, reads as a file of commands, or splits words by.
const EVALUATED: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "ENV",
    "IFS",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "SHELLOPTS",
];

/// Operators of `[[` whose operands are arithmetic.
const ARITHMETIC: &[&str] = &["-eq", "-ge", "-gt", "-le", "-lt", "-ne", "-v"];

/// Settings of git that are not programs. All others might be.
const PLAIN_SETTINGS: &[&str] = &[
    "advice.",
    "color.",
    "commit.gpgsign=",
    "core.quotepath=",
    "init.defaultbranch=",
    "log.",
    "user.email=",
    "user.name=",
];

/// Whether that command decides at run time what is run. `program` is its name without a path.
pub(super) fn decides_later(program: &str, words: &[Word]) -> bool {
    let arguments = words.get(1..).unwrap_or_default();
    let is_dynamic_loader = program.starts_with("ld-linux") || program.starts_with("ld.so");
    let has = |options: &[&str]| {
        let mut texts = arguments.iter().map(|word| word.text.as_str());
        texts.any(|text| options.contains(&text))
    };
    match program {
        _ if is_dynamic_loader || ALWAYS.contains(&program) || RUN_OTHERS.contains(&program) => {
            true
        }
        _ if READ_PROGRAMS.contains(&program) => {
            let first = arguments.first().map(|word| word.text.as_str());
            matches!(first, None | Some("-" | "/dev/stdin"))
        }
        "fd" | "fdfind" => has(&["-x", "-X", "--exec", "--exec-batch"]),
        "git" => is_configured(arguments),
        "mapfile" | "readarray" if has(&["-C"]) => true,
        "declare" | "export" | "local" | "readonly" | "typeset"
            if arguments.iter().any(sets_evaluated) =>
        {
            true
        }
        "declare" | "export" | "local" | "readonly" | "typeset" => {
            // With `-i` or `-n` the value is an expression or a name as well.
            let is_option = |word: &Word| word.text.starts_with(['-', '+']);
            let has_options = arguments.iter().any(is_option);
            let is_value = |word: &Word| !has_options && word.assignment().is_some();
            arguments
                .iter()
                .any(|word| !is_value(word) && may_substitute(word))
        }
        _ if TAKE_NAMES.contains(&program) => {
            let may_set = |word: &Word| may_substitute(word) || sets_evaluated(word);
            arguments.iter().any(may_set)
        }
        // `-v` sets a variable, such as PATH.
        "printf" => arguments
            .first()
            .is_some_and(|word| word.text.starts_with("-v")),
        "test" | "[" => has(&["-v"]) && arguments.iter().any(may_substitute),
        "[[" => has(ARITHMETIC) && arguments.iter().any(may_substitute),
        _ => false,
    }
}

/// The first assignment of a command that decides what later commands, or the shell itself, run. For one command, `IFS` only
/// changes how `read` splits its input.
pub(super) fn evaluated(command: &Command) -> Option<&str> {
    let is_alone = command.words.is_empty();
    let mut names = command.assignments.iter().map(|it| it.name.as_str());
    names.find(|name| EVALUATED.contains(name) && (is_alone || *name != "IFS"))
}

/// Whether a word names such a variable, or assigns to it.
fn sets_evaluated(word: &Word) -> bool {
    let name = word.text.split(['=', '+']).next().unwrap_or_default();
    EVALUATED.contains(&name)
}

fn may_substitute(word: &Word) -> bool {
    !word.is_certain() || word.text.contains(['[', '$', '`'])
}

/// Whether options before git's subcommand make it use other programs.
fn is_configured(arguments: &[Word]) -> bool {
    let mut words = arguments.iter().map(|word| word.text.as_str());
    while let Some(text) = words.next() {
        match text {
            "-C" | "--git-dir" | "--work-tree" | "--namespace" => {
                words.next();
            }
            "-c" => {
                let setting = words.next().unwrap_or_default().to_ascii_lowercase();
                if !PLAIN_SETTINGS
                    .iter()
                    .any(|plain| setting.starts_with(plain))
                {
                    return true;
                }
            }
            _ if text.starts_with("--exec-path=") || text.starts_with("--config-env") => {
                return true;
            }
            _ if text.starts_with("-c") => return true,
            _ if !text.starts_with('-') => return false,
            _ => {}
        }
    }
    false
}

/// How many of git's arguments are options before its subcommand.
pub(in crate::permission) fn git_options(arguments: &[Word]) -> usize {
    let mut count = 0;
    while let Some(word) = arguments.get(count) {
        match word.text.as_str() {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" => {
                count += 2
            }
            text if text.starts_with('-') => count += 1,
            _ => break,
        }
    }
    count
}
