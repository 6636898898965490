//! Size, head and name of files.

use super::tree::{self, File, Finding};

// Size

const SRC_CAP: usize = 400;
const TESTS_CAP: usize = 800;

/// Files over their cap, with their lines when they were listed. The list may only shrink: nothing
/// is added, and no number goes up.
const OVER_CAP: &[(&str, usize)] = &[];

fn size(files: &[File], over_cap: &[(&str, usize)]) -> Vec<Finding> {
    const RULE: &str = "size";
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let cap = if file.is_tests() || file.is_benches() {
            TESTS_CAP
        } else if file.is_src() {
            SRC_CAP
        } else {
            continue;
        };
        let lines = file.text.lines().count();
        let listed = over_cap.iter().find(|(path, _)| *path == file.path);
        let message = match listed {
            None if lines > cap => {
                format!("{lines} lines, at most {cap}: split it by what its parts are about")
            }
            Some(_) if lines <= cap => format!(
                "{lines} lines, which is within {cap}: take it off OVER_CAP in \
                 crates/agentd/tests/tidy/shape.rs"
            ),
            Some((_, before)) if lines > *before => {
                format!("grew from {before} to {lines} lines; it may only shrink: split it")
            }
            _ => continue,
        };
        findings.push(Finding::new(file, lines, RULE, message));
    }
    for (path, _) in over_cap {
        if !files.iter().any(|file| file.path == *path) {
            let gone = File::new(path, "");
            let message = "is not there any more: take it off OVER_CAP in \
                           crates/agentd/tests/tidy/shape.rs";
            findings.push(Finding::new(&gone, 0, RULE, message));
        }
    }
    findings
}

#[test]
fn files_stay_small() -> std::io::Result<()> {
    tree::assert_none(&size(&tree::read()?, OVER_CAP));
    Ok(())
}

#[test]
fn a_file_over_its_cap_is_found() {
    let lines = |count: usize| "//\n".repeat(count);
    let src = |count| File::new("crates/agentd/src/a.rs", &lines(count));
    tree::assert_none(&size(&[src(400)], &[]));
    tree::assert_lines(&size(&[src(401)], &[]), &[401]);
    let tests = |count| File::new("crates/agentd/tests/a.rs", &lines(count));
    tree::assert_none(&size(&[tests(800)], &[]));
    tree::assert_lines(&size(&[tests(801)], &[]), &[801]);
}

#[test]
fn a_listed_file_may_only_shrink() {
    let path = "crates/agentd/src/a.rs";
    let file = |count: usize| [File::new(path, &"//\n".repeat(count))];
    let listed = [(path, 500)];
    tree::assert_none(&size(&file(500), &listed));
    tree::assert_none(&size(&file(450), &listed));
    tree::assert_lines(&size(&file(501), &listed), &[501]);
    tree::assert_lines(&size(&file(400), &listed), &[400]);
    tree::assert_lines(&size(&[], &listed), &[0]);
}

// Head

fn head(files: &[File]) -> Vec<Finding> {
    files
        .iter()
        .filter(|file| file.is_rust() && file.is_src() && !file.text.starts_with("//!"))
        .map(|file| {
            let message = "begins without a `//!` line: say what the module is and what it is not";
            Finding::new(file, 1, "module doc", message)
        })
        .collect()
}

#[test]
fn every_module_begins_with_its_doc() -> std::io::Result<()> {
    tree::assert_none(&head(&tree::read()?));
    Ok(())
}

#[test]
fn a_module_without_a_doc_is_found() {
    let bare = File::new("crates/agentd/src/a.rs", "use std::fmt;\n\n//! Late.\n");
    tree::assert_lines(&head(&[bare]), &[1]);
    let tool = File::new("xtask/src/a.rs", "// Not a doc.\n");
    tree::assert_lines(&head(&[tool]), &[1]);
    let good = File::new("crates/agentd/src/a.rs", "//! A module.\n");
    tree::assert_none(&head(&[good]));
}

// Name

const EMPTY_WORDS: &[&str] = &[
    "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils",
];

fn names(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.krate().is_some()) {
        let found = file
            .path
            .split(['/', '_', '-', '.'])
            .find(|word| EMPTY_WORDS.contains(word));
        if let Some(word) = found {
            findings.push(Finding::new(
                file,
                0,
                "file name",
                format!("`{word}` says nothing about what is inside; name it after that"),
            ));
        }
    }
    findings
}

#[test]
fn files_are_named_after_what_is_in_them() -> std::io::Result<()> {
    tree::assert_none(&names(&tree::read()?));
    Ok(())
}

#[test]
fn an_empty_name_is_found() {
    for path in [
        "crates/agentd/src/utils.rs",
        "crates/agentd/src/time_helpers.rs",
        "crates/agentd/tests/common/mod.rs",
        "xtask/src/misc.rs",
    ] {
        tree::assert_lines(&names(&[File::new(path, "")]), &[0]);
    }
    for path in ["crates/agentd/src/commonality.rs", "docs/misc.md"] {
        tree::assert_none(&names(&[File::new(path, "")]));
    }
}
