//! What must not be in the repository: marks of unfinished work, paths of one machine, tests that sleep and tests that
//! are switched off.

use std::env;

use super::tree::{self, File, Finding};
use super::{lexer, paths};

fn rust(files: &[File]) -> impl Iterator<Item = &File> {
    files
        .iter()
        .filter(|file| file.is_rust() && file.krate().is_some())
}

// Unfinished work. The words are put together here so that this file does not have them.

const WORDS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];
const MACROS: &[&str] = &[concat!("to", "do!("), concat!("unimple", "mented!(")];

fn unfinished(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in rust(files) {
        for (number, line) in file.text.lines().enumerate() {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            let found = words
                .find(|word| WORDS.contains(word))
                .or_else(|| MACROS.iter().copied().find(|mark| line.contains(mark)));
            if let Some(mark) = found {
                let message = format!("`{mark}`: finish it, or write an issue and drop the mark");
                findings.push(Finding::new(file, number + 1, "unfinished", message));
            }
        }
    }
    findings
}

#[test]
fn nothing_is_marked_as_unfinished() -> std::io::Result<()> {
    tree::assert_none(&unfinished(&tree::read()?));
    Ok(())
}

#[test]
fn a_mark_of_unfinished_work_is_found() {
    let text = format!(
        "// {}: later\nfn f() {{ {}) }}\nlet name = \"dir-XXXXXX\";\n// {}\n",
        WORDS[0], MACROS[0], WORDS[2]
    );
    let file = File::new("crates/agentd/src/a.rs", &text);
    tree::assert_lines(&unfinished(&[file]), &[1, 2, 4]);
}

// Paths of a machine

/// Paths of the machine on which a text was written: of the repository, of the user's home and of the tool chain.
fn machine_paths() -> Vec<String> {
    let mut paths = vec![
        concat!("/", ".cargo/registry").to_string(),
        concat!("/", ".rustup/").to_string(),
    ];
    let home = env::var("HOME").unwrap_or_default();
    for path in [tree::root().display().to_string(), home] {
        // A short one, `/src` say, is too common a word to be sure of.
        if path.split('/').filter(|part| !part.is_empty()).count() >= 2 {
            paths.push(path);
        }
    }
    paths
}

fn machine(files: &[File], machine_paths: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(path) = machine_paths.iter().find(|path| line.contains(*path)) {
                findings.push(Finding::new(
                    file,
                    number + 1,
                    "machine path",
                    format!(
                        "`{path}` is of one machine: write the path from the repository's root"
                    ),
                ));
            }
        }
    }
    findings
}

#[test]
fn no_path_of_a_machine_is_written_down() -> std::io::Result<()> {
    tree::assert_none(&machine(&tree::read()?, &machine_paths()));
    Ok(())
}

#[test]
fn a_path_of_a_machine_is_found() {
    let paths = machine_paths();
    let text = format!(
        "Run it.\nIt is in {}/bin.\nSee crates/agentd.\n",
        tree::root().display()
    );
    let here = vec![tree::root().display().to_string()];
    tree::assert_lines(&machine(&[File::new("docs/a.md", &text)], &here), &[2]);
    let registry = format!("/somewhere{}/src\n", paths[0]);
    tree::assert_lines(
        &machine(&[File::new("Cargo.toml", &registry)], &paths),
        &[1],
    );
}

// Sleeping tests

const POLLS: &str = "tidy: polls";

fn sleeps(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in rust(files) {
        // In `src`, tests are what follows the first `#[cfg(test)]`.
        let from = if file.is_tests() {
            0
        } else {
            let code = lexer::lex(&file.text).code;
            match code.lines().position(|line| line.contains("#[cfg(test)]")) {
                Some(line) => line,
                None => continue,
            }
        };
        let lines: Vec<&str> = file.text.lines().collect();
        for named in paths::named(&file.text) {
            if named.import || !named.has(&["thread", "sleep"]) || named.line <= from {
                continue;
            }
            let above = named.line.checked_sub(2).map_or("", |at| lines[at]);
            if !(above.contains("//") && above.contains(POLLS)) {
                findings.push(Finding::new(
                    file,
                    named.line,
                    "sleeping test",
                    format!(
                        "`thread::sleep` in a test: wait for a condition instead; a loop that \
                         does says so with `// {POLLS} …` on the line above"
                    ),
                ));
            }
        }
    }
    findings
}

#[test]
fn tests_wait_for_conditions() -> std::io::Result<()> {
    tree::assert_none(&sleeps(&tree::read()?));
    Ok(())
}

#[test]
fn a_sleeping_test_is_found() {
    let text = "use std::thread::sleep;\nfn f() {\n    sleep(a);\n    std::thread::sleep(a);\n    \
                // tidy: polls for the socket\n    std::thread::sleep(a);\n}\n";
    let tests = File::new("crates/agentd/tests/a.rs", text);
    tree::assert_lines(&sleeps(&[tests]), &[3, 4]);
    let src = File::new("crates/agentd/src/a.rs", text);
    tree::assert_none(&sleeps(&[src]));
    let unit =
        format!("fn f() {{ std::thread::sleep(a) }}\n#[cfg(test)]\nmod tests {{\n{text}}}\n");
    let unit = File::new("crates/agentd/src/a.rs", &unit);
    tree::assert_lines(&sleeps(&[unit]), &[6, 7]);
}

// Tests that are switched off

fn switched_off(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in rust(files) {
        for (number, line) in lexer::lex(&file.text).code.lines().enumerate() {
            let line: String = line.split_whitespace().collect();
            let conditional = line.contains("#[cfg_attr(") && line.contains(",ignore");
            if line.contains("#[ignore") || conditional {
                findings.push(Finding::new(
                    file,
                    number + 1,
                    "ignored test",
                    "fix the test or delete it; one that takes long runs when AGENTD_TEST_LONG is set",
                ));
            }
        }
    }
    findings
}

#[test]
fn no_test_is_switched_off() -> std::io::Result<()> {
    tree::assert_none(&switched_off(&tree::read()?));
    Ok(())
}

#[test]
fn a_switched_off_test_is_found() {
    let text = "#[test]\n#[ignore = \"slow\"]\nfn f() {}\n// #[ignore]\n\
                #[cfg_attr(miri, ignore)]\nfn g() {}\n#[ignore]\nfn h() {}\n";
    let file = File::new("crates/agentd/tests/a.rs", text);
    tree::assert_lines(&switched_off(&[file]), &[2, 5, 7]);
}
