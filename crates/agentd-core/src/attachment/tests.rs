//! Which files a prompt accepts.

use super::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x02\0\0\0";

fn given(name: &str, bytes: &[u8]) -> NewAttachment {
    NewAttachment::of_bytes(name, bytes)
}

fn refused(given: NewAttachment) -> Refused {
    accept(vec![given]).unwrap_err()
}

#[test]
fn files_become_blocks_by_their_content() {
    let files = vec![
        given("chart.png", PNG),
        given("paper.png", b"%PDF-1.4 <</Type/Page>>"),
        given("src/lib.rs", b"fn main() {}\n"),
    ];
    let data: Vec<String> = files.iter().map(|file| file.data.clone()).collect();
    let blocks = accept(files).unwrap();
    let files: Vec<&AttachedFile> = blocks
        .iter()
        .filter_map(|block| block.as_attachment().map(|it| &it.file))
        .collect();
    let image = AttachedFile::Image {
        media_type: "image/png".to_owned(),
        data: data[0].clone(),
    };
    let pdf = AttachedFile::Pdf {
        pages: 1,
        data: data[1].clone(),
    };
    let text = AttachedFile::Text {
        text: "fn main() {}\n".to_owned(),
    };
    assert_eq!(files, [&image, &pdf, &text]);
}

#[test]
fn what_is_refused_says_why() {
    let name = || "x".to_owned();
    assert_eq!(refused(given("x", b"")), Refused::Empty { name: name() });
    assert_eq!(
        refused(given("x", b"PK\x03\x04\xff")),
        Refused::Unknown { name: name() }
    );
    assert!(matches!(refused(given("a\nb", b"x")), Refused::Name { .. }));
    assert!(matches!(refused(given(" ", b"x")), Refused::Name { .. }));
    let broken = |data: &str| NewAttachment {
        data: data.to_owned(),
        ..given("x", b"")
    };
    for data in ["a", "aGk", "aGk=\n", "aGl=", "a-_="] {
        assert_eq!(refused(broken(data)), Refused::NotBase64 { name: name() });
    }
    let other = NewAttachment {
        media_type: Some("image/jpeg".to_owned()),
        ..given("x", PNG)
    };
    assert!(matches!(refused(other), Refused::OtherType { .. }));
    let long = refused(given("x", &vec![b'a'; MAX_TEXT_BYTES + 1]));
    assert!(long.is_too_large() && long.to_string().contains("1048577"));
    let many = accept(vec![given("x", b"x"); MAX_FILES + 1]).unwrap_err();
    assert!(many.is_too_large());
}

/// The sum counts as it is stored: control characters take six bytes each in JSON.
#[test]
fn all_files_of_a_prompt_fit_into_one_event() {
    let text = vec![1_u8; MAX_TEXT_BYTES];
    let files: Vec<NewAttachment> = (0..5).map(|_| given("x", &text)).collect();
    assert!(matches!(
        accept(files).unwrap_err(),
        Refused::TooLarge { bytes } if bytes > MAX_STORED_BYTES
    ));
    let mut image = PNG.to_vec();
    image.resize(MAX_STORED_BYTES / 4 * 3 + 3, 0);
    assert!(matches!(
        refused(given("x", &image)),
        Refused::TooLarge { .. }
    ));
    image.truncate(MAX_STORED_BYTES / 4 * 3 - 3);
    assert!(accept(vec![given("x", &image)]).is_ok());
}
