//! `agentd diff`, `agentd files` and `agentd rewind --files`.

use super::test_cli::TestCli;
use std::fs;

fn wrote(cli: &TestCli, words: &str) {
    cli.ok(&["send", "coder", &format!("write notes.txt: {words}")]);
}

#[test]
fn a_diff_a_restore_and_its_undo() {
    let cli = TestCli::with_coder();
    wrote(&cli, "buy milk");
    wrote(&cli, "buy bread");
    let diff = cli.ok(&["diff", "coder", "--turn", "2"]);
    assert!(
        diff.contains("--- a/notes.txt\n+++ b/notes.txt\n"),
        "{diff}"
    );
    assert!(diff.contains("\n-buy milk\n"), "{diff}");
    assert!(diff.contains("\n+buy bread\n"), "{diff}");
    let stat = cli.ok(&["diff", "coder", "--stat"]);
    assert!(stat.contains("notes.txt | 1 +"), "{stat}");
    let planned = cli.json(&["files", "restore", "coder", "--to", "1", "--dry-run"]);
    assert_eq!(planned["outcome"], "planned");
    assert_eq!(planned["files"][0]["action"], "written");
    let done = cli.json(&["files", "restore", "coder", "--to", "1"]);
    assert_eq!(done["outcome"], "done", "{done}");
    assert_eq!(done["undo"], "agentd files undo coder");
    let path = done["files"][0]["path"].as_str().unwrap();
    assert!(fs::read_to_string(path).unwrap().starts_with("buy milk"));
    cli.ok(&["files", "undo", "coder"]);
    assert!(fs::read_to_string(path).unwrap().starts_with("buy bread"));
    cli.refused(7, &["files", "undo", "coder"]);
    let listed = cli.ok(&["files", "list", "coder"]);
    assert!(listed.starts_with("notes.txt  "), "{listed}");
    let shown = cli.json(&["show", "coder", "--conversation", "1"]);
    assert_eq!(shown["ended"][0]["files"], 1);
}

#[test]
fn a_file_that_is_removed_is_not_called_restored() {
    let cli = TestCli::with_coder();
    wrote(&cli, "buy milk");
    let planned = cli.ok(&["files", "restore", "coder", "--to", "init", "--dry-run"]);
    assert!(
        planned.starts_with("1 file would be removed\n"),
        "{planned}"
    );
    assert!(
        planned.contains("notes.txt (would be removed)\n"),
        "{planned}"
    );
    let done = cli.json(&["files", "restore", "coder", "--to", "init"]);
    assert_eq!(done["files"][0]["action"], "removed", "{done}");
    let path = done["files"][0]["path"].as_str().unwrap();
    assert!(!fs::exists(path).unwrap());
    let undone = cli.ok(&["files", "undo", "coder"]);
    assert!(undone.starts_with("1 file restored\n"), "{undone}");
}

#[test]
fn a_conflict_is_listed_and_neither_files_nor_the_conversation_change() {
    let cli = TestCli::with_coder();
    wrote(&cli, "buy milk");
    wrote(&cli, "buy bread");
    let listed = cli.json(&["files", "list", "coder"]);
    let path = listed["files"][0]["path"].as_str().unwrap();
    fs::write(path, "mine").unwrap();
    for verb in [
        &["files", "restore", "coder", "--to", "1"][..],
        &["rewind", "coder", "--to", "1", "--files"],
    ] {
        let ran = cli.run(verb);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.out.contains("nothing was written"), "{ran:?}");
        assert!(ran.out.contains("notes.txt"), "{ran:?}");
    }
    assert_eq!(fs::read_to_string(path).unwrap(), "mine");
    assert_eq!(cli.json(&["show", "coder"])["conversation"]["ordinal"], 1);
    let both = ["rewind", "coder", "--to", "1", "--files", "--overwrite"];
    let done = cli.json(&both);
    assert_eq!(done["files"]["outcome"], "done", "{done}");
    assert!(done["new"].is_string(), "{done}");
    assert!(fs::read_to_string(path).unwrap().starts_with("buy milk"));
}
