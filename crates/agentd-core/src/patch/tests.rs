//! Patches as models write them, and what is wrong with others.

use super::apply::Why;
use super::*;

fn patch(body: &str) -> String {
    format!("*** Begin Patch\n{body}\n*** End Patch")
}

fn parsed(body: &str) -> Patch {
    Patch::parse(&patch(body)).unwrap()
}

fn applied(body: &str, text: &str) -> Result<String, Unmatched> {
    let patch = parsed(&format!("*** Update File: a\n{body}"));
    let [FilePatch::Update { hunks, .. }] = &patch.files[..] else {
        panic!("one update")
    };
    apply(hunks, text)
}

#[test]
fn a_patch_names_what_happens_to_each_file() {
    let patch = parsed(
        "*** Add File: new.md\n+one\n+\n+two\n*** Delete File: old.txt\n*** Update File: a.rs\n*** Move to: b.rs\n\
         @@ mod x {\n@@ fn a() {\n keep\n-go\n+come\n@@\n-end\n*** End of File",
    );
    assert_eq!(patch.paths(), ["new.md", "old.txt", "a.rs", "b.rs"]);
    let [add, delete, update] = &patch.files[..] else {
        panic!("three files")
    };
    let (path, text) = ("new.md".to_owned(), "one\n\ntwo\n".to_owned());
    assert_eq!(*add, FilePatch::Add { path, text });
    let path = "old.txt".to_owned();
    assert_eq!(*delete, FilePatch::Delete { path });
    let FilePatch::Update { move_to, hunks, .. } = update else {
        panic!("an update")
    };
    assert_eq!(move_to.as_deref(), Some("b.rs"));
    assert_eq!(hunks[0].headers, ["mod x {", "fn a() {"]);
    assert_eq!(hunks[0].old_lines(), ["keep", "go"]);
    assert!(hunks[1].is_at_end && !hunks[0].is_at_end);
}

#[test]
fn small_deviations_are_accepted() {
    // Blank lines around it, numbers of a unified diff, an empty context line without its space, no `@@`.
    let text = "\n*** Begin Patch\n\n*** Update File: a\n@@ -1,3 +1,3 @@ fn a() {\n x\n\n-y\n+z\n\n*** Add File: b\n+c\n\n\
                *** End Patch\n";
    let patch = Patch::parse(text).unwrap();
    let FilePatch::Update { hunks, .. } = &patch.files[0] else {
        panic!("an update")
    };
    assert_eq!(hunks[0].headers, ["fn a() {"]);
    assert_eq!(hunks[0].old_lines(), ["x", "", "y"]);
    assert_eq!(applied("-x\n+y", "x\n").unwrap(), "y\n");
    let only_moved = parsed("*** Update File: a\n*** Move to: b");
    assert_eq!(only_moved.paths(), ["a", "b"]);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, said) in [
        ("", "first line"),
        ("*** Update File: a", "first line"),
        ("*** Begin Patch", "last line"),
        ("*** Begin Patch\n*** Delete File: a", "last line"),
        ("*** Begin Patch\n*** End Patch", "names no file"),
        ("*** Begin Patch\nhello\n*** End Patch", "line 2 (`hello`)"),
        (
            "*** Begin Patch\n*** Add File:\n+x\n*** End Patch",
            "line 2 names no path",
        ),
        (
            "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
            "line 3 (`x`): each line",
        ),
        (
            "*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch",
            "line 3",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n*** End Patch",
            "without a hunk",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@\n x\n*** End Patch",
            "changes nothing",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch",
            "line 4 (`x`): a line of a hunk",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n+x\n*** Move to: b\n*** End Patch",
            "line 4",
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: a\n*** End Patch",
            "named twice",
        ),
    ] {
        let error = Patch::parse(text).unwrap_err().to_string();
        assert!(error.contains(said), "{text:?}: {error}");
    }
}

const FILE: &str = "fn a() {\n    one();\n    two();\n}\n\nfn b() {\n    one();\n    two();\n}\n";

