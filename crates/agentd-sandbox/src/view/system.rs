//! The directories of the system: read-only, and only those that programs need to run.

use super::{Access, View, What};
use std::fs;
use std::path::{Path, PathBuf};

/// Bound if they are directories, copied if they are symlinks. Not `/run` and not `/var` as a whole: sockets of other
/// programs are there.
const SHOWN: &[&str] = &[
    "/bin",
    "/etc",
    "/gnu",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/opt",
    "/run/current-system",
    "/sbin",
    "/snap",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
    "/usr",
    "/var/cache/fontconfig",
    "/var/lib/alternatives",
    "/var/lib/ca-certificates",
    "/var/lib/dpkg",
    "/var/lib/pacman",
    "/var/lib/rpm",
];

const DIRS: &[&str] = &["/dev", "/home", "/proc", "/run", "/var"];

const LINKS: &[(&str, &str)] = &[("/var/run", "/run"), ("/var/tmp", "/tmp")];

pub fn add(view: &mut View) {
    for path in DIRS {
        view.at.insert(path.into(), What::Dir);
    }
    for (path, to) in LINKS {
        view.at.insert(path.into(), What::Link { to: to.into() });
    }
    for path in SHOWN.iter().map(Path::new) {
        let Ok(found) = fs::symlink_metadata(path) else {
            continue;
        };
        if found.is_dir() {
            show(view, path.to_owned());
        } else if let Ok(to) = fs::read_link(path) {
            view.at.insert(path.to_owned(), What::Link { to });
        }
    }
    // Often a link into /run, which is empty otherwise.
    if let Ok(target) = fs::canonicalize("/etc/resolv.conf")
        && !target.starts_with("/etc")
    {
        show(view, target);
    }
}

fn show(view: &mut View, path: PathBuf) {
    let from = path.clone();
    let access = Access::Read;
    view.at.insert(path, What::Bind { from, access });
}

/// Files that only root can read. Root without capabilities is still their owner.
const ROOT_ONLY: &[&str] = &[
    "/etc/NetworkManager/system-connections",
    "/etc/credstore",
    "/etc/credstore.encrypted",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/rancher",
    "/etc/security/opasswd",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/wireguard",
];

pub fn closed_for_root() -> impl Iterator<Item = PathBuf> {
    let keys = fs::read_dir("/etc/ssh").into_iter().flatten().flatten();
    let keys = keys.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("ssh_host_") && name.ends_with("_key"))
    });
    let there = super::existing(Path::new("/"), ROOT_ONLY).flat_map(fs::canonicalize);
    there.chain(keys)
}
