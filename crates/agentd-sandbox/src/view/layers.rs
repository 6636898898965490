//! Layers of the agent's own over the user's caches: overlayfs, or the layer alone where there is nothing below it or
//! overlayfs is refused.

use super::caches::below;
use super::mounts::{self, Kind, Root};
use crate::error::{Failed, Step};
use crate::policy::Caches;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Locks on the layers. They hold for as long as the init lives, and no program inherits them.
pub struct Locks {
    _held: Vec<OwnedFd>,
}

#[derive(Default)]
pub struct Layers {
    locks: Vec<OwnedFd>,
    /// Each with the index of its caches in the policy.
    opened: Vec<(usize, OwnedFd)>,
    /// Mounts on the new root that are taken off when it is done.
    places: Vec<(PathBuf, OwnedFd)>,
}

/// What a volatile overlay leaves behind. Overlayfs refuses to mount again while it exists.
const VOLATILE_MARK: &[(&str, AtFlags)] = &[
    ("work/incompat/volatile/dirty", AtFlags::empty()),
    ("work/incompat/volatile", AtFlags::REMOVEDIR),
];

impl Layers {
    /// A directory of these caches, from which a mount of the view is copied.
    pub fn dir(
        &mut self,
        root: &mut Root,
        (of, caches): (usize, &Caches),
        name: &Path,
    ) -> Result<OwnedFd, Failed> {
        if !self.opened.iter().any(|(known, _)| *known == of) {
            let top = self.open(root, caches)?;
            self.opened.push((of, top));
        }
        let mut opened = self.opened.iter();
        let top = opened.find_map(|(known, top)| (*known == of).then_some(top.as_fd()));
        let top = top.ok_or(Errno::NOENT);
        top.and_then(|top| mounts::open_at(top, &below(Path::new("."), name)))
            .map_err(|errno| Failed::at(Step::Mount, &below(&caches.lower, name), errno))
    }

    fn open(&mut self, root: &mut Root, caches: &Caches) -> Result<OwnedFd, Failed> {
        let mut names = caches.names.iter();
        let is_below = names.any(|name| below(&caches.lower, name).is_dir());
        let overlay = is_below.then(|| self.overlay(root, caches)).flatten();
        match overlay {
            Some(overlay) => Ok(overlay),
            None => mounts::source(&caches.upper),
        }
    }

    /// Two overlays may not share an upper layer. The first of the agent's processes writes to it; one that runs at
    /// the same time reads it and keeps its own writes in memory.
    fn overlay(&mut self, root: &mut Root, caches: &Caches) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = rustix::fs::open(&caches.work, flags, Mode::empty()).ok()?;
        let lower = escaped(&caches.lower)?;
        let upper = escaped(&caches.upper)?;
        let overlay = if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            // Only the holder of the lock is here.
            for (name, flags) in VOLATILE_MARK {
                let _ = rustix::fs::unlinkat(&lock, *name, *flags);
            }
            self.locks.push(lock);
            overlay(&lower, &upper, &escaped(&caches.work)?)?
        } else {
            let memory = mounts::new("tmpfs", &[("mode", "755")]).ok()?;
            self.place(root, memory.as_fd())?;
            for name in ["upper", "work"] {
                rustix::fs::mkdirat(&memory, name, Mode::from_raw_mode(0o755)).ok()?;
            }
            let at = magic_link(memory.as_fd());
            let lowers = format!("{upper}:{lower}");
            overlay(&lowers, &format!("{at}/upper"), &format!("{at}/work"))?
        };
        self.place(root, overlay.as_fd())?;
        Some(overlay)
    }

    /// Attaches a mount to the new root: overlayfs accepts layers, and the kernel copies parts, only of mounts that are
    /// attached.
    fn place(&mut self, root: &mut Root, mount: BorrowedFd<'_>) -> Option<()> {
        let at = PathBuf::from(format!("/.layer-{}", self.places.len()));
        let mount = mount.try_clone_to_owned().ok()?;
        root.put(mount.try_clone().ok()?, Kind::Dir, &at).ok()?;
        self.places.push((at, mount));
        Some(())
    }

    /// Detaches the mounts from the new root. Copies of them, and overlays over them, continue to work.
    pub fn finish(&mut self, root: &Root) -> Result<(), Errno> {
        for (at, mount) in self.places.drain(..) {
            unmount(magic_link(mount.as_fd()), UnmountFlags::DETACH)?;
            let name = at.strip_prefix("/").unwrap_or(&at);
            rustix::fs::unlinkat(root.top(), name, AtFlags::REMOVEDIR)?;
        }
        Ok(())
    }

    pub fn into_locks(self) -> Locks {
        Locks { _held: self.locks }
    }
}

/// A path to what a descriptor has open.
fn magic_link(of: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", of.as_raw_fd())
}

/// Volatile: otherwise the end of each process would wait until the whole file system of `upper` is on disk. What a
/// cache loses in a crash of the machine is fetched again.
///
/// `lower` is the user's home, and the agent can set extended attributes on its directories in `upper` while they are
/// bound without an overlay. Overlayfs must not follow a redirect that it finds there: it would show any file of the
/// home. With `userxattr` it does not; the options say so explicitly.
fn overlay(lower: &str, upper: &str, work: &str) -> Option<OwnedFd> {
    let options = [
        ("lowerdir", lower),
        ("upperdir", upper),
        ("workdir", work),
        ("userxattr", ""),
        ("redirect_dir", "nofollow"),
        ("metacopy", "off"),
        ("volatile", ""),
    ];
    let [durable @ .., _] = &options;
    mounts::new("overlay", &options)
        .or_else(|_| mounts::new("overlay", durable))
        .ok()
}

/// Escaped for the options of overlayfs, where a colon separates layers. None if the path is not UTF-8.
fn escaped(path: &Path) -> Option<String> {
    let path = path.to_str()?;
    Some(path.replace('\\', "\\\\").replace(':', "\\:"))
}
