//! Files that decide what agentd runs as the user: `hooks.json` and `config.toml`. A state directory that was once open to
//! other users may contain one of theirs, so such a file is used only if no other user can have written it.

use crate::project;
use agentd_failpoint as failpoint;
use agentd_files::foreign::{self, Links};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The content of the file, which may be reached through a symbolic link.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = foreign::open(path, Links::Follow)?;
    let refusal = refusal(&file.metadata()?, path);
    match refusal.filter(|_| !failpoint::injected_bug("owner_unchecked")) {
        Some(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
        None => Ok(foreign::bounded(file, project::LARGEST)?),
    }
}

pub fn read_to_string(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(path)?);
    text.map_err(|_| io::Error::other("it is not valid UTF-8"))
}

/// Why another user may have written the file, and what to do.
fn refusal(metadata: &Metadata, path: &Path) -> Option<String> {
    let path = path.display();
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let owner = metadata.uid();
    if owner != uid.as_raw() && owner != 0 {
        return Some(format!(
            "it belongs to another user (uid {owner}): check its content, then `chown {uid} {path}`, or delete it",
            uid = uid.as_raw()
        ));
    }
    // Many systems give each user a group, and let it write what the user creates.
    let is_foreign_group = metadata.mode() & 0o020 != 0 && metadata.gid() != gid.as_raw();
    let is_open = metadata.mode() & 0o002 != 0 || is_foreign_group;
    is_open.then(|| {
        format!("other users can write to it: check its content, then `chmod go-w {path}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    #[test]
    fn a_file_that_others_can_have_written_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, "a").unwrap();
        let set = |mode| fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        for mode in [0o600, 0o644, 0o664] {
            set(mode);
            assert_eq!(read(&path).unwrap(), b"a", "{mode:o}");
        }
        set(0o666);
        let said = read(&path).unwrap_err().to_string();
        assert!(said.contains("`chmod go-w "), "{said}");
        set(0o644);
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(read_to_string(&link).unwrap(), "a");
        // Only root can give a file away.
        if chown(&path, Some(54321), None).is_ok() {
            let said = read(&link).unwrap_err().to_string();
            assert!(
                said.contains("uid 54321") && said.contains("`chown "),
                "{said}"
            );
        }
        let none = read(&dir.path().join("none")).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }
}
