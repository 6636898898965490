//! What a call changes is kept before it starts, to the byte.

use super::super::tests::Fixture;
use super::{Before, Budget, State, contents, encoded_bytes};
use agentd_core::event::{
    FileBefore, FileKept, KEPT_PART_BYTES, KeptBy, KeptContent, NotKept, ToolStarted,
};
use agentd_core::turn::Prepared;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

async fn prepared(fixture: &Fixture, tool: &str, arguments: Value) -> (ToolStarted, Vec<FileKept>) {
    match fixture.prepare(tool, arguments).await {
        Prepared::Run(started, kept) => (started, kept),
        other => panic!("{other:?}"),
    }
}

/// The bytes of a content.
fn bytes_of(contents: &[KeptContent]) -> Vec<u8> {
    let parts = contents.iter().map(|content| match content {
        KeptContent::Text { text } => text.clone().into_bytes(),
        KeptContent::Base64 { base64 } => STANDARD.decode(base64).unwrap(),
        KeptContent::NotKept { why } => panic!("{why:?}"),
    });
    parts.collect::<Vec<_>>().concat()
}

fn only(kept: Vec<FileKept>) -> FileKept {
    let [kept] = kept.try_into().unwrap();
    kept
}

#[tokio::test]
async fn an_edit_keeps_the_old_text_its_mode_and_its_hash() {
    let fixture = Fixture::new();
    let path = fixture.known("a", "one\r\ntwo\r\n");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let edit = json!({"file_path": "a", "old_string": "two", "new_string": "three"});
    let (started, kept) = prepared(&fixture, "edit_file", edit).await;
    let change = started.change.clone().unwrap();
    assert_eq!((change.kept_bytes, started.kept_bytes()), (10, 10));
    let kept = only(kept);
    let call = started.call;
    assert_eq!(kept.by, KeptBy::Call { call });
    assert_eq!(kept.path, path.to_str().unwrap());
    assert_eq!((kept.part, kept.parts, kept.counted_bytes()), (0, 1, 10));
    let text = "one\r\ntwo\r\n".to_owned();
    let file = FileBefore::File {
        mode: 0o640,
        size: 10,
        hash: change.before.unwrap(),
        content: KeptContent::Text { text },
    };
    assert_eq!(kept.before, file);
}

#[tokio::test]
async fn a_write_keeps_what_it_replaces_behind_a_link_and_the_absence_of_a_new_file() {
    let fixture = Fixture::new();
    let path = fixture.known("dir/a", "old");
    symlink("dir/a", fixture.path("link")).unwrap();
    let write = json!({"file_path": "link", "content": "new"});
    let (_, kept) = prepared(&fixture, "write_file", write).await;
    let kept = only(kept);
    assert_eq!(kept.path, path.to_str().unwrap());
    let FileBefore::File {
        content, size: 3, ..
    } = kept.before
    else {
        panic!("{kept:?}");
    };
    assert_eq!(bytes_of(&[content]), b"old");

    let write = json!({"file_path": "b", "content": "new"});
    let (started, kept) = prepared(&fixture, "write_file", write).await;
    assert_eq!(started.kept_bytes(), 0);
    let kept = only(kept);
    assert_eq!(kept.before, FileBefore::Absent);
    assert!(kept.is_restorable());
}

#[tokio::test]
async fn the_same_content_and_a_call_that_is_refused_keep_nothing() {
    let fixture = Fixture::new();
    fixture.file("a", "same");
    let write = json!({"file_path": "a", "content": "same"});
    let (started, kept) = prepared(&fixture, "write_file", write).await;
    assert_eq!((started.kept_bytes(), kept), (0, Vec::new()));
    // It has not been read.
    let write = json!({"file_path": "a", "content": "other"});
    let refused = fixture.prepare("write_file", write).await;
    assert!(matches!(refused, Prepared::Refuse { .. }), "{refused:?}");
}

