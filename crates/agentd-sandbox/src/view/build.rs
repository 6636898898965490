//! Builds a planned view in a new mount namespace and makes it the root.

use super::layers::{Layers, Locks};
use super::mounts::{self, Kind, PLAIN, READ_ONLY, Root};
use super::{Access, User, View, What};
use crate::error::{Failed, Step};
use crate::policy::Extent;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

/// Names that no other entry of the new root has; they are removed when the root is complete.
const CLOSED_DIR: &str = "/.closed-dir";
const CLOSED_FILE: &str = "/.closed-file";

const LINK: &str = ".link";
/// Of all processes of a sandbox together.
const SHARED_MEMORY: &str = "1g";

const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

const DEV_LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/ptmx", "pts/ptmx"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
];

/// Files that root could write even without capabilities, because root owns them.
const PROC_WRITABLE: &[&str] = &[
    "/proc/acpi",
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sysrq-trigger",
];
const PROC_SECRET: &[&str] = &["/proc/keys", "/proc/timer_list", "/proc/vmallocinfo"];

/// Builds the view and makes it the root. Afterwards the old root cannot be reached any more.
pub fn enter(view: &View, user: User) -> Result<Locks, Failed> {
    let mask = rustix::process::umask(Mode::empty());
    let root = new_root().map_err(|errno| Failed::new(Step::Root, errno))?;
    let mut builder = Builder {
        root,
        layers: Layers::default(),
        frozen_last: Vec::new(),
        covers: Vec::new(),
        attributes: match view.extent {
            Extent::Listed => PLAIN,
            Extent::Everything => 0,
        },
    };
    match view.extent {
        Extent::Listed => builder.devices()?,
        Extent::Everything => {
            let path = Path::new("/dev");
            let from = mounts::source(path)?;
            builder.bind(from.as_fd(), path, Access::Write)?;
        }
    }
    builder.proc(user)?;
    builder.make_covers()?;
    for (path, what) in &view.at {
        builder.add(view, path, what)?;
    }
    builder.finish()?;
    pivot(&builder.root)?;
    rustix::process::umask(mask);
    Ok(builder.layers.into_locks())
}

/// A tmpfs over the old root. Paths of the host still resolve: a mount on `/` does not change the root of a process.
fn new_root() -> Result<Root, Errno> {
    let recursive = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", recursive)?;
    let root = mounts::new("tmpfs", &[("mode", "755"), ("size", "8m")])?;
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
    let slash = rustix::fs::open("/", flags, Mode::empty())?;
    mounts::attach(root.as_fd(), slash.as_fd())?;
    Ok(Root::new(root))
}

fn pivot(root: &Root) -> Result<(), Failed> {
    let pivot = || {
        rustix::process::fchdir(root.top())?;
        // Puts the old root on top of the new one, from where it is taken off at once.
        rustix::process::pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        rustix::process::chdir("/")
    };
    pivot().map_err(|errno| Failed::new(Step::Pivot, errno))
}

struct Builder {
    root: Root,
    layers: Layers,
    /// Mounts that are read-only once everything below them is in place.
    frozen_last: Vec<OwnedFd>,
    /// What covers a closed directory, and a closed file.
    covers: Vec<(Kind, OwnedFd)>,
    /// Of every mount of a directory or file of the host.
    attributes: u64,
}

