//! Patches applied to files: all of a patch or nothing, and only to files that the model knows.

use crate::driver::Tools as _;
use crate::tools::tests::{Fixture, call};
use agentd_core::catalog::{EditForm, ShellForm, ToolForms};
use agentd_core::event::FileBefore;
use agentd_core::message::CallOutcome;
use agentd_core::recover::CallFact;
use agentd_core::secrets::MARK;
use agentd_core::spec::{ApprovalMode, Decision};
use agentd_core::turn::{Consent, Prepared};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

const TOOL: &str = "apply_patch";

/// A fixture for a model that was trained on patches.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.options.forms = ToolForms {
        edits: EditForm::Patch,
        shell: ShellForm::Words,
    };
    fixture
}

fn patch(body: &str) -> Value {
    json!({"input": format!("*** Begin Patch\n{body}\n*** End Patch\n")})
}

#[tokio::test]
async fn a_patch_creates_changes_moves_and_deletes() {
    let fixture = fixture();
    fixture.known("a.rs", "fn a() {\n    one();\n}\n");
    fixture.known("old.txt", "old\n");
    fixture.known("from.txt", "1\n2\n");
    let arguments = patch(
        "*** Update File: a.rs\n@@ fn a() {\n-    one();\n+    two();\n+    three();\n*** Add File: new/dir/b.md\n+# B\n\
         *** Delete File: old.txt\n*** Update File: from.txt\n*** Move to: to.txt\n@@\n-2\n+3",
    );
    let text = fixture.ok(TOOL, arguments).await;
    let expected = "Updated a.rs (+2 -1).\nCreated new/dir/b.md (1 line).\nMoved from.txt to to.txt.\nDeleted old.txt.";
    assert_eq!(text, expected);
    assert_eq!(
        fixture.text("a.rs"),
        "fn a() {\n    two();\n    three();\n}\n"
    );
    assert_eq!(fixture.text("new/dir/b.md"), "# B\n");
    assert_eq!(fixture.text("to.txt"), "1\n3\n");
    assert!(!fixture.path("old.txt").exists() && !fixture.path("from.txt").exists());
    // What it has written counts as read.
    let again = patch("*** Update File: to.txt\n-3\n+4\n*** Update File: a.rs\n-    two();");
    fixture.ok(TOOL, again).await;
    assert_eq!(fixture.text("to.txt"), "1\n4\n");
}

#[tokio::test]
async fn a_file_that_is_moved_keeps_its_permission_bits() {
    let fixture = fixture();
    for (mode, from, to) in [(0o755, "a.sh", "b.sh"), (0o600, "c.sh", "d.sh")] {
        fixture.known(from, "1\n2\n");
        fs::set_permissions(fixture.path(from), fs::Permissions::from_mode(mode)).unwrap();
        let moved = format!("*** Update File: {from}\n*** Move to: {to}\n@@\n-2\n+3");
        fixture.ok(TOOL, patch(&moved)).await;
        let metadata = fs::metadata(fixture.path(to)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o7777, mode);
        assert_eq!(fixture.text(to), "1\n3\n");
    }
}

#[tokio::test]
async fn nothing_is_written_if_one_hunk_does_not_fit() {
    let fixture = fixture();
    fixture.known("a", "one\n");
    fixture.known("b", "let value = 1;\nlet other = 2;\n");
    fixture.known("c", "x\n");
    symlink("c", fixture.path("link")).unwrap();
    for (body, said) in [
        (
            "*** Update File: a\n-one\n+1\n*** Update File: b\n@@\n-let value = 2;\n+x",
            "Hunk 1 of b does not fit: its lines are not in the file. No file was changed. The closest place is line 1",
        ),
        (
            "*** Update File: a\n-one\n+1\n*** Update File: b\n@@\n-let  value = 1;\n+x\n@@\n-let other=2;\n+y",
            "Hunk 1 of b does not fit",
        ),
        (
            "*** Add File: n\n+x\n*** Update File: b\n@@ fn z() {\n+y",
            "`fn z() {` after `@@`",
        ),
        (
            "*** Add File: n\n+x\n*** Delete File: missing",
            "missing does not exist",
        ),
        ("*** Update File: missing\n+x", "missing does not exist"),
        (
            "*** Update File: a\n*** Move to: b\n-one\n+1",
            "b exists already",
        ),
        (
            "*** Add File: n\n+x\n*** Delete File: link",
            "is a symbolic link",
        ),
        (
            "*** Update File: c\n-x\n+y\n*** Update File: ./c\n-x\n+z",
            "lead to the same file",
        ),
        (
            "*** Update File: a\none",
            "is not a valid patch: line 3 (`one`)",
        ),
    ] {
        let text = fixture.error(TOOL, patch(body)).await;
        assert!(text.contains(said), "{body}: {text}");
        assert_eq!(fixture.text("a"), "one\n");
        assert!(!fixture.path("n").exists() && fixture.path("c").exists());
    }
    let text = fixture
        .error(TOOL, patch(&format!("*** Add File: n\n+{MARK}")))
        .await;
    assert!(text.contains("stands for a secret"), "{text}");
}

