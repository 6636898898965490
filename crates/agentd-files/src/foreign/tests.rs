//! What the one reader opens, and what it refuses.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

const LIMIT: u64 = 1000;

fn dir() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let at = fs::canonicalize(dir.path()).unwrap();
    (dir, at)
}

fn fifo(path: &Path) {
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(CWD, path, FileType::Fifo, mode, 0).unwrap();
}

/// Without a writer, a plain open of a pipe would wait for ever; and a device never ends.
#[test]
fn only_a_regular_file_is_read() {
    let (_dir, at) = dir();
    fifo(&at.join("pipe"));
    symlink("/dev/zero", at.join("zero")).unwrap();
    symlink("pipe", at.join("to-pipe")).unwrap();
    for name in ["pipe", "zero", "to-pipe", "."] {
        let read = read(&at.join(name), Links::Follow, LIMIT);
        assert!(matches!(read, Err(Error::NotRegular)), "{name} {read:?}");
    }
    let read = read(&at.join("none"), Links::Follow, LIMIT);
    assert!(matches!(read, Err(Error::NotFound)), "{read:?}");
}

#[test]
fn a_link_is_followed_only_where_it_may_be() {
    let (_dir, at) = dir();
    fs::create_dir(at.join("real")).unwrap();
    fs::write(at.join("real/file"), "a").unwrap();
    symlink("file", at.join("real/link")).unwrap();
    symlink("real", at.join("dir")).unwrap();
    let is_read = |path: &str, links| match read(&at.join(path), links, LIMIT) {
        Ok(bytes) => bytes == b"a",
        Err(Error::Link) => false,
        Err(error) => panic!("{path} {error}"),
    };
    for (path, followed, not_last, refused) in [
        ("real/file", true, true, true),
        ("real/link", true, false, false),
        ("dir/file", true, true, false),
        ("dir/link", true, false, false),
    ] {
        assert_eq!(is_read(path, Links::Follow), followed, "{path}");
        assert_eq!(is_read(path, Links::NotLast), not_last, "{path}");
        assert_eq!(is_read(path, Links::Refuse), refused, "{path}");
        let below = read_below(&at, Path::new(path), LIMIT);
        assert_eq!(below.is_ok(), refused, "{path}");
    }
    assert!(read_below(&at.join("dir"), Path::new("file"), LIMIT).is_ok());
    assert!(read_below(&at.join("dir"), Path::new("../real/file"), LIMIT).is_err());
}

#[test]
fn a_link_inside_leads_only_to_what_is_below_the_directory() {
    let (_dir, at) = dir();
    fs::create_dir_all(at.join("root/sub")).unwrap();
    fs::write(at.join("root/file"), "a").unwrap();
    fs::write(at.join("outside"), "b").unwrap();
    symlink("../file", at.join("root/sub/up")).unwrap();
    symlink("sub", at.join("root/dir")).unwrap();
    symlink("../outside", at.join("root/out")).unwrap();
    symlink(at.join("root/file"), at.join("root/absolute")).unwrap();
    let root = open_dir(&at.join("root")).unwrap();
    let opened = |path: &str| open_at(&root, Path::new(path), Links::Inside);
    for path in ["file", "sub/up", "dir/up"] {
        assert!(opened(path).is_ok(), "{path}");
    }
    for path in ["out", "absolute", "../outside"] {
        let opened = opened(path);
        assert!(matches!(opened, Err(Error::Io(_))), "{path} {opened:?}");
    }
}

/// Regression: the type was checked after the open, which let a writer that waited for a reader of the pipe go on.
#[test]
fn what_is_no_regular_file_is_not_even_opened() {
    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
    let (_dir, at) = dir();
    fifo(&at.join("pipe"));
    let watch = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
    add_watch(&watch, at.join("pipe"), WatchFlags::OPEN).unwrap();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 512];
    let mut events = Reader::new(&watch, &mut buffer);
    let root = open_dir(&at).unwrap();
    for links in [Links::Follow, Links::NotLast, Links::Inside, Links::Refuse] {
        let opened = open_at(&root, Path::new("pipe"), links);
        assert!(matches!(opened, Err(Error::NotRegular)), "{opened:?}");
        assert!(matches!(events.next(), Err(Errno::AGAIN)), "{links:?}");
    }
    // The watch does see an open.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    rustix::fs::open(at.join("pipe"), flags, Mode::empty()).unwrap();
    assert!(events.next().is_ok());
}

/// In a sandbox, whose filter has no `openat2`.
#[test]
fn without_openat2_links_are_refused_in_the_same_way() {
    let (_dir, at) = dir();
    fs::create_dir_all(at.join("real/inner")).unwrap();
    fs::write(at.join("real/inner/file"), "a").unwrap();
    symlink("file", at.join("real/inner/link")).unwrap();
    symlink("real", at.join("dir")).unwrap();
    symlink("none", at.join("dangling")).unwrap();
    let root = open_dir(&at).unwrap();
    let cases = [
        "real/inner/file",
        "real/./inner/file",
        "real/inner/../inner/file",
        "real/inner/link",
        "dir/inner/file",
        "dangling/file",
        "dangling",
        "real/none",
        "real/inner/file/below",
        "..",
        "real/inner",
        "/proc/self/cwd",
        "/proc/self/root/etc",
    ];
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let path_only = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for within in [no_links, no_links | ResolveFlags::BENEATH] {
        for path in cases.map(Path::new) {
            for path in [path.to_owned(), at.join(path)] {
                let is_inside = within.contains(ResolveFlags::BENEATH);
                if is_inside && path.components().any(|part| part == Component::ParentDir) {
                    // The kernel lets a path go up again inside; by parts it does not.
                    assert!(open_by_parts(root.as_fd(), &path, path_only, within).is_err());
                    continue;
                }
                for flags in [path_only, OFlags::RDONLY | OFlags::NOFOLLOW] {
                    let asked = rustix::fs::openat2(&root, &path, flags, Mode::empty(), within);
                    let walked = open_by_parts(root.as_fd(), &path, flags, within);
                    let id = |file: OwnedFd| {
                        let stat = rustix::fs::fstat(&file).unwrap();
                        (stat.st_dev, stat.st_ino)
                    };
                    assert_eq!(
                        walked.map(id),
                        asked.map(id),
                        "{path:?} {within:?} {flags:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn no_more_is_read_than_the_limit() {
    let (_dir, at) = dir();
    let path = at.join("file");
    fs::write(&path, "ä".repeat(500)).unwrap();
    assert_eq!(read(&path, Links::Refuse, LIMIT).unwrap().len(), 1000);
    assert!(read_text(&path, Links::Refuse, LIMIT).is_ok());
    fs::write(&path, [255]).unwrap();
    let text = read_text(&path, Links::Refuse, LIMIT);
    assert!(matches!(text, Err(Error::NotText)), "{text:?}");
    // Sparse: a reader without a limit would need as much memory.
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let read = read(&path, Links::Refuse, LIMIT);
    assert!(matches!(read, Err(Error::TooLarge { limit: LIMIT })));
    let error = io::Error::from(read.unwrap_err());
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
}
