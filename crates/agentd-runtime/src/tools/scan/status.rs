//! The output of `git status --porcelain=v2 -z`. It comes from the sandbox, so nothing about it is certain.

use agentd_core::event::{Oid, ScannedChange};

/// The bits of a mode that say what kind of file it is.
const KIND: u32 = 0o170_000;

/// The files that differ from the newest commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    pub entries: Vec<Entry>,
    /// How many more there are: too many, with names that are not UTF-8, or something else than a file.
    pub more: u64,
    /// Repositories in the work tree that are not a part of it. What is inside is not looked at.
    pub nested: Vec<String>,
    /// The name of the newest commit.
    pub commit: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Relative to the work tree.
    pub path: String,
    pub change: ScannedChange,
    pub head: Option<Oid>,
    pub index: Option<Oid>,
    /// Of the index, or of the newest commit if the index does not have the path.
    pub mode: u32,
    /// Of the newest commit.
    pub head_mode: u32,
}

impl Entry {
    pub fn is_deleted(&self) -> bool {
        self.change == ScannedChange::Deleted
    }
}

impl Status {
    /// Reads at most so many files. A last line without its end was cut off and is ignored.
    pub fn read(output: &[u8], most: usize) -> Self {
        let mut status = Self::default();
        let Some(end) = output.iter().rposition(|byte| *byte == 0) else {
            return status;
        };
        let lines = output.get(..end).unwrap_or_default();
        for line in lines.split(|byte| *byte == 0) {
            let text = std::str::from_utf8(line);
            if let Some(commit) = text.ok().and_then(commit) {
                status.commit = Some(commit.to_owned());
                continue;
            }
            if let Some(dir) = text.ok().and_then(nested) {
                match status.nested.len() < most {
                    true => status.nested.push(dir.to_owned()),
                    false => status.more += 1,
                }
                continue;
            }
            match text.map(entry) {
                Ok(Some(entry)) if status.entries.len() < most => status.entries.push(entry),
                Ok(None) if is_about_no_file(line) => {}
                Ok(_) | Err(_) => status.more += 1,
            }
        }
        status
    }
}

/// The newest commit, if the line tells it.
fn commit(line: &str) -> Option<&str> {
    line.strip_prefix("# branch.oid ")
}

/// The directory of a nested repository, if the line names one.
fn nested(line: &str) -> Option<&str> {
    let dir = line.strip_prefix("? ")?.strip_suffix('/')?;
    is_inside(dir).then_some(dir)
}

fn is_about_no_file(line: &[u8]) -> bool {
    line.first().is_none_or(|kind| matches!(kind, b'#' | b'!'))
}

/// `None` for a line that names no file of the work tree.
fn entry(line: &str) -> Option<Entry> {
    let (kind, rest) = line.split_once(' ')?;
    let entry = match kind {
        "?" => untracked(rest),
        // XY sub mH mI mW hH hI path
        "1" => {
            let [_, _, head_mode, index_mode, mode, head, index, path] = fields(rest)?;
            let modes = [octal(head_mode)?, octal(index_mode)?, octal(mode)?];
            tracked(path, modes, oid(head), oid(index))
        }
        // XY sub m1 m2 m3 mW h1 h2 h3 path: the second stage is ours.
        "u" => {
            let [_, _, _, ours, _, mode, _, head, _, path] = fields(rest)?;
            let ours = octal(ours)?;
            tracked(path, [ours, 0, octal(mode)?], oid(head), None)
        }
        _ => return None,
    };
    is_inside(&entry.path).then_some(entry)
}

fn untracked(path: &str) -> Entry {
    Entry {
        path: path.to_owned(),
        change: ScannedChange::Added,
        head: None,
        index: None,
        mode: 0,
        head_mode: 0,
    }
}

/// The modes are those of the commit, of the index and of the file.
fn tracked(path: &str, modes: [u32; 3], head: Option<Oid>, index: Option<Oid>) -> Entry {
    let [in_head, in_index, now] = modes;
    let change = match (in_head, now) {
        (_, 0) => ScannedChange::Deleted,
        (0, _) => ScannedChange::Added,
        (old, new) if old & KIND != new & KIND => ScannedChange::TypeChanged,
        _ => ScannedChange::Modified,
    };
    Entry {
        path: path.to_owned(),
        change,
        head,
        index,
        mode: if in_index == 0 { in_head } else { in_index },
        head_mode: in_head,
    }
}