/// Opening it would wait for a writer.
#[tokio::test]
async fn a_pipe_is_refused_and_not_waited_for() {
    let fixture = fixture();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let (cwd, kind) = (rustix::fs::CWD, rustix::fs::FileType::Fifo);
    rustix::fs::mknodat(cwd, fixture.path("pipe"), kind, mode, 0).unwrap();
    for body in ["*** Update File: pipe\n-x\n+z", "*** Delete File: pipe"] {
        let text = fixture.error(TOOL, patch(body)).await;
        assert!(text.contains("not a regular file"), "{text}");
    }
}

#[tokio::test]
async fn a_file_that_the_model_does_not_know_is_not_changed() {
    let fixture = fixture();
    fixture.file("unread", "x\n");
    fixture.known("changed", "x\n");
    fs::write(fixture.path("changed"), "x\ny\n").unwrap();
    for (body, said) in [
        ("*** Delete File: unread", "you have not read it"),
        ("*** Add File: unread\n+z", "you have not read it"),
        (
            "*** Update File: changed\n-x\n+z",
            "has changed since you last read",
        ),
        (
            "*** Delete File: changed",
            "has changed since you last read",
        ),
        (
            "*** Update File: changed\n*** Move to: b\n-x\n+z",
            "has changed since",
        ),
    ] {
        let text = fixture.error(TOOL, patch(body)).await;
        assert!(text.contains(said), "{body}: {text}");
    }
    assert_eq!(fixture.text("changed"), "x\ny\n");
    // Lines that fit show that the model knows what it changes.
    let wrong = fixture.error(TOOL, patch("*** Update File: unread\n-y\n+z"));
    assert!(wrong.await.contains("does not fit"));
    let right = patch("*** Update File: unread\n-x\n+z");
    fixture.ok(TOOL, right).await;
    assert_eq!(fixture.text("unread"), "z\n");
    // Between the start and the run, too.
    fixture.known("late", "x\n");
    let arguments = patch("*** Update File: late\n-x\n+z\n*** Add File: other\n+o");
    let started = fixture.started(TOOL, arguments.clone()).await;
    fs::write(fixture.path("late"), "x\nw\n").unwrap();
    let finished = fixture.run(TOOL, arguments, started).await;
    assert_eq!(finished.outcome, CallOutcome::Error);
    assert!(!fixture.path("other").exists());
}

#[tokio::test]
async fn the_rules_of_both_file_tools_apply_to_each_path() {
    for (tool, pattern) in [
        ("edit_file", "*.lock"),
        ("write_file", "*.lock"),
        (TOOL, "*.lock"),
        ("*", "*.lock"),
    ] {
        for (decision, body) in [
            (
                Decision::Deny,
                "*** Add File: ok\n+x\n*** Add File: Cargo.lock\n+x",
            ),
            (
                Decision::Ask,
                "*** Update File: a\n*** Move to: b.lock\n-x\n+y",
            ),
        ] {
            let fixture = Fixture::new().rule(tool, pattern, decision);
            fixture.known("a", "x\n");
            let call = call(TOOL, patch(body));
            let mut options = fixture.options.clone();
            options.forms.edits = EditForm::Patch;
            let toolbox = crate::tools::Toolbox::new(options).unwrap();
            let prepared = toolbox
                .prepare(&call, Consent::NotAsked, &fixture.seen())
                .await;
            match decision {
                Decision::Deny => assert!(matches!(
                    prepared,
                    Prepared::Refuse {
                        outcome: CallOutcome::Denied,
                        ..
                    }
                )),
                _ => assert!(matches!(prepared, Prepared::Ask(_)), "{prepared:?}"),
            }
        }
    }
}

#[tokio::test]
async fn after_a_crash_a_patch_is_done_not_started_or_unknown() {
    let fixture = fixture();
    fixture.known("a", "1\n");
    fixture.known("b", "1\n");
    let arguments = patch("*** Update File: a\n-1\n+2\n*** Delete File: b\n*** Add File: c\n+3");
    let started = fixture.started(TOOL, arguments.clone()).await;
    assert_eq!(started.patched.len(), 3);
    let fact = fixture.find(TOOL, arguments.clone(), &started).await;
    assert!(matches!(fact, CallFact::NotStarted), "{fact:?}");
    fs::write(fixture.path("a"), "2\n").unwrap();
    let fact = fixture.find(TOOL, arguments.clone(), &started).await;
    assert!(matches!(fact, CallFact::Unknown), "{fact:?}");
    fs::write(fixture.path("a"), "1\n").unwrap();
    fixture.run(TOOL, arguments.clone(), started.clone()).await;
    let fact = fixture.find(TOOL, arguments, &started).await;
    let CallFact::Ended(finished) = fact else {
        panic!("{fact:?}")
    };
    assert_eq!(
        (finished.outcome, finished.seen.len()),
        (CallOutcome::Ok, 2)
    );
}

