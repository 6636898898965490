//! Landlock: the second layer in a sandbox with namespaces, the only one without.

use crate::error::{Failed, Step};
use crate::policy::Network;
use crate::view::{Access, View, What};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The rights of this version are required where Landlock is the only layer: before it, truncation is not covered.
const REQUIRED: ABI = ABI::V3;
const SCOPES: ABI = ABI::V6;
const TCP: ABI = ABI::V4;

const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

fn reading() -> BitFlags<AccessFs> {
    AccessFs::from_read(REQUIRED)
}

fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_write(REQUIRED)
}

/// For a process inside a view: it may write only where the view is writable, and reaches no abstract socket and no
/// process outside. If the kernel has no Landlock, or an older version, only the view restricts the process.
pub fn restrict_in_view(view: &View) -> Result<(), Failed> {
    let ruleset = Ruleset::default()
        .handle_access(writing())
        .and_then(|ruleset| ruleset.scope(Scope::from_all(SCOPES)))
        .and_then(Ruleset::create);
    let mut ruleset = ruleset.map_err(refused)?;
    let trees = view.trees(Access::Write);
    for path in trees
        .iter()
        .map(PathBuf::as_path)
        .chain([Path::new("/dev/shm")])
    {
        ruleset = allow(ruleset, path, writing())?;
    }
    // No new entries: /proc and /dev are not places to put files.
    for path in ["/dev", "/proc"].map(Path::new) {
        ruleset = allow(ruleset, path, AccessFs::WriteFile | AccessFs::Truncate)?;
    }
    ruleset.restrict_self().map(drop).map_err(refused)
}

/// Whether programs that run under an allow-list may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// To the writable trees and the agent's own temporary directory.
    Trees,
    /// To devices such as `/dev/null` only.
    None,
}

/// For a process without a view: it may read and write only what is in a list, from which the closed paths are left
/// out. Applies to the calling thread and the processes that it starts.
pub fn restrict_by_list(
    view: &View,
    writes: Writes,
    network: Network,
    scopes: bool,
) -> Result<(), Failed> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED))
        .map_err(refused)?
        .set_compatibility(CompatLevel::BestEffort);
    if scopes {
        let all = Scope::from_all(SCOPES);
        ruleset = ruleset.scope(all).map_err(refused)?;
    }
    if network != Network::On {
        let tcp = AccessNet::from_all(TCP);
        ruleset = ruleset.handle_access(tcp).map_err(refused)?;
    }
    let mut ruleset = ruleset.create().map_err(refused)?;
    for (path, what) in &view.at {
        let (from, access) = match what {
            What::Bind { from, access } => (from, *access),
            // What the user has there; the agent's layer needs overlayfs.
            What::Cache { .. } => (path, Access::Read),
            _ => continue,
        };
        let rights = match (access, writes) {
            (Access::Write, Writes::Trees) => reading() | writing(),
            _ => reading(),
        };
        let closed = if view.is_own(from) {
            &[]
        } else {
            view.closed()
        };
        for path in without(from, closed) {
            ruleset = allow(ruleset, &path, rights)?;
        }
    }
    for path in DEVICES.iter().map(Path::new) {
        let rights = reading() | AccessFs::WriteFile;
        ruleset = allow(ruleset, path, rights)?;
    }
    ruleset = allow(ruleset, Path::new("/proc"), reading())?;
    let status = ruleset.restrict_self().map_err(refused)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        let error = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        return Err(Failed::new(Step::Landlock, error));
    }
    Ok(())
}

/// The tree itself, or its entries without the closed paths if it contains any: Landlock rules only add rights.
fn without(tree: &Path, closed: &[PathBuf]) -> Vec<PathBuf> {
    if closed.iter().any(|closed| tree.starts_with(closed)) {
        return Vec::new();
    }
    if !closed.iter().any(|closed| closed.starts_with(tree)) {
        return vec![tree.to_owned()];
    }
    let entries = fs::read_dir(tree).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| without(&entry.path(), closed))
        .collect()
}

/// Allows a path if it exists and is not a symlink. The target of a symlink is allowed by its own path or not at all.
fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Failed> {
    let Some((file, kind)) = open(path) else {
        return Ok(ruleset);
    };
    let rights = match kind {
        FileType::Directory => rights,
        FileType::Symlink => return Ok(ruleset),
        _ => rights & AccessFs::from_file(REQUIRED),
    };
    ruleset
        .add_rule(PathBeneath::new(file, rights))
        .map_err(|error| Failed::at(Step::Landlock, path, io_error(error)))
}

/// The paths of a plan contain no links. One that has become a link since leads to another place, and gives no right.
fn open(path: &Path) -> Option<(OwnedFd, FileType)> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let within = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = rustix::fs::openat2(CWD, path, flags, Mode::empty(), within).ok()?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).ok()?.st_mode);
    Some((file, kind))
}

fn refused(error: landlock::RulesetError) -> Failed {
    Failed::new(Step::Landlock, io_error(error))
}

/// The errno of an error of the library. An error without one means that the kernel lacks a required right.
fn io_error(error: landlock::RulesetError) -> io::Error {
    let mut source: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = source {
        let errno = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error);
        if let Some(errno) = errno {
            return io::Error::from_raw_os_error(errno);
        }
        source = error.source();
    }
    io::Error::from_raw_os_error(libc::EOPNOTSUPP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A tool could replace a directory between the plan and the rules.
    #[test]
    fn a_path_that_leads_through_a_link_gives_no_right() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(dir.join("real/tree")).unwrap();
        symlink("real", dir.join("link")).unwrap();
        assert!(open(&dir.join("real/tree")).is_some());
        assert!(open(&dir.join("link/tree")).is_none());
        // It is skipped by its kind.
        let link = open(&dir.join("link")).map(|(_, kind)| kind);
        assert_eq!(link, Some(FileType::Symlink));
    }
}
