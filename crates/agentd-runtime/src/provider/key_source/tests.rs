//! Keys from variables, files and commands; and errors that never repeat one.

use super::*;
use agentd_core::catalog::Catalog;

fn entry(lines: &str) -> ProviderEntry {
    let mut catalog = Catalog::built_in();
    let text = format!(
        "[providers.lab]\nwire = \"openai_chat\"\nbase_url = \"http://lab.example\"\n{lines}\n"
    );
    catalog.extend(&text, "config.toml").unwrap();
    catalog.provider("lab").unwrap().clone()
}

fn path_only(name: &str) -> Option<String> {
    (name == "PATH").then(|| "/usr/bin:/bin".to_owned())
}

fn exposed(found: Result<Option<Key>, KeyError>) -> Option<String> {
    found.unwrap().map(|key| key.expose().to_owned())
}

#[test]
fn the_first_variable_that_is_set_wins_and_a_blank_one_is_not_set() {
    let entry = entry("key_env = [\"A\", \"B\", \"C\"]\nkey_file = \"/nowhere\"");
    let env = |name: &str| match name {
        "A" => Some(" ".to_owned()),
        "B" => Some("sk-b\n".to_owned()),
        "C" => Some("sk-c".to_owned()),
        _ => None,
    };
    assert_eq!(exposed(find_key(&entry, &env)).as_deref(), Some("sk-b"));
}

#[test]
fn a_missing_key_says_what_to_do() {
    let catalog = Catalog::built_in();
    let gemini = catalog.provider("gemini").unwrap();
    let error = find_key(gemini, &|_| None).unwrap_err().to_string();
    for word in [
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "key_file",
        "[providers.gemini]",
    ] {
        assert!(error.contains(word), "{error}");
    }
    let ollama = catalog.provider("ollama").unwrap();
    assert_eq!(exposed(find_key(ollama, &|_| None)), None);
}

#[test]
fn a_file_is_read_and_trimmed_at_home_or_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("key"), "\n sk-file \n").unwrap();
    let at = home.path().to_str().unwrap().to_owned();
    let env = |name: &str| (name == "HOME").then(|| at.clone());
    let absolute = entry(&format!("key_file = \"{at}/key\""));
    for entry in [absolute, entry("key_file = \"~/key\"")] {
        assert_eq!(exposed(find_key(&entry, &env)).as_deref(), Some("sk-file"));
    }
}

#[test]
fn a_file_that_is_no_key_is_refused_with_its_path() {
    let home = tempfile::tempdir().unwrap();
    let at = home.path().to_str().unwrap();
    let refused = |name: &str| {
        let entry = entry(&format!("key_file = \"{at}/{name}\""));
        let error = find_key(&entry, &|_| None).unwrap_err().to_string();
        assert!(error.contains(name) && !error.contains("canary"), "{error}");
        error
    };
    let write = |name: &str, bytes: &[u8]| std::fs::write(home.path().join(name), bytes).unwrap();
    write("empty", b" \n");
    assert!(refused("empty").contains("empty"));
    write("two", b"canary-1\ncanary-2\n");
    assert!(refused("two").contains("more than one line"));
    write("binary", b"canary\xff");
    assert!(refused("binary").contains("not text"));
    write("long", "canary".repeat(20_000).as_bytes());
    assert!(refused("long").contains("too long"));
    refused("absent");
    std::fs::create_dir(home.path().join("directory")).unwrap();
    assert!(refused("directory").contains("not a regular file"));
}

#[test]
fn a_command_prints_the_key_and_sees_path_and_home_only() {
    let command = entry("key_command = \"echo sk-$(env | grep -vc -e ^PWD= -e ^SHLVL= -e ^_=)\"");
    let env = |name: &str| match name {
        "PATH" => path_only(name),
        "HOME" => Some("/".to_owned()),
        _ => Some("leaked".to_owned()),
    };
    assert_eq!(exposed(find_key(&command, &env)).as_deref(), Some("sk-2"));
}

#[test]
fn a_command_that_fails_is_told_and_neither_it_nor_its_output_is_repeated() {
    let refused = |command: &str| {
        let entry = entry(&format!("key_command = \"{command}\""));
        let error = find_key(&entry, &path_only).unwrap_err().to_string();
        assert!(!error.contains("canary"), "{error}");
        error
    };
    assert!(refused("echo sk-canary; exit 3").contains("exited with code 3"));
    assert!(refused("echo sk-canary >&2").contains("empty"));
    assert!(refused("echo sk-canary; kill -9 $$").contains("signal 9"));
}

#[test]
fn a_command_that_does_not_end_is_ended_with_all_that_it_started() {
    let home = tempfile::tempdir().unwrap();
    let pid_file = home.path().join("pid");
    let pid_file = pid_file.to_str().unwrap();
    let short = Duration::from_millis(300);
    let hangs = entry(&format!(
        "key_command = \"sleep 600 & echo $! > {pid_file}; wait\""
    ));
    let error = find(&hangs, &path_only, short).unwrap_err().to_string();
    assert!(error.contains("did not finish within"), "{error}");
    if let Ok(pid) = std::fs::read_to_string(pid_file)
        && let Ok(pid) = pid.trim().parse()
    {
        let until = Instant::now() + Duration::from_secs(20);
        let runs = |pid| {
            let identity = agentd_process::Identity::of(pid);
            identity.is_ok_and(|identity| identity.is_alive().unwrap_or(false))
        };
        while runs(pid) {
            assert!(Instant::now() < until, "the sleeper lives on");
            std::thread::yield_now();
        }
    }
    // It prints a key, closes its output and does not end.
    let lingers = entry("key_command = \"echo sk-canary; exec >&-; sleep 600\"");
    let error = find(&lingers, &path_only, short).unwrap_err().to_string();
    assert!(
        error.contains("did not finish within") && !error.contains("canary"),
        "{error}"
    );
}
