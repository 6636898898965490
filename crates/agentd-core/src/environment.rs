//! Which of a caller's environment variables are passed to programs: tools and hooks.

/// Variables that are passed on if the caller has them; never a key. rustup's proxies in `PATH` need `RUSTUP_HOME` if
/// the toolchains are not in the user's home.
const HANDED_ON: &[&str] = &[
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "RUSTUP_HOME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
];

/// Whether a program may receive the caller's variable of this name.
pub fn is_handed_on(name: &str) -> bool {
    HANDED_ON.contains(&name) || name.starts_with("LC_")
}

/// Whether a variable of this name holds a secret.
pub fn is_secret(name: &str) -> bool {
    let words = ["KEY", "TOKEN", "SECRET", "PASSWORD"];
    words.iter().any(|word| name.contains(word))
}

/// The variables in a file that another program wrote: `NAME=value` or `export NAME=value`, one per line, with or
/// without quotes. Other lines are ignored.
pub fn variables(text: &str) -> Vec<(String, String)> {
    text.lines().filter_map(variable).collect()
}

fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
    let (name, value) = line.split_once('=')?;
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_name = name
        .chars()
        .all(|c: char| c.is_ascii_alphanumeric() || c == '_');
    (begins_well && is_name).then(|| (name.to_owned(), unquoted(value.trim())))
}

fn unquoted(value: &str) -> String {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(literal) = inside('\'') {
        return literal.to_owned();
    }
    let Some(quoted) = inside('"') else {
        return value.to_owned();
    };
    let mut out = String::new();
    let mut chars = quoted.chars().peekable();
    while let Some(c) = chars.next() {
        let escapes = c == '\\' && chars.peek().is_some_and(|next| "\"\\$`".contains(*next));
        match chars.next_if(|_| escapes) {
            Some(next) => out.push(next),
            None => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_handed_on() {
        assert!(is_handed_on("PATH") && is_handed_on("LC_ALL"));
        assert!(is_handed_on("RUSTUP_HOME") && is_handed_on("TZ"));
        assert!(!is_handed_on("ANTHROPIC_API_KEY") && !is_handed_on("LD_PRELOAD"));
        assert!(is_secret("ANTHROPIC_API_KEY") && !is_secret("ANTHROPIC_BASE_URL"));
    }

    #[test]
    fn variables_are_read_as_a_shell_would_write_them() {
        let text = "# about\nexport A=1\nB='two words'\n  export C=\"say \\\"hi\\\"\"\nD=\n1E=x\nnothing\n";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "say \"hi\""),
            ("D", ""),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables(text), expected);
    }
}
