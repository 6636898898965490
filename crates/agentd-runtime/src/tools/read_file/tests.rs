//! Reading texts, parts of texts, images, and files that are neither.

use super::super::tests::Fixture;
use super::MAX_IMAGE_BYTES;
use agentd_core::message::{Block, CallOutcome};
use agentd_core::secrets::MARK;
use serde_json::json;
use std::fs::File;
use std::os::unix::fs::symlink;

#[tokio::test]
async fn a_text_is_returned_as_it_is() {
    let fixture = Fixture::new();
    for content in ["one\ntwo\n", "one\r\ntwo", "\n\n", "é\n"] {
        fixture.file("dir/a.txt", content);
        let text = fixture
            .ok("read_file", json!({"file_path": "dir/a.txt"}))
            .await;
        assert_eq!(text, content);
    }
    fixture.file("a", "");
    let text = fixture.ok("read_file", json!({"file_path": "a"})).await;
    assert_eq!(text, "a is empty.");
    symlink("dir/a.txt", fixture.path("link")).unwrap();
    assert_eq!(
        fixture.ok("read_file", json!({"file_path": "link"})).await,
        "é\n"
    );
    // Tools run as the user: other directories are not off limits.
    std::fs::write(fixture.base().join("outside"), "out").unwrap();
    let text = fixture
        .ok("read_file", json!({"file_path": "../outside"}))
        .await;
    assert_eq!(text, "out");
}

#[tokio::test]
async fn a_part_says_which_it_is() {
    let fixture = Fixture::new();
    let lines: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    fixture.file("a", &lines);
    let part = |offset: Option<u64>, limit: Option<u64>| {
        fixture.ok(
            "read_file",
            json!({"file_path": "a", "offset": offset, "limit": limit}),
        )
    };
    assert_eq!(
        part(Some(3), Some(2)).await,
        "[a: lines 3 to 4 of 20; continue with offset 5]\nline 3\nline 4\n"
    );
    assert_eq!(
        part(Some(20), None).await,
        "[a: lines 20 to 20 of 20]\nline 20\n"
    );
    assert_eq!(part(Some(0), Some(100)).await, lines);
    let text = fixture
        .error("read_file", json!({"file_path": "a", "offset": 21}))
        .await;
    assert_eq!(text, "a has only 20 lines.");
    let text = fixture
        .error("read_file", json!({"file_path": "a", "limit": 0}))
        .await;
    assert!(text.contains("`limit` is 0"), "{text}");
}