#[test]
fn a_model_has_one_form_of_each_tool() {
    let mut fixture = fixture();
    let names = |fixture: &Fixture| {
        let declared = fixture.toolbox().declarations();
        declared
            .into_iter()
            .map(|tool| tool.name)
            .collect::<Vec<_>>()
    };
    let all = names(&fixture);
    assert!(all.contains(&TOOL.to_owned()) && !all.contains(&"edit_file".to_owned()));
    let shell = fixture.toolbox().declarations().remove(0);
    assert_eq!(shell.parameters["properties"]["command"]["type"], "array");
    let mut with = |tools: &[&str]| {
        fixture.options.tools = Some(tools.iter().map(|&name| name.to_owned()).collect());
        names(&fixture).join(" ")
    };
    assert_eq!(
        with(&["read_file", "edit_file", "write_file"]),
        "read_file apply_patch"
    );
    assert_eq!(with(&["read_file", "edit_file"]), "read_file edit_file");
    assert_eq!(with(&["apply_patch", "edit_file"]), "edit_file apply_patch");
    let mut exact = Fixture::new();
    assert!(!names(&exact).contains(&TOOL.to_owned()));
    exact.options.tools = Some(vec![TOOL.to_owned()]);
    assert_eq!(names(&exact), [TOOL]);
}

#[tokio::test]
async fn each_file_that_a_patch_changes_is_kept_before_it_starts() {
    let fixture = fixture();
    fixture.known("a.rs", "one\n");
    fixture.known("old.txt", "old\n");
    fixture.known("from.txt", "1\n2\n");
    fixture.known("same.txt", "same\n");
    let arguments = patch(
        "*** Update File: a.rs\n@@\n-one\n+two\n*** Add File: b.md\n+# B\n*** Delete File: old.txt\n\
         *** Update File: from.txt\n*** Move to: to.txt\n@@\n-2\n+3\n*** Add File: same.txt\n+same",
    );
    let Prepared::Run(started, kept) = fixture.prepare(TOOL, arguments).await else {
        panic!("it may run");
    };
    let found: Vec<(String, Option<u64>)> = kept
        .iter()
        .map(|kept| {
            let size = match &kept.before {
                FileBefore::File { size, .. } => Some(*size),
                _ => None,
            };
            (kept.path.rsplit('/').next().unwrap().to_owned(), size)
        })
        .collect();
    let expected = [
        ("a.rs", Some(4)),
        ("b.md", None),
        ("to.txt", None),
        ("old.txt", Some(4)),
        ("from.txt", Some(4)),
    ];
    assert_eq!(found, expected.map(|(name, size)| (name.to_owned(), size)));
    assert_eq!(started.kept_bytes(), 12);
}

/// Another process changes a file after the patch was checked, while its other files are written.
#[test]
fn a_file_is_checked_again_right_before_it_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    fs::write(&path, "old").unwrap();
    let step = super::plan::Step {
        target: crate::tools::replace::Target {
            path: path.clone(),
            name: "a".to_owned(),
            git_dirs: crate::tools::replace::GitDirs::Protected,
        },
        before: Some(crate::tools::hash::of(b"old")),
        new: None,
        said: None,
        mode: None,
    };
    assert!(super::check_again(&step).is_ok());
    fs::write(&path, "of the user").unwrap();
    assert!(super::check_again(&step).is_err());
    fs::remove_file(&path).unwrap();
    assert!(super::check_again(&step).is_err());
}

#[tokio::test]
async fn a_patch_that_does_not_fit_fails_before_the_user_is_asked() {
    let mut fixture = fixture();
    fixture.options.approval = ApprovalMode::Always;
    fixture.known("a", "one\n");
    let fits = patch("*** Update File: a\n-one\n+two");
    let prepared = fixture.prepare(TOOL, fits).await;
    assert!(matches!(prepared, Prepared::Ask(_)), "{prepared:?}");
    let wrong = patch("*** Update File: a\n-three\n+two");
    let prepared = fixture.prepare(TOOL, wrong).await;
    let is_error = matches!(
        prepared,
        Prepared::Refuse {
            outcome: CallOutcome::Error,
            ..
        }
    );
    assert!(is_error, "{prepared:?}");
}