impl Builder {
    fn devices(&mut self) -> Result<(), Failed> {
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            let failed = |failed: Failed| Failed {
                step: Step::Device,
                ..failed
            };
            let device = mounts::source(&path).map_err(failed)?;
            // The mount of the host may have `nodev`, and then the device is of no use to the host either.
            let mount = mounts::copy(device.as_fd(), &path).map_err(failed)?;
            self.root.put(mount, Kind::File, &path).map_err(failed)?;
        }
        let options = &[("newinstance", ""), ("ptmxmode", "0666"), ("mode", "620")];
        self.put_new(mounts::DEVPTS, options, "/dev/pts")?;
        self.put_new(
            "tmpfs",
            &[("mode", "1777"), ("size", SHARED_MEMORY)],
            "/dev/shm",
        )?;
        for (path, to) in DEV_LINKS {
            self.root.link(Path::new(path), Path::new(to))?;
        }
        Ok(())
    }

    fn put_new(&mut self, fs: &str, options: &[(&str, &str)], path: &str) -> Result<(), Failed> {
        let path = Path::new(path);
        let mount = mounts::new(fs, options);
        let mount = mount.map_err(|errno| Failed::at(Step::Mount, path, errno))?;
        self.root.put(mount, Kind::Dir, path)
    }

    fn proc(&mut self, user: User) -> Result<(), Failed> {
        let failed = |errno| Failed::new(Step::Proc, errno);
        let proc = mounts::new("proc", &[]).map_err(failed)?;
        self.root.put(proc, Kind::Dir, Path::new("/proc"))?;
        self.root.freeze(Path::new("/proc/sys"))?;
        if user == User::Ordinary {
            return Ok(());
        }
        for path in PROC_WRITABLE {
            self.root.freeze(Path::new(path))?;
        }
        let null = self.root.find(Path::new("/dev/null")).map_err(failed)?;
        for path in PROC_SECRET.iter().map(Path::new) {
            if let Ok(target) = self.root.find(path) {
                let cover = mounts::copy(null.as_fd(), path)?;
                self.root.cover(target, cover, path)?;
            }
        }
        Ok(())
    }

    /// The mount that covers a closed path: it has no permissions, so a program gets *permission denied*.
    fn make_covers(&mut self) -> Result<(), Failed> {
        for (path, kind) in [(CLOSED_DIR, Kind::Dir), (CLOSED_FILE, Kind::File)] {
            let path = Path::new(path);
            let cover = self.root.make(path, kind)?;
            let name = path.strip_prefix("/").unwrap_or(path);
            rustix::fs::chmodat(self.root.top(), name, Mode::empty(), AtFlags::empty())
                .map_err(|errno| Failed::at(Step::Cover, path, errno))?;
            self.covers.push((kind, cover));
        }
        Ok(())
    }

    fn add(&mut self, view: &View, path: &Path, what: &What) -> Result<(), Failed> {
        match what {
            What::Dir => self.root.dir(path).map(drop),
            What::Link { to } => self.root.link(path, to),
            What::Memory => {
                let path = path.to_string_lossy();
                self.put_new("tmpfs", &[("mode", "1777")], &path)
            }
            What::Bind { from, access } => {
                let from = mounts::source(from)?;
                self.bind(from.as_fd(), path, *access)
            }
            What::Pin { access } => {
                let failed = |errno| Failed::at(Step::Mount, path, errno);
                let here = self.root.find(path).map_err(failed)?;
                let mount = self.limited(here.as_fd(), path, *access)?;
                self.root.cover(here, mount, path)
            }
            What::Way { access } => {
                let here = self.root.make(path, Kind::Dir)?;
                let mount = self.limited(here.as_fd(), path, Access::Write)?;
                if *access == Access::Read {
                    self.freeze_last(mount.as_fd(), path)?;
                }
                self.root.cover(here, mount, path)
            }
            What::Cache { of, name } => match view.caches.get(*of) {
                Some(caches) => {
                    let from = self.layers.dir(&mut self.root, (*of, caches), name)?;
                    self.bind(from.as_fd(), path, Access::Write)
                }
                None => Ok(()),
            },
            What::Over { to } => self.redirect(path, to),
            What::Closed => self.close(path),
            What::Hidden => self.hide(path),
        }
    }

    fn bind(&mut self, from: BorrowedFd<'_>, path: &Path, access: Access) -> Result<(), Failed> {
        let kind = mounts::kind(from).map_err(|errno| Failed::at(Step::Source, path, errno))?;
        let mount = self.limited(from, path, access)?;
        self.root.put(mount, kind, path)
    }

    fn close(&mut self, path: &Path) -> Result<(), Failed> {
        let failed = |errno| Failed::at(Step::Cover, path, errno);
        let target = match self.root.find(path) {
            // No tree shows it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => return Ok(()),
            found => found.map_err(failed)?,
        };
        let kind = mounts::kind(target.as_fd()).map_err(failed)?;
        let mut covers = self.covers.iter();
        let cover = covers.find(|(of, _)| *of == kind);
        let (_, cover) = cover.ok_or_else(|| failed(Errno::NOENT))?;
        let cover = mounts::copy(cover.as_fd(), path)?;
        mounts::limit(cover.as_fd(), READ_ONLY | PLAIN, path)?;
        self.root.cover(target, cover, path)
    }

    /// Puts a symlink over a file. The mount keeps the link when its name on the root is gone.
    fn redirect(&mut self, path: &Path, to: &Path) -> Result<(), Failed> {
        let failed = |errno| Failed::at(Step::Cover, path, errno);
        let here = self.root.find(path).map_err(failed)?;
        rustix::fs::symlinkat(to, self.root.top(), LINK).map_err(failed)?;
        let link = mounts::open_at(self.root.top(), Path::new(LINK)).map_err(failed)?;
        let mount = mounts::copy(link.as_fd(), path)?;
        self.root.cover(here, mount, path)?;
        rustix::fs::unlinkat(self.root.top(), LINK, AtFlags::empty()).map_err(failed)
    }

    fn hide(&mut self, path: &Path) -> Result<(), Failed> {
        let failed = |errno| Failed::at(Step::Cover, path, errno);
        match self.root.find(path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => return Ok(()),
            found => drop(found.map_err(failed)?),
        }
        let empty = mounts::new("tmpfs", &[("mode", "755"), ("size", "1m")]).map_err(failed)?;
        self.freeze_last(empty.as_fd(), path)?;
        self.root.put(empty, Kind::Dir, path)
    }

    /// Makes a mount read-only when everything below it is in place. What is mounted below it keeps its own access.
    fn freeze_last(&mut self, mount: BorrowedFd<'_>, path: &Path) -> Result<(), Failed> {
        let mount = mount.try_clone_to_owned();
        let mount = mount.map_err(|error| Failed::at(Step::Cover, path, error))?;
        self.frozen_last.push(mount);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failed> {
        let failed = |errno| Failed::new(Step::Root, errno);
        self.layers.finish(&self.root).map_err(failed)?;
        for (path, flags) in [
            (CLOSED_DIR, AtFlags::REMOVEDIR),
            (CLOSED_FILE, AtFlags::empty()),
        ] {
            let name = path.trim_start_matches('/');
            rustix::fs::unlinkat(self.root.top(), name, flags).map_err(failed)?;
        }
        let frozen = self.frozen_last.iter().map(|mount| mount.as_fd());
        for mount in frozen.chain([self.root.top()]) {
            crate::sys::set_mount_attributes(mount, READ_ONLY, false)
                .map_err(|error| Failed::new(Step::Root, error))?;
        }
        Ok(())
    }

    /// A copy of the mounts from this path downwards, restricted to the given access.
    fn limited(
        &self,
        from: BorrowedFd<'_>,
        path: &Path,
        access: Access,
    ) -> Result<OwnedFd, Failed> {
        let mount = mounts::copy(from, path)?;
        let attributes = match access {
            Access::Read => self.attributes | READ_ONLY,
            Access::Write => self.attributes,
        };
        if attributes != 0 {
            mounts::limit(mount.as_fd(), attributes, path)?;
        }
        Ok(mount)
    }
}