#[test]
fn a_hunk_is_applied_at_its_place() {
    let new = applied("@@ fn b() {\n     one();\n-    two();\n+    three();", FILE).unwrap();
    assert_eq!(
        new,
        FILE.replacen("two", "three", 2).replacen("three", "two", 1)
    );
    // Without a header, the first place counts.
    let new = applied("-    two();", FILE).unwrap();
    assert_eq!(new, FILE.replacen("    two();\n", "", 1));
    // Two hunks below the same line.
    let twice = "@@ fn a() {\n-    one();\n+    1();\n@@ fn a() {\n-    two();\n+    2();";
    let new = applied(twice, FILE).unwrap();
    assert!(new.starts_with("fn a() {\n    1();\n    2();\n}"), "{new}");
    // At the end of the file.
    let new = applied("@@\n }\n+// end\n*** End of File", FILE).unwrap();
    assert!(new.ends_with("}\n// end\n"), "{new}");
    assert_eq!(applied("+last", "first\n").unwrap(), "first\nlast\n");
    assert_eq!(
        applied("@@ first\n+second", "first\nthird\n").unwrap(),
        "first\nsecond\nthird\n"
    );
    assert_eq!(applied("+x", "").unwrap(), "x\n");
    assert_eq!(applied("-x", "x\n").unwrap(), "");
}

#[test]
fn lines_that_stay_keep_their_own_whitespace_and_endings() {
    assert_eq!(
        applied(" one\n-two\n+2", "\tone  \ntwo\t\n").unwrap(),
        "\tone  \n2\n"
    );
    assert_eq!(applied(" a\n-b\n+c", "a\r\nb\r\n").unwrap(), "a\r\nc\r\n");
    assert_eq!(applied(" a\n-b\n+c", "a\nb").unwrap(), "a\nc");
    // An exact match comes before a lenient one.
    assert_eq!(applied("-  x\n+y", "x\n  x\n").unwrap(), "x\ny\n");
}

#[test]
fn a_hunk_without_a_place_is_named() {
    for (body, hunk, why) in [
        ("@@ fn c() {\n-x", 1, Why::Header),
        ("-    one();\n@@\n-    four();", 2, Why::Lines),
        (
            "@@ fn b() {\n-    two();\n@@\n-    one();\n-    two();\n+x",
            2,
            Why::Order,
        ),
    ] {
        let unmatched = applied(body, FILE).unwrap_err();
        assert_eq!((unmatched.hunk, unmatched.why), (hunk, why), "{body}");
    }
    let unmatched = applied("-    four();\n+x", FILE).unwrap_err();
    assert_eq!(unmatched.wanted, "    four();");
}

#[test]
fn a_patch_has_a_limit_of_files_and_of_work() {
    let many = |count: usize| {
        let files: Vec<String> = (0..count)
            .map(|n| format!("*** Delete File: {n}"))
            .collect();
        format!("*** Begin Patch\n{}\n*** End Patch", files.join("\n"))
    };
    assert_eq!(Patch::parse(&many(200)).unwrap().files.len(), 200);
    assert_eq!(Patch::parse(&many(201)), Err(PatchError::TooManyFiles));
    // Almost every place of the file matches almost all lines of the hunk.
    let file = "x\n".repeat(20_000);
    let hunk = format!("{}-y\n+z", " x\n".repeat(10_000));
    let unmatched = applied(&hunk, &file).unwrap_err();
    assert_eq!(unmatched.why, Why::TooMuchWork);
    // A long file alone is no problem.
    let long = format!("{}y\n", "x\n".repeat(100_000));
    assert!(applied("-y\n+z", &long).unwrap().ends_with("x\nz\n"));
}

#[test]
fn each_path_has_its_change() {
    let patch = parsed(
        "*** Add File: a\n+x\n*** Delete File: b\n*** Update File: c\n+x\n*** Update File: d\n*** Move to: e\n+x",
    );
    let changes: Vec<_> = patch.changes().collect();
    let expected = [
        ("a", Change::Write),
        ("b", Change::Remove),
        ("c", Change::Update),
        ("d", Change::Remove),
        ("e", Change::Write),
    ];
    assert_eq!(changes, expected);
}
