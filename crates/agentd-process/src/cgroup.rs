//! A cgroup (version 2) for one task, if one can be created. Only plain file operations are used.

use crate::identity::Identity;
use agentd_files::own;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

const PREFIX: &str = "agentd-task-";
/// How often the removal of a cgroup is tried: it may list a process for a moment after the process has ended.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(2);

/// Whether the content of `/proc/PID/cgroup` names the cgroup of a task.
pub fn names_a_task(text: &str) -> bool {
    text.lines()
        .flat_map(|line| line.split('/'))
        .any(|part| part.starts_with(PREFIX))
}

#[derive(Clone, Debug)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Creates the cgroup of this shim's task, beside our own cgroup or inside it. `None` if neither is possible. The
    /// cgroup of a nested task is created inside the outer task's, so that killing the outer task ends both.
    pub fn make(shim: Identity) -> Option<Self> {
        let root = mount_point(&own::read_to_string("/proc/self/mountinfo").ok()?)?;
        let own = own_path(&own::read_to_string("/proc/self/cgroup").ok()?)?;
        let own = root.join(own);
        let in_task = own.file_name().is_some_and(is_ours);
        let beside = own.parent().filter(|_| own != root && !in_task);
        beside
            .into_iter()
            .chain([own.as_path()])
            .find_map(|parent| {
                let path = parent.join(name(shim));
                fs::create_dir(&path).ok()?;
                let made = Self { path };
                // Useless if no process can join it, or if it cannot be killed as a whole (before Linux 5.14).
                if made.door().is_err() || !made.path.join("cgroup.kill").exists() {
                    made.remove();
                    return None;
                }
                Some(made)
            })
    }

    /// The cgroup at the path, if its name is the one for this shim's task.
    pub fn at(path: &Path, shim: Identity) -> Option<Self> {
        let is_named = path.file_name().is_some_and(|it| it == name(shim).as_str());
        (is_named && path.is_dir()).then(|| Self {
            path: path.to_owned(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A process that writes `0` to this file joins the cgroup.
    pub fn door(&self) -> io::Result<File> {
        File::options()
            .write(true)
            .open(self.path.join("cgroup.procs"))
    }

    /// Sets a limit; false if this group does not support it.
    pub fn limit(&self, name: &str, value: u64) -> bool {
        append(&self.path.join(name), &value.to_string()).is_ok()
    }

    /// Kills all its processes at once.
    pub fn kill(&self) {
        self.limit("cgroup.kill", 1);
    }

    /// Removes it and the cgroups that the task created below it. A cgroup that still contains a process stays.
    pub fn remove(&self) {
        for _ in 0..TRIES {
            remove(&self.path);
            if !self.path.exists() {
                return;
            }
            // tidy: polls until it is gone
            std::thread::sleep(PAUSE);
        }
    }
}

/// The subgroup of a process that runs an agent, in a group that is delegated to us. The groups of its tasks are created
/// beside it.
const RUNTIME: &str = "runtime";
/// Controllers that the limits of a task need, if the group has them.
const CONTROLLERS: [&str; 2] = ["+memory", "+pids"];

/// Moves a process into the subgroup for the process that runs an agent. `group` is as `/proc/PID/cgroup` shows it.
pub fn enter_runtime_group(group: &str, process: Identity) -> io::Result<()> {
    let mounts = own::read_to_string("/proc/self/mountinfo")?;
    let no_group = || io::Error::new(io::ErrorKind::NotFound, "there is no such cgroup");
    let root = mount_point(&mounts).ok_or_else(no_group)?;
    let group = root.join(own_path(&format!("0::{group}")).ok_or_else(no_group)?);
    enter_below(&group, process)
}

fn enter_below(group: &Path, process: Identity) -> io::Result<()> {
    let inner = group.join(RUNTIME);
    match fs::create_dir(&inner) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // The caller has not reaped the process, so the pid is still its own.
    append(&inner.join("cgroup.procs"), &process.pid.to_string())?;
    for controller in CONTROLLERS {
        // Without the controller, the limits that need it are not enforced, as in any other group.
        drop(append(&group.join("cgroup.subtree_control"), controller));
    }
    Ok(())
}

/// Not `fs::write`, which would create a file.
fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().append(true).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

/// Removes the groups of tasks whose shims are gone, next to our own group and inside it: a killed shim cannot remove
/// its group, and its task may never be looked up again. A group with processes stays.
pub fn remove_stale_cgroups() {
    for group in stale() {
        remove(&group);
    }
}

/// How many groups [`remove_stale_cgroups`] would remove.
pub fn stale_cgroups() -> usize {
    stale().len()
}

fn stale() -> Vec<PathBuf> {
    let mounts = own::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let groups = own::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let (Some(root), Some(own)) = (mount_point(&mounts), own_path(&groups)) else {
        return Vec::new();
    };
    let own = root.join(own);
    let beside = own.parent().filter(|_| own != root);
    let parents = beside.into_iter().chain([own.as_path()]);
    parents.flat_map(stale_in).collect()
}

fn stale_in(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let is_stale = |entry: &fs::DirEntry| {
        let shim = entry.file_name().to_str().and_then(shim_of);
        shim.is_some_and(|shim| shim.is_alive().is_ok_and(|is_alive| !is_alive))
    };
    entries.filter(is_stale).map(|entry| entry.path()).collect()
}

/// The shim that a group is named after.
fn shim_of(name: &str) -> Option<Identity> {
    let (pid, start_ticks) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some(Identity {
        pid: pid.parse().ok()?,
        start_ticks: start_ticks.parse().ok()?,
    })
}

fn name(shim: Identity) -> String {
    format!("{PREFIX}{}-{}", shim.pid, shim.start_ticks)
}

fn is_ours(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(PREFIX))
}

fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    // After a failure the group still exists, which the caller checks.
    drop(fs::remove_dir(path));
}

/// The directory where cgroup version 2 is mounted.
fn mount_point(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let is_it = kind.split(' ').next() == Some("cgroup2");
        // Root and mount point are fields 4 and 5. With another root, the mount may not contain our group.
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        (is_it && root == "/").then(|| PathBuf::from(point))
    })
}