#[tokio::test]
async fn a_long_text_is_read_in_parts_without_a_gap() {
    let fixture = Fixture::new();
    let content: String = (1..=500).map(|n| format!("zeile {n} ü€🙂\n")).collect();
    fixture.file("a", &content);
    let (mut all, mut offset) = (String::new(), 1);
    loop {
        let text = fixture
            .ok("read_file", json!({"file_path": "a", "offset": offset}))
            .await;
        let (head, part) = text.split_once('\n').unwrap();
        assert!(part.len() <= fixture.options.output_bytes);
        all.push_str(part);
        let Some((_, next)) = head.split_once("continue with offset ") else {
            break;
        };
        offset = next.trim_end_matches(']').parse().unwrap();
    }
    assert_eq!(all, content);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_cut_between_characters() {
    let mut fixture = Fixture::new();
    fixture.file("a", format!("{}\nlast\n", "é".repeat(5000)));
    for limit in [100, 101] {
        fixture.options.output_bytes = limit;
        let text = fixture.ok("read_file", json!({"file_path": "a"})).await;
        let (head, line) = text.split_once('\n').unwrap();
        assert_eq!(
            head,
            "[a: the beginning of line 1 of 2, which is 10,001 bytes long; continue with offset 2]"
        );
        assert_eq!(line, "é".repeat(50));
    }
}

#[tokio::test]
async fn a_secret_is_never_shown_in_part() {
    let mut fixture = Fixture::new();
    let secret = "sk-0123456789";
    for before in 0..40 {
        fixture.options.output_bytes = 30;
        fixture.file(
            "a",
            format!("{}{secret}{}", "x".repeat(before), "y".repeat(50)),
        );
        let text = fixture.ok("read_file", json!({"file_path": "a"})).await;
        let (_, line) = text.split_once('\n').unwrap();
        assert!(!line.contains("sk-"), "{before}: {line}");
    }
    fixture.options.output_bytes = 1000;
    fixture.file("a", format!("a={secret}\n"));
    let text = fixture.ok("read_file", json!({"file_path": "a"})).await;
    assert_eq!(text, format!("a={MARK}\n"));
}

#[tokio::test]
async fn a_huge_file_is_not_read_whole() {
    let fixture = Fixture::new();
    // It takes no room on disk; all of it is one line of NULs after the first.
    let path = fixture.file("a", "first\n".repeat(2000));
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(1 << 40).unwrap();
    let text = fixture
        .ok("read_file", json!({"file_path": "a", "limit": 1}))
        .await;
    assert_eq!(
        text,
        "[a: lines 1 to 1 of a file of 1,099,511,627,776 bytes; continue with offset 2]\nfirst\n"
    );
}

#[tokio::test]
async fn images_are_shown() {
    let fixture = Fixture::new();
    for (media_type, bytes) in [
        ("image/png", &b"\x89PNG\r\n\x1a\nrest\0"[..]),
        ("image/jpeg", b"\xff\xd8\xff\xe0\0"),
        ("image/gif", b"GIF89a\0"),
        ("image/webp", b"RIFF\0\0\0\0WEBP"),
    ] {
        fixture.file("a", bytes);
        let finished = fixture.finish("read_file", json!({"file_path": "a"})).await;
        assert_eq!(finished.outcome, CallOutcome::Ok);
        let [
            Block::Image {
                media_type: is,
                data,
            },
        ] = &finished.blocks[..]
        else {
            panic!("{finished:?}")
        };
        use base64::Engine as _;
        let back = base64::engine::general_purpose::STANDARD
            .decode(data)
            .unwrap();
        assert_eq!((is.as_str(), &back[..]), (media_type, bytes));
    }
    let path = fixture.file("a", b"\x89PNG\r\n\x1a\n");
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(MAX_IMAGE_BYTES + 1).unwrap();
    let text = fixture.ok("read_file", json!({"file_path": "a"})).await;
    assert!(
        text.contains("an image (image/png) of 5,242,881 bytes"),
        "{text}"
    );
}

#[tokio::test]
async fn what_is_no_text_is_described() {
    let fixture = Fixture::new();
    fixture.file("a", b"\x7fELF\0\0");
    let text = fixture.ok("read_file", json!({"file_path": "a"})).await;
    assert_eq!(text, "a is a program (ELF) of 6 bytes.");
    fixture.file("a", b"x\0");
    let text = fixture.ok("read_file", json!({"file_path": "a"})).await;
    assert_eq!(text, "a is a binary file of 2 bytes.");
    fixture.file("a", b"caf\xe9\n");
    let text = fixture.ok("read_file", json!({"file_path": "a"})).await;
    assert_eq!(text, "caf\u{fffd}\n");
}

#[tokio::test]
async fn what_cannot_be_read_is_said() {
    let fixture = Fixture::new();
    fixture.file("dir/a", "");
    for (path, said) in [
        ("nothing", "Cannot read nothing: No such file"),
        ("dir", "dir is a directory; use list_files"),
        ("dir/a/b", "Cannot read dir/a/b"),
        ("/dev/zero", "/dev/zero is not a regular file"),
        ("", "The path is empty"),
        ("~/x", "Cannot read ~/x"),
    ] {
        let text = fixture.error("read_file", json!({"file_path": path})).await;
        assert!(text.contains(said), "{text}");
    }
}
