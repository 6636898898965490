//! The process of a command that wrote its own pid. In a sandbox, that pid is a number of the sandbox.

use agentd_files::own;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The pid, seen from here, of the process that has `own_pid` in its innermost PID namespace and works in `dir`.
pub fn pid_of(own_pid: u32, dir: &Path) -> Option<u32> {
    let place = |path: &Path| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
    let dir = place(dir)?;
    let pids = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, entry.path()))
    });
    let mut found = pids.filter(|(_, process)| {
        let status = own::read_to_string(process.join("status")).unwrap_or_default();
        innermost(&status) == Some(own_pid) && place(&process.join("cwd")) == Some(dir)
    });
    found.next().map(|(pid, _)| pid)
}

fn innermost(status: &str) -> Option<u32> {
    let pids = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    pids.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_its_own_pid_and_directory() {
        let own = std::process::id();
        let here = std::env::current_dir().unwrap();
        assert_eq!(pid_of(own, &here), Some(own));
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(pid_of(own, elsewhere.path()), None);
    }

    #[test]
    fn the_pid_of_the_innermost_namespace_counts() {
        let status = "Name:\tsh\nPid:\t42\nNSpid:\t42\t2\nNSpgid:\t7\t1\n";
        assert_eq!(innermost(status), Some(2));
        assert_eq!(innermost("Name:\tsh\n"), None);
    }
}