/// Our own group, relative to the mount point.
fn own_path(groups: &str) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let path = PathBuf::from(path);
    // A group outside our namespace is shown with `..`.
    let plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    plain.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::{enter_below, mount_point, name, own_path, remove, stale_in};
    use crate::identity::Identity;
    use std::path::PathBuf;

    #[test]
    fn the_second_version_is_found() {
        let mounts = "24 30 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      25 24 0:23 / /sys/fs/cgroup/cpu rw shared:1 - cgroup cgroup rw,cpu\n\
                      26 24 0:24 / /sys/fs/cgroup/unified rw shared:2 - cgroup2 cgroup rw\n";
        let expected = Some(PathBuf::from("/sys/fs/cgroup/unified"));
        assert_eq!(mount_point(mounts), expected);
        assert_eq!(
            mount_point("26 24 0:24 /a /b rw - cgroup2 cgroup rw\n"),
            None
        );
        assert_eq!(mount_point("\n-\n"), None);
    }

    #[test]
    fn only_the_groups_of_shims_that_are_gone_are_taken_away() {
        let parent = tempfile::tempdir().unwrap();
        let me = Identity::current().unwrap();
        let gone = Identity {
            start_ticks: me.start_ticks + 1,
            ..me
        };
        let names = [
            name(me),
            name(gone),
            "agentd-task-x".to_owned(),
            "other".to_owned(),
        ];
        for name in &names {
            std::fs::create_dir(parent.path().join(name)).unwrap();
        }
        for group in stale_in(parent.path()) {
            remove(&group);
        }
        let left = names.map(|name| parent.path().join(name).exists());
        assert_eq!(left, [true, false, true, true]);
    }

    #[test]
    fn a_process_enters_the_subgroup_of_a_runtime() {
        let group = tempfile::tempdir().unwrap();
        let me = Identity::current().unwrap();
        // Not a cgroup: there is no file to write to, and none is created.
        assert!(enter_below(group.path(), me).is_err());
        let procs = group.path().join("runtime/cgroup.procs");
        assert!(!procs.exists());
        std::fs::write(&procs, "").unwrap();
        enter_below(group.path(), me).unwrap();
        assert_eq!(std::fs::read_to_string(&procs).unwrap(), me.pid.to_string());
        assert!(!group.path().join("cgroup.subtree_control").exists());
    }

    #[test]
    fn our_own_is_the_line_without_a_name() {
        assert_eq!(own_path("2:cpu:/x\n0::/a/b\n"), Some(PathBuf::from("a/b")));
        assert_eq!(own_path("0::/\n"), Some(PathBuf::new()));
        assert_eq!(own_path("0::/../b\n"), None);
        assert_eq!(own_path("2:cpu:/x\n"), None);
    }
}
