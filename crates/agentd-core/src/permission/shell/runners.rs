//! Programs whose arguments end with a command, and where it begins.

use super::{Assignment, Word};

/// A program whose arguments end with a command.
pub(super) struct Runner {
    pub name: &'static str,
    /// Short options without and with a value.
    flags: &'static str,
    valued: &'static str,
    /// Long options without and with a value.
    long: &'static [&'static str],
    long_valued: &'static [&'static str],
    /// Arguments before the command.
    operands: usize,
    /// `NAME=value` may stand before the command.
    takes_variables: bool,
    /// See [`Command::only_runs`].
    pub only_runs: bool,
}

const PLAIN: Runner = Runner {
    name: "",
    flags: "",
    valued: "",
    long: &[],
    long_valued: &[],
    operands: 0,
    takes_variables: false,
    only_runs: true,
};

pub(super) const RUNNERS: &[Runner] = &[
    Runner {
        name: "builtin",
        ..PLAIN
    },
    Runner {
        name: "chroot",
        long_valued: &["groups", "userspec"],
        operands: 1,
        only_runs: false,
        ..PLAIN
    },
    Runner {
        name: "command",
        flags: "p",
        ..PLAIN
    },
    Runner {
        name: "coproc",
        only_runs: false,
        ..PLAIN
    },
    Runner {
        name: "doas",
        flags: "n",
        valued: "uC",
        only_runs: false,
        ..PLAIN
    },
    Runner {
        name: "env",
        flags: "i0v",
        valued: "uC",
        long: &["debug", "ignore-environment", "null"],
        long_valued: &["chdir", "unset"],
        takes_variables: true,
        ..PLAIN
    },
    Runner {
        name: "exec",
        flags: "cl",
        valued: "a",
        ..PLAIN
    },
    Runner {
        name: "ionice",
        flags: "t",
        valued: "cn",
        ..PLAIN
    },
    Runner {
        name: "nice",
        flags: "0123456789",
        valued: "n",
        long_valued: &["adjustment"],
        ..PLAIN
    },
    Runner {
        name: "nohup",
        ..PLAIN
    },
    Runner {
        name: "setsid",
        flags: "cfw",
        long: &["ctty", "fork", "wait"],
        ..PLAIN
    },
    Runner {
        name: "stdbuf",
        valued: "ioe",
        long_valued: &["error", "input", "output"],
        ..PLAIN
    },
    Runner {
        name: "sudo",
        flags: "AEHPSbkn",
        valued: "CDRTUghprtu",
        long: &[
            "background",
            "non-interactive",
            "preserve-env",
            "set-home",
            "stdin",
        ],
        long_valued: &["chdir", "group", "host", "prompt", "user"],
        takes_variables: true,
        only_runs: false,
        ..PLAIN
    },
    Runner {
        name: "time",
        flags: "p",
        ..PLAIN
    },
    Runner {
        name: "timeout",
        flags: "fpv",
        valued: "ks",
        long: &["foreground", "preserve-status", "verbose"],
        long_valued: &["kill-after", "signal"],
        operands: 1,
        ..PLAIN
    },
    Runner {
        name: "xargs",
        flags: "0oprtx",
        valued: "EILPadns",
        long: &[
            "exit",
            "interactive",
            "no-run-if-empty",
            "null",
            "open-tty",
            "verbose",
        ],
        long_valued: &[
            "arg-file",
            "delimiter",
            "max-args",
            "max-chars",
            "max-procs",
        ],
        ..PLAIN
    },
];

/// Where the variables and the command begin among the words. `None` if an option is unknown or a word before the
/// command is only known at run time.
pub(super) fn command_at(words: &[Word], runner: &Runner) -> Option<(usize, usize)> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        if !word.is_certain() {
            return None;
        }
        let text = word.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long
                .split_once('=')
                .map_or((long, None), |(name, value)| (name, Some(value)));
            at += match value {
                _ if runner.long.contains(&name) => 1,
                Some(_) if runner.long_valued.contains(&name) => 1,
                None if runner.long_valued.contains(&name) => 2,
                _ => return None,
            };
        } else if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            at += short_options(letters, runner)?;
        } else {
            break;
        }
    }
    let variables = at;
    let is_variable = |word: &&Word| word.is_certain() && variable(&word.text).is_some();
    if runner.takes_variables {
        at += words.get(at..)?.iter().take_while(is_variable).count();
    }
    let operands = words.get(at..at + runner.operands).unwrap_or_default();
    at += runner.operands;
    // The option or operand before the command may expand to nothing, and then the next word is a different one.
    let is_certain = words
        .get(..at)
        .unwrap_or(words)
        .iter()
        .all(Word::is_certain);
    (is_certain && operands.len() == runner.operands).then_some((variables, at))
}

/// `NAME=value` for a program, which cannot tell whether it was quoted.
pub(super) fn variable(text: &str) -> Option<Assignment> {
    let (name, _) = text.split_once('=')?;
    Some(Assignment {
        name: name.to_owned(),
        text: text.to_owned(),
    })
}

/// How many words these options take.
fn short_options(letters: &str, runner: &Runner) -> Option<usize> {
    for (at, letter) in letters.char_indices() {
        if runner.valued.contains(letter) {
            let has_value = at + letter.len_utf8() < letters.len();
            return Some(if has_value { 1 } else { 2 });
        }
        if !runner.flags.contains(letter) {
            return None;
        }
    }
    Some(1)
}
