//! History is append-only. goose review of #7785: a stored conversation was replaced from memory, which overwrote the
//! events of other writers. Here only two statements may change an event: a purge, which empties bodies, and a
//! quarantine, which moves damaged events aside.

use super::lexer;
use super::tree::{self, File, Finding};

/// The file, and the one thing it may do.
const MAY: &[(&str, &str)] = &[
    (
        "crates/agentd-store/src/sqlite/purge.rs",
        "UPDATE event SET body = NULL",
    ),
    (
        "crates/agentd-store/src/sqlite/writer/claim.rs",
        "UPDATE event SET agent = -agent",
    ),
];

const REWRITES: &[&str] = &[
    "UPDATE event ",
    "DELETE FROM event ",
    "REPLACE INTO event ",
    "DROP TABLE event",
];

fn rewrites(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sources = files.iter().filter(|file| file.is_rust() && file.is_src());
    for file in sources.filter(|file| !file.is_tests()) {
        for (line, text) in lexer::lex(&file.text).strings {
            let words: Vec<&str> = text.split_whitespace().collect();
            let text = format!("{} ", words.join(" "));
            let rewrites = REWRITES.iter().any(|rewrite| text.contains(rewrite));
            let allowed = MAY
                .iter()
                .any(|(path, may)| file.path == *path && text.starts_with(may));
            if rewrites && !allowed {
                let message = "no code path rewrites or deletes events; append one that says so";
                findings.push(Finding::new(file, line, "history", message));
            }
        }
    }
    findings
}

#[test]
fn no_code_path_rewrites_an_event() -> std::io::Result<()> {
    tree::assert_none(&rewrites(&tree::read()?));
    Ok(())
}

#[test]
fn a_rewrite_is_found_and_the_two_that_are_meant_are_not() {
    let text = "let a = \"UPDATE event SET body = 'x'\";\nlet b = \"DELETE FROM event\n WHERE 1\";\n\
                let c = \"UPDATE event SET body = NULL WHERE agent = 1\";\n\
                let d = \"DELETE FROM event_log\";\n";
    let anywhere = File::new("crates/agentd-store/src/sqlite/read.rs", text);
    tree::assert_lines(&rewrites(&[anywhere]), &[1, 2, 4]);
    let purge = File::new("crates/agentd-store/src/sqlite/purge.rs", text);
    tree::assert_lines(&rewrites(&[purge]), &[1, 2]);
}
