//! Stored secrets are read back, and a file that the daemon did not write is refused.

use super::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

const AT: Timestamp = Timestamp::from_millis(5);

fn layout(root: &tempfile::TempDir) -> Layout {
    let layout = Layout::new(root.path().join("home"));
    layout.make().unwrap();
    layout
}

fn stored(layout: &Layout) -> Stored {
    let mut stored = Stored::new();
    put(&mut stored, "SOME_KEY", " sk-canary\n", AT).unwrap();
    write(layout, stored.clone()).unwrap();
    stored
}

#[test]
fn what_was_written_is_read_again() {
    let root = tempfile::tempdir().unwrap();
    let layout = layout(&root);
    assert_eq!(read(&layout).unwrap(), Stored::new());
    let stored = stored(&layout);
    assert_eq!(read(&layout).unwrap(), stored);
    assert_eq!(stored["SOME_KEY"].value, "sk-canary");
    let mode = fs::metadata(layout.secrets()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!format!("{stored:?}").contains("canary"));
    // A file that a crash left behind does not get in the way.
    fs::write(layout.secrets().with_extension("json.new"), "half").unwrap();
    write(&layout, stored).unwrap();
    assert!(!layout.secrets().with_extension("json.new").exists());
}

#[test]
fn a_file_that_others_could_have_read_or_written_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let layout = layout(&root);
    stored(&layout);
    let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    for (path, open, closed) in [
        (layout.secrets(), 0o640, 0o600),
        (layout.secrets(), 0o602, 0o600),
        (layout.home().to_owned(), 0o755, 0o700),
    ] {
        mode(&path, open);
        assert!(matches!(read(&layout), Err(Error::Open { .. })), "{open:o}");
        mode(&path, closed);
        assert!(read(&layout).is_ok());
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(layout.secrets(), Some(54_322), None).unwrap();
        assert!(matches!(read(&layout), Err(Error::Foreign(_))));
    }
}

#[test]
fn what_is_no_such_file_is_an_error_that_quotes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let layout = layout(&root);
    for text in [
        "",
        "[]",
        r#"{"v":1,"secrets":{"A":"sk-canary"}}"#,
        r#"{"v":"sk-canary"}"#,
    ] {
        write(&layout, Stored::new()).unwrap();
        fs::write(layout.secrets(), text).unwrap();
        let error = read(&layout).unwrap_err();
        assert!(matches!(error, Error::Malformed(_)));
        assert!(!error.to_string().contains("canary"));
    }
    fs::write(layout.secrets(), r#"{"v":2,"secrets":{}}"#).unwrap();
    assert!(matches!(read(&layout), Err(Error::Newer(_))));
    fs::remove_file(layout.secrets()).unwrap();
    fs::create_dir(layout.secrets()).unwrap();
    assert!(read(&layout).is_err());
    fs::remove_dir(layout.secrets()).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", layout.secrets()).unwrap();
    assert!(read(&layout).is_err());
}

#[test]
fn names_and_values_are_checked() {
    let mut stored = Stored::new();
    for name in ["", "1A", "A-B", "A B", "É", &"A".repeat(129)] {
        let refused = put(&mut stored, name, "value", AT);
        assert!(matches!(refused, Err(Error::BadName(_))), "{name}");
    }
    for name in ["PATH", "LC_ALL", "HOME"] {
        let refused = put(&mut stored, name, "value", AT);
        assert!(matches!(refused, Err(Error::HandedOn(_))), "{name}");
    }
    assert!(matches!(
        put(&mut stored, "A", " \n", AT),
        Err(Error::Empty)
    ));
    assert!(matches!(
        put(&mut stored, "A", "a\nb", AT),
        Err(Error::NotOneLine)
    ));
    let long = "x".repeat(MAX_VALUE_BYTES + 1);
    assert!(matches!(
        put(&mut stored, "A", &long, AT),
        Err(Error::TooLong)
    ));
    for n in 0..MAX_SECRETS {
        put(&mut stored, &format!("A{n}"), "value", AT).unwrap();
    }
    assert!(matches!(
        put(&mut stored, "B", "value", AT),
        Err(Error::TooMany)
    ));
    put(&mut stored, "A1", "another", AT).unwrap();
}