/// The fields of a line; the last one may contain spaces.
fn fields<const N: usize>(line: &str) -> Option<[&str; N]> {
    let fields: Vec<&str> = line.splitn(N, ' ').collect();
    fields.try_into().ok()
}

fn octal(digits: &str) -> Option<u32> {
    u32::from_str_radix(digits, 8).ok()
}

/// `None` also for the object that stands for no object.
fn oid(name: &str) -> Option<Oid> {
    if name.bytes().all(|byte| byte == b'0') {
        return None;
    }
    Oid::try_from(name.to_owned()).ok()
}

/// A path below the work tree.
fn is_inside(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
    const NO: &str = "0000000000000000000000000000000000000000";

    fn read(lines: &[&str]) -> Status {
        let mut output = lines.join("\0").into_bytes();
        output.push(0);
        Status::read(&output, 10)
    }

    #[test]
    fn each_kind_of_change_is_told_from_the_modes() {
        let lines = [
            format!("1 .M N... 100644 100644 100644 {OID} {OID} a file"),
            format!("1 .D N... 100644 100644 000000 {OID} {OID} gone"),
            format!("1 A. N... 000000 100644 100644 {NO} {OID} new"),
            format!("1 .T N... 100644 100644 120000 {OID} {OID} link"),
            format!("1 D. N... 100755 000000 000000 {OID} {NO} removed"),
            format!("u UU N... 100644 100644 100644 100644 {OID} {OID} {OID} both"),
            "? some/other".to_owned(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let status = read(&lines);
        assert_eq!(status.more, 0);
        let oid = |name: &str| Oid::try_from(name.to_owned()).ok();
        let (some, none) = (|| oid(OID), || None);
        let expected = [
            ("a file", ScannedChange::Modified, some(), some(), 0o100_644),
            ("gone", ScannedChange::Deleted, some(), some(), 0o100_644),
            ("new", ScannedChange::Added, none(), some(), 0o100_644),
            (
                "link",
                ScannedChange::TypeChanged,
                some(),
                some(),
                0o100_644,
            ),
            ("removed", ScannedChange::Deleted, some(), none(), 0o100_755),
            ("both", ScannedChange::Modified, some(), none(), 0o100_644),
            ("some/other", ScannedChange::Added, none(), none(), 0),
        ];
        let expected = expected.map(|(path, change, head, index, mode)| Entry {
            path: path.to_owned(),
            change,
            head_mode: if head.is_some() { mode } else { 0 },
            head,
            index,
            mode,
        });
        assert_eq!(status.entries, expected);
    }

    #[test]
    fn a_nested_repository_and_the_newest_commit_are_no_files() {
        let commit = format!("# branch.oid {OID}");
        let status = read(&[&commit, "# branch.head main", "? vendor/lib/", "? a"]);
        let expected = Status {
            entries: vec![untracked("a")],
            more: 0,
            nested: vec!["vendor/lib".to_owned()],
            commit: Some(OID.to_owned()),
        };
        assert_eq!(status, expected);
    }

    #[test]
    fn what_is_cut_off_too_much_or_not_a_path_is_not_listed() {
        let cut = b"? a\0? b".as_slice();
        assert_eq!(Status::read(cut, 10).entries, [untracked("a")]);
        let many = b"? a\0? b\0? \xff\0".as_slice();
        let status = Status::read(many, 1);
        assert_eq!((status.entries.len(), status.more), (1, 2));
        for line in [
            "? ../a",
            "? /etc/passwd",
            "? a/../../b",
            "? ../nested/",
            "?",
            "1 .M",
            "1 .M N... 100644 100644 xyz - - a",
        ] {
            let status = read(&[line]);
            assert_eq!((status.entries.len(), status.more), (0, 1), "{line}");
        }
        for line in ["", "# branch.head main", "! ignored"] {
            assert_eq!(read(&[line]), Status::default(), "{line}");
        }
        assert_eq!(Status::read(b"", 10), Status::default());
    }
}
