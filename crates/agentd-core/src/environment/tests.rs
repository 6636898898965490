//! Which variables programs get, which ones the user may add, and which values are secrets.

use super::*;

#[test]
fn locale_terminal_proxies_editors_and_tool_chains_are_handed_on() {
    for name in [
        "PATH",
        "LC_ALL",
        "LANGUAGE",
        "TZ",
        "COLORTERM",
        "NO_COLOR",
        "http_proxy",
        "HTTPS_PROXY",
        "no_proxy",
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "GIT_SSL_CAINFO",
        "EDITOR",
        "GIT_PAGER",
        "RUSTUP_HOME",
        "CARGO_HOME",
        "GOPROXY",
        "JAVA_HOME",
        "VIRTUAL_ENV",
        "XDG_CACHE_HOME",
    ] {
        assert!(is_handed_on(name), "{name}");
    }
}

/// The list contains no name that the user could not choose, and none that looks like a secret.
#[test]
fn no_key_and_no_variable_that_loads_code_is_handed_on() {
    for name in [
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "BASH_ENV",
        "ENV",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "GIT_SSH_COMMAND",
        "SSH_AUTH_SOCK",
        "XDG_RUNTIME_DIR",
        "DBUS_SESSION_BUS_ADDRESS",
        "COLUMNS",
        "AGENTD_HOME",
        "PATHS",
    ] {
        assert!(!is_handed_on(name), "{name}");
    }
    let dirs = READ_DIRS.iter().chain(WRITTEN_DIRS);
    for name in HANDED_ON.iter().chain(CERTIFICATES).chain(dirs) {
        assert!(refuses(name).is_none() && !is_secret(name), "{name}");
    }
}

#[test]
fn a_directory_is_known_by_what_programs_do_there() {
    assert_eq!(dir_use("JAVA_HOME"), Some(DirUse::Read));
    assert_eq!(dir_use("CARGO_HOME"), Some(DirUse::Write));
    assert_eq!(dir_use("HOME"), None);
}

#[test]
fn a_choice_may_be_a_secret_but_not_a_variable_that_loads_code() {
    for name in ["DATABASE_URL", "ANTHROPIC_API_KEY", "_", "a1", "PYTHONPATH"] {
        assert_eq!(refuses(name), None, "{name}");
    }
    for (name, why) in [
        ("LD_PRELOAD", "load code"),
        ("DYLD_INSERT_LIBRARIES", "load code"),
        ("BASH_ENV", "load code"),
        ("NODE_OPTIONS", "load code"),
        ("AGENTD_HOME", "its own"),
        ("", "letters"),
        ("1A", "letters"),
        ("A=b", "not its value"),
        ("A B", "letters"),
    ] {
        assert!(refuses(name).unwrap().contains(why), "{name}");
    }
    assert!(refuses(&"A".repeat(129)).is_some());
}

#[test]
fn secrets_are_recognised_by_their_names() {
    for name in [
        "ANTHROPIC_API_KEY",
        "github_token",
        "PGPASSWORD",
        "MYSQL_PWD",
        "SIGNING_PASSPHRASE",
        "AZURE_PAT",
        "SMTP_PASS",
    ] {
        assert!(is_secret(name), "{name}");
    }
    for name in [
        "ANTHROPIC_BASE_URL",
        "PATH",
        "SSH_AUTH_SOCK",
        "DATABASE_URL",
    ] {
        assert!(!is_secret(name), "{name}");
    }
}

#[test]
fn the_password_in_a_url_is_a_secret() {
    assert_eq!(
        url_secrets("http://me:p%40ss@proxy.example:8080/"),
        ["me:p%40ss", "p%40ss", "p@ss"]
    );
    assert_eq!(
        url_secrets("https://one:first@a.example,https://two:second@b.example|direct"),
        ["one:first", "first", "two:second", "second"]
    );
    assert_eq!(url_secrets("https://token@host/x@y"), ["token"]);
    assert_eq!(url_secrets("ssh://git@host"), [""; 0]);
    assert_eq!(url_secrets("http://proxy.example:8080/a@b"), [""; 0]);
    assert_eq!(url_secrets("no url"), [""; 0]);
    assert_eq!(url_secrets("x://a:%zz%4@h"), ["a:%zz%4", "%zz%4"]);
}

#[test]
fn variables_are_read_as_a_shell_would_write_them() {
    let text =
        "# about\nexport A=1\nB='two words'\n  export C=\"say \\\"hi\\\"\"\nD=\n1E=x\nnothing\n";
    let expected = [
        ("A", "1"),
        ("B", "two words"),
        ("C", "say \"hi\""),
        ("D", ""),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(variables(text), expected);
}
