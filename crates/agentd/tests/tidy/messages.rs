//! The messages that `docs/troubleshooting.md` explains are messages of the program.

use super::lexer;
use super::tree::{self, File, Finding};

const PAGE: &str = "docs/troubleshooting.md";

fn check(files: &[File]) -> Vec<Finding> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return Vec::new();
    };
    let sources = files
        .iter()
        .filter(|file| file.is_rust() && file.is_src() && !file.is_tests());
    let strings: Vec<String> = sources
        .flat_map(|file| lexer::lex(&file.text).strings)
        .map(|(_, text)| text)
        .collect();
    let mut findings = Vec::new();
    for (number, line) in page.text.lines().enumerate() {
        let Some(heading) = line.strip_prefix("### ") else {
            continue;
        };
        let message = heading.trim_matches('`');
        if !strings.iter().any(|text| text.contains(message)) {
            let what = format!("`{message}` is no message of the program");
            findings.push(Finding::new(page, number + 1, "message", what));
        }
    }
    findings
}

#[test]
fn every_message_on_the_page_is_a_message_of_the_program() -> std::io::Result<()> {
    let files = tree::read()?;
    assert!(files.iter().any(|file| file.path == PAGE), "no {PAGE}");
    tree::assert_none(&check(&files));
    Ok(())
}

#[test]
fn a_message_that_the_program_does_not_have_is_found() {
    let page = File::new(PAGE, "# T\n\n### `it failed`\n\n### `it exploded`\n");
    let source = File::new("crates/a/src/lib.rs", "fn f() { g(\"why it failed\") }\n");
    tree::assert_lines(&check(&[page, source]), &[5]);
}
