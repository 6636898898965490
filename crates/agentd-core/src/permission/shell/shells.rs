//! Calls of a shell: `sh -c 'a script'`, `bash a_file`, or a shell that reads its commands from stdin.

use super::Word;

/// Shells whose scripts this grammar can parse.
const READ: &[&str] = &["ash", "bash", "dash", "sh"];

/// Shells with another grammar.
const OTHERS: &[&str] = &[
    "csh", "fish", "ksh", "mksh", "nu", "pwsh", "rbash", "tcsh", "zsh",
];

pub(super) enum ShellCall {
    /// The script in its arguments.
    Script(String),
    /// A file, which is treated like any program.
    File,
    /// Its commands are not in the line.
    Unknown,
}

pub(super) fn is_shell(program: &str) -> bool {
    READ.contains(&program) || OTHERS.contains(&program)
}

pub(super) fn shell_call(program: &str, words: &[Word]) -> ShellCall {
    let mut words = words.iter().skip(1);
    let mut has_script = false;
    while let Some(word) = words.next() {
        if !word.is_certain() {
            return ShellCall::Unknown;
        }
        let text = word.text.as_str();
        match text {
            "-" | "/dev/stdin" => return ShellCall::Unknown,
            "--login" | "--norc" | "--noprofile" | "--posix" => {}
            // `+x` switches an option off; bash reads `+c` like `-c`.
            _ => match text.strip_prefix(['-', '+']) {
                Some(letters) if letters.chars().all(|c| "ceflnouvx".contains(c)) => {
                    has_script |= letters.contains('c');
                    // The name of an option follows.
                    if letters.contains('o') {
                        words.next();
                    }
                }
                Some(_) => return ShellCall::Unknown,
                None if has_script && !READ.contains(&program) => return ShellCall::Unknown,
                None if has_script => return ShellCall::Script(word.text.clone()),
                None => return ShellCall::File,
            },
        }
    }
    ShellCall::Unknown
}
