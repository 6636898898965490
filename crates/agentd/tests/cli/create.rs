//! `agentd create`.

use super::place::Place;
use std::fs;

#[test]
fn it_works_in_the_folder_it_was_created_in() {
    let place = Place::with_coder();
    let agent = place.json(&["show", "coder"]);
    let work = place.work().canonicalize().unwrap();
    assert_eq!(agent["cwd"], work.display().to_string());
    assert_eq!(agent["mode"], "persistent");
    assert_eq!(agent["phase"], "idle");
}

#[test]
fn a_file_says_what_it_is() {
    let place = Place::new();
    let file = "---\nprovider: demo\nlimits:\n  max_iterations: 3\n---\n\nYou are brief.\n";
    fs::write(place.work().join("a.md"), file).unwrap();
    let created = place.json(&["create", "coder", "-f", "a.md", "--prompt", "run `echo hi`"]);
    assert!(created["prompt"].is_string(), "{created}");
    place.ok(&["wait", "coder"]);
    let spec = place.json(&["show", "coder", "--spec"]);
    assert_eq!(spec["system"], "You are brief.");
    assert_eq!(spec["limits"]["max_iterations"], 3);
}

#[test]
fn a_name_is_taken_once() {
    let place = Place::with_coder();
    let text = place.refused(3, &["create", "coder", "--provider", "demo"]);
    assert!(text.contains("coder"), "{text}");
}

#[test]
fn a_bad_name_or_file_is_refused() {
    let place = Place::new();
    let ran = place.run(&["create", "a/b", "--provider", "demo"]);
    assert!(matches!(ran.code, Some(2)), "{ran:#?}");
    fs::write(place.work().join("a.md"), "---\nmodle: x\n---\n").unwrap();
    let text = place.refused(2, &["create", "coder", "-f", "a.md"]);
    assert!(text.contains("did you mean `model`?"), "{text}");
    assert_eq!(place.json(&["list"])["total"], 0);
}
