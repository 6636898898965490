//! The environment variables of programs that agentd starts: which of the caller's variables tools and hooks get, which
//! ones the user may add by name, and which values are secrets.

mod lacking;

pub use lacking::{COMPLETE, Lacking};

/// Variables that are passed on if the caller has them: the user and the shell, locale, time zone, terminal, proxies,
/// editors and tool chains (besides certificates). Never a key, and never a variable that makes programs load code.
const HANDED_ON: &[&str] = &[
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "USER",
    // Locale and time zone, besides LC_*.
    "LANG",
    "LANGUAGE",
    "TZ",
    // The terminal. Not its size, which changes too often and says nothing about the output of a tool.
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "FORCE_COLOR",
    "NO_COLOR",
    "TERM",
    // Proxies.
    "ALL_PROXY",
    "FTP_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "ftp_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    // Editors and pagers.
    "EDITOR",
    "GIT_EDITOR",
    "GIT_PAGER",
    "PAGER",
    "VISUAL",
    // Tool chains, besides those that name a directory.
    "CONDA_DEFAULT_ENV",
    "GONOPROXY",
    "GONOSUMDB",
    "GOPRIVATE",
    "GOPROXY",
    "GOSUMDB",
    "GOTOOLCHAIN",
    "NODE_ENV",
    "PYENV_VERSION",
    "RBENV_VERSION",
    "RUSTUP_TOOLCHAIN",
];

/// Variables that name files with certificates of private CAs, or, for `SSL_CERT_DIR`, directories with them.
pub const CERTIFICATES: &[&str] = &[
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Directories of tool chains that programs read. rustup's proxies in `PATH` need `RUSTUP_HOME` if the tool chains are
/// not in the user's home.
const READ_DIRS: &[&str] = &[
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CONDA_PREFIX",
    "DOTNET_ROOT",
    "GEM_PATH",
    "GOROOT",
    "GRADLE_HOME",
    "JAVA_HOME",
    "MAVEN_HOME",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "SDKMAN_DIR",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
];

/// Directories that programs write: downloads, caches, settings.
const WRITTEN_DIRS: &[&str] = &[
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "DENO_DIR",
    "GEM_HOME",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "GRADLE_USER_HOME",
    "PIPX_HOME",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// Variables that make programs load code. What they load would be in no journal: only `env` of an agent file, which is
/// in the journal with its values, can set them.
const LOAD_CODE: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "GCONV_PATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "NODE_OPTIONS",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "_JAVA_OPTIONS",
];

/// The longest name that `pass_env` accepts, and the most names.
const LONGEST_NAME: usize = 128;
pub const MOST_NAMES: usize = 64;

/// What programs do with the directory that a variable names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirUse {
    Read,
    Write,
}

/// Whether a program may receive the caller's variable of this name.
pub fn is_handed_on(name: &str) -> bool {
    let is_listed = HANDED_ON.contains(&name) || CERTIFICATES.contains(&name);
    is_listed || name.starts_with("LC_") || dir_use(name).is_some()
}

/// The paths in the value of one of [`CERTIFICATES`].
pub fn certificate_paths<'a>(name: &str, value: &'a str) -> Vec<&'a str> {
    let paths: Vec<&str> = match name {
        "SSL_CERT_DIR" => value.split(':').collect(),
        _ => vec![value],
    };
    paths.into_iter().filter(|path| !path.is_empty()).collect()
}

/// For a variable that is passed on and names a directory: what programs do there. In a sandbox the directory may be
/// hidden or read-only; a program that is told about it fails, and works with its default.
pub fn dir_use(name: &str) -> Option<DirUse> {
    if READ_DIRS.contains(&name) {
        return Some(DirUse::Read);
    }
    WRITTEN_DIRS.contains(&name).then_some(DirUse::Write)
}

/// Why `pass_env` may not name this variable; none if it may.
pub fn refuses(name: &str) -> Option<&'static str> {
    if !is_name(name) || name.len() > LONGEST_NAME {
        return Some(
            "expected the name of an environment variable (letters, digits and _, at most 128), not its value",
        );
    }
    if name.starts_with("AGENTD_") {
        return Some("agentd sets its own variables; remove it");
    }
    let loads = ["LD_", "DYLD_"];
    if loads.iter().any(|start| name.starts_with(start)) || LOAD_CODE.contains(&name) {
        return Some("it makes programs load code; set it to a value under `env` instead");
    }
    None
}

/// Whether a variable of this name holds a secret.
pub fn is_secret(name: &str) -> bool {
    let words = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
    ];
    let ends = ["_PAT", "_PWD", "_PASS"];
    let name = name.to_ascii_uppercase();
    words.iter().any(|word| name.contains(word)) || ends.iter().any(|end| name.ends_with(end))
}

/// The secrets in a value that contains URLs, such as that of a proxy: the part before `@` if it has a password, and
/// the password itself, also as it is without its escapes. A name alone before `@` is a token if the scheme is http.
pub fn url_secrets(value: &str) -> Vec<String> {
    let mut secrets = Vec::new();
    for (at, _) in value.match_indices("://") {
        let is_http = value[..at].ends_with("http") || value[..at].ends_with("https");
        let rest = &value[at + 3..];
        let end = rest.find(|c: char| "/?#,|\"'".contains(c) || c.is_whitespace());
        let authority = &rest[..end.unwrap_or(rest.len())];
        let Some((user, _)) = authority.rsplit_once('@') else {
            continue;
        };
        match user.split_once(':') {
            Some((_, password)) if !password.is_empty() => {
                secrets.push(user.to_owned());
                secrets.push(password.to_owned());
                secrets.extend(unescaped(password));
            }
            _ if is_http => secrets.push(user.trim_end_matches(':').to_owned()),
            _ => {}
        }
    }
    secrets
}

/// The text without its percent escapes; none if it has none.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    let unescaped = String::from_utf8(bytes).ok()?;
    (unescaped != text).then_some(unescaped)
}

/// Whether a variable can have this name.
pub fn is_name(name: &str) -> bool {
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins_well
        && name
            .chars()
            .all(|c: char| c.is_ascii_alphanumeric() || c == '_')
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
    is_name(name).then(|| (name.to_owned(), unquoted(value.trim())))
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
mod tests;