#[tokio::test]
async fn a_file_past_the_limit_is_named_but_not_kept_and_zero_keeps_nothing() {
    let mut fixture = Fixture::new();
    fixture.known("a", "0123456789");
    for (limit, is_kept) in [(10, true), (9, false)] {
        fixture.options.file_history_bytes = limit;
        for (tool, arguments) in [
            ("write_file", json!({"file_path": "a", "content": "new"})),
            (
                "edit_file",
                json!({"file_path": "a", "old_string": "0", "new_string": "1"}),
            ),
        ] {
            let (started, kept) = prepared(&fixture, tool, arguments).await;
            let kept = only(kept);
            let FileBefore::File { size, content, .. } = &kept.before else {
                panic!("{kept:?}");
            };
            let why = NotKept::TooLarge;
            assert_eq!(*size, 10);
            assert_eq!(*content != KeptContent::NotKept { why }, is_kept, "{tool}");
            assert_eq!(kept.is_restorable(), is_kept);
            assert_eq!(started.kept_bytes(), if is_kept { 10 } else { 0 });
            assert_eq!(started.kept_bytes(), kept.counted_bytes());
        }
    }
    fixture.options.file_history_bytes = 0;
    for file in ["a", "new"] {
        let write = json!({"file_path": file, "content": "new"});
        let (started, kept) = prepared(&fixture, "write_file", write).await;
        assert_eq!((started.kept_bytes(), kept), (0, Vec::new()));
    }
}

#[tokio::test]
async fn a_file_with_a_secret_of_the_agent_is_named_but_not_kept() {
    let fixture = Fixture::new();
    fixture.known("a", "KEY=sk-0123456789\nPORT=1\n");
    let edit = json!({"file_path": "a", "old_string": "PORT=1", "new_string": "PORT=2"});
    let (started, kept) = prepared(&fixture, "edit_file", edit).await;
    let kept = only(kept);
    assert!(!kept.is_restorable());
    assert_eq!(started.kept_bytes(), 0);
    let text = serde_json::to_string(&kept).unwrap();
    assert!(text.contains(r#""why":"secret""#), "{text}");
    assert!(!text.contains("sk-0123456789"), "{text}");
}

#[test]
fn a_content_is_split_and_joined_to_the_byte() {
    let text = "é\t\r\n".repeat(KEPT_PART_BYTES / 4);
    let control = b"plain \x1b[1m".repeat(KEPT_PART_BYTES / 8);
    let binary: Vec<u8> = (0..=255).cycle().take(KEPT_PART_BYTES * 2 + 1).collect();
    for (bytes, parts, is_text) in [
        (Vec::new(), 1, true),
        (b"a\n".to_vec(), 1, true),
        (text.into_bytes(), 2, true),
        (control, 2, false),
        (binary, 3, false),
    ] {
        let contents = contents(bytes.clone());
        assert_eq!(contents.len(), parts);
        assert_eq!(bytes_of(&contents), bytes);
        let texts = contents.iter();
        assert!(
            texts
                .map(|it| matches!(it, KeptContent::Text { .. }))
                .all(|it| it == is_text)
        );
    }
}

/// All that a call keeps is one append, which must fit into a frame of the link.
#[test]
fn what_a_call_keeps_in_all_is_limited() {
    let file = |bytes: &[u8]| Before {
        path: "/a".to_owned(),
        state: State::File {
            mode: 0o644,
            size: bytes.len() as u64,
            hash: "hash".to_owned(),
            bytes: Ok(bytes.to_vec()),
        },
    };
    let mut budget = Budget { left: 20 };
    let kept = [
        b"\n\n\n\n\n\n".as_slice(),
        b"\xff\xff\xff\xff\xff\xff\xff",
        b"\xff\xff\xff",
    ];
    let kept = kept.map(|bytes| budget.fit(file(bytes)).counted_bytes());
    assert_eq!(kept, [6, 0, 3], "12, 12 and 4 bytes as JSON");
    for bytes in [
        b"a\"b\\c\td\r\n".as_slice(),
        b"\0\x01\xff",
        b"",
        "äö".as_bytes(),
    ] {
        let content = contents(bytes.to_vec()).remove(0);
        let text = match &content {
            KeptContent::Text { text } | KeptContent::Base64 { base64: text } => text,
            KeptContent::NotKept { why } => panic!("{why:?}"),
        };
        let json = serde_json::to_string(text).unwrap();
        assert!(json.len() as u64 - 2 <= encoded_bytes(bytes), "{json}");
    }
}
